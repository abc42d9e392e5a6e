"""Pods: bound to a node once, deleted with a grace period that the node cuts short."""

import copy
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from captfctl.cluster.errors import Cause, Conflict
from captfctl.embedded.store.kinds.pod_defaults import default_pod_spec, default_requests
from captfctl.embedded.store.metadata import kubernetes_time
from captfctl.embedded.store.naming import label_problems
from captfctl.embedded.store.strategy import Typed
from captfctl.embedded.store.violations import (
    child,
    duplicate,
    forbidden,
    invalid,
    required,
    shown,
    unsupported,
)
from captfctl.model.resource import Document

RESTART_POLICIES = ("Always", "OnFailure", "Never")
LONGEST_GRACE = 2**31 - 1
"""Seconds: what is longer leads out of the calendar."""
_OVER = ("Succeeded", "Failed")


class PodStrategy(Typed):
    """Pods."""

    has_status = True
    has_generation = True

    def default(self, document: Document) -> None:
        spec = document["spec"]
        default_pod_spec(spec)
        default_requests(spec)
        spec.setdefault("enableServiceLinks", True)

    def prepare_create(self, document: Document, now: datetime) -> None:
        super().prepare_create(document, now)
        document["status"] = {"phase": "Pending", "qosClass": _quality(document["spec"])}

    def with_status(self, document: Document, old: Document) -> Document:
        result = super().with_status(document, old)
        if quality := old.get("status", {}).get("qosClass"):
            result["status"]["qosClass"] = quality
        return result

    def check(self, document: Document, old: Document | None, subresource: str) -> list[Cause]:
        if old is None:
            return list(check_pod_spec(document["spec"], "spec"))
        if not subresource and _fixed(document["spec"]) != _fixed(old["spec"]):
            detail = (
                "pod updates may not change fields other than the containers' images, "
                "activeDeadlineSeconds, tolerations and terminationGracePeriodSeconds"
            )
            return [forbidden("spec", detail)]
        return []

    def grace(self, document: Document, wanted: int | None) -> int | None:
        spec, status = document["spec"], document.get("status", {})
        period = spec["terminationGracePeriodSeconds"] if wanted is None else wanted
        if not spec.get("nodeName") or status.get("phase") in _OVER:
            return 0
        return max(period, 1) if period < 0 else min(int(period), LONGEST_GRACE)


def _fixed(spec: Document) -> Document:
    """The part of a specification that no update may change."""
    rest = copy.deepcopy(spec)
    for key in ("activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds"):
        rest.pop(key, None)
    for container in (*rest.get("initContainers", ()), *rest.get("containers", ())):
        container.pop("image", None)
    return rest


def _quality(spec: Document) -> str:
    """The quality-of-service class."""
    complete, some = True, False
    for container in spec.get("containers", ()):
        resources = container.get("resources", {})
        limits, requests = resources.get("limits", {}), resources.get("requests", {})
        some = some or bool(limits or requests)
        complete = complete and all(
            name in limits and limits[name] == requests.get(name) for name in ("cpu", "memory")
        )
    if not some:
        return "BestEffort"
    return "Guaranteed" if complete else "Burstable"


def bound(document: Document, node: str, now: datetime) -> Document:
    """The pod, now bound to a node. Raises `Conflict` when it is bound already or ending."""
    metadata, spec = document["metadata"], document["spec"]
    problem = ""
    if metadata.get("deletionTimestamp"):
        problem = f"pod {metadata['name']} is being deleted, cannot be assigned to a host"
    elif spec.get("nodeName"):
        problem = f"pod {metadata['name']} is already assigned to node {shown(spec['nodeName'])}"
    if problem:
        raise Conflict(
            f'Operation cannot be fulfilled on pods/binding "{metadata["name"]}": {problem}'
        )
    spec["nodeName"] = node
    conditions = document["status"].setdefault("conditions", [])
    conditions[:] = [item for item in conditions if item["type"] != "PodScheduled"]
    conditions.append(
        {
            "type": "PodScheduled",
            "status": "True",
            "lastProbeTime": None,
            "lastTransitionTime": kubernetes_time(now),
        }
    )
    return document


def check_pod_spec(spec: Document, path: str) -> Iterator[Cause]:
    """Violations in a pod's specification that stands at `path`."""
    volumes: set[str] = set()
    for index, volume in enumerate(spec.get("volumes", ())):
        where = child(child(child(path, "volumes"), index), "name")
        yield from _named(volume, where, volumes)
    if not spec.get("containers"):
        yield required(child(path, "containers"))
    names: set[str] = set()
    for kind in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(kind, ())):
            where = child(child(path, kind), index)
            yield from _named(container, child(where, "name"), names)
            yield from _check_container(container, where, volumes)
    if spec["restartPolicy"] not in RESTART_POLICIES:
        yield unsupported(child(path, "restartPolicy"), spec["restartPolicy"], RESTART_POLICIES)
    yield from not_negative(spec, path, "terminationGracePeriodSeconds")
    if spec.get("activeDeadlineSeconds", 1) < 1:
        detail = "must be between 1 and 2147483647, inclusive"
        value = spec["activeDeadlineSeconds"]
        yield invalid(child(path, "activeDeadlineSeconds"), value, detail)


def _named(item: Document, path: str, seen: set[str]) -> Iterator[Cause]:
    name = item.get("name", "")
    if not name:
        yield required(path)
    elif problems := label_problems(name):
        yield from (invalid(path, name, problem) for problem in problems)
    elif name in seen:
        yield duplicate(path, name)
    seen.add(name)


def _check_container(container: Document, path: str, volumes: set[str]) -> Iterator[Cause]:
    if not container.get("image"):
        yield required(child(path, "image"))
    for index, variable in enumerate(container.get("env", ())):
        if not variable.get("name"):
            yield required(f"{path}.env[{index}].name")
    paths: set[str] = set()
    for index, mount in enumerate(container.get("volumeMounts", ())):
        where = f"{path}.volumeMounts[{index}]"
        if mount.get("name") not in volumes:
            message = f"Not found: {shown(mount.get('name', ''))}"
            yield Cause(child(where, "name"), message, "FieldValueNotFound")
        place = mount.get("mountPath", "")
        if not place:
            yield required(child(where, "mountPath"))
        elif place in paths:
            yield invalid(child(where, "mountPath"), place, "must be unique")
        paths.add(place)


def not_negative(holder: Document, path: str, *fields: str) -> Iterator[Cause]:
    """A violation for each of the fields that is a negative number."""
    for field in fields:
        value: Any = holder.get(field, 0)
        if value < 0:
            yield invalid(child(path, field), value, "must be greater than or equal to 0")
