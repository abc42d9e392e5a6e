"""The rules for `metadata` that hold for every kind."""

import random
import uuid
from collections.abc import Iterator
from datetime import datetime

from captfctl.cluster.errors import BadRequest, Cause
from captfctl.embedded.store.naming import (
    NameRule,
    label_causes,
    name_problems,
    qualified_name_problems,
)
from captfctl.embedded.store.violations import (
    child,
    forbidden,
    immutable,
    invalid,
    required,
    shown,
)
from captfctl.model.keys import FOREGROUND_DELETION, ORPHAN
from captfctl.model.resource import Document

ANNOTATIONS_MAX = 256 * 1024
_BASE_MAX = 58
_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_OF_THE_SERVER = ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generation")
_IMMUTABLE = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp")


def kubernetes_time(moment: datetime) -> str:
    """A `metav1.Time`: RFC 3339 in UTC, whole seconds."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def new_uid(chance: random.Random) -> str:
    """A random UID."""
    return str(uuid.UUID(int=chance.getrandbits(128), version=4))


def generated_name(base: str, chance: random.Random) -> str:
    """A name that begins with `base` and ends in five random characters."""
    return base[:_BASE_MAX] + "".join(chance.choice(_SUFFIX_LETTERS) for _ in range(5))


def place(metadata: Document, namespaced: bool, namespace: str) -> None:
    """Put the request's namespace in. Raises `BadRequest` when the object names another one."""
    if not namespaced:
        metadata.pop("namespace", None)
        return
    if metadata.get("namespace", namespace) != namespace:
        raise BadRequest(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    metadata["namespace"] = namespace


def prepare_create(metadata: Document, now: datetime, uid: str) -> None:
    """Fill in what the server sets on a new object. Raises `BadRequest`."""
    if metadata.get("resourceVersion"):
        raise BadRequest("resourceVersion should not be set on objects to be created")
    for key in _OF_THE_SERVER:
        metadata.pop(key, None)
    metadata["uid"] = uid
    metadata["creationTimestamp"] = kubernetes_time(now)


def prepare_update(metadata: Document, old: Document) -> None:
    """Fill in what a writer may leave out; what only the server sets stays as it was."""
    for key in ("uid", "creationTimestamp", "namespace", "name"):
        if not metadata.get(key) and key in old:
            metadata[key] = old[key]
    for key in ("generation", "deletionTimestamp"):
        metadata.pop(key, None)
        if key in old:
            metadata[key] = old[key]
    if "deletionGracePeriodSeconds" in old:
        metadata.setdefault("deletionGracePeriodSeconds", old["deletionGracePeriodSeconds"])
    metadata.pop("selfLink", None)


def check(metadata: Document, rule: NameRule) -> list[Cause]:
    """Violations in an object's metadata."""
    causes = list(_name(metadata, rule))
    causes += label_causes(metadata.get("labels", {}), "metadata.labels")
    causes += _annotations(metadata.get("annotations", {}))
    causes += _finalizers(metadata.get("finalizers", []))
    causes += _owners(metadata.get("ownerReferences", []))
    return causes


def _name(metadata: Document, rule: NameRule) -> Iterator[Cause]:
    prefix = metadata.get("generateName", "")
    if prefix:
        for problem in name_problems(prefix, rule, prefix=True):
            yield invalid("metadata.generateName", prefix, problem)
    name = metadata.get("name", "")
    if not name:
        yield required("metadata.name", "name or generateName is required")
        return
    for problem in name_problems(name, rule):
        yield invalid("metadata.name", name, problem)


def _annotations(annotations: dict[str, str]) -> Iterator[Cause]:
    total = 0
    for key, value in annotations.items():
        total += len(key.encode()) + len(value.encode())
        for problem in qualified_name_problems(key.lower()):
            yield invalid("metadata.annotations", key, problem)
    if total > ANNOTATIONS_MAX:
        message = f"Too long: may not be more than {ANNOTATIONS_MAX} bytes"
        yield Cause("metadata.annotations", message, "FieldValueTooLong")


def _finalizers(finalizers: list[str]) -> Iterator[Cause]:
    for finalizer in finalizers:
        for problem in qualified_name_problems(finalizer):
            yield invalid("metadata.finalizers", finalizer, problem)
    if FOREGROUND_DELETION in finalizers and ORPHAN in finalizers:
        detail = f"finalizer {ORPHAN} and {FOREGROUND_DELETION} cannot be both set"
        yield invalid("metadata.finalizers", finalizers, detail)


def _owners(owners: list[Document]) -> Iterator[Cause]:
    path = "metadata.ownerReferences"
    for index, owner in enumerate(owners):
        for key in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(key):
                yield required(child(child(path, index), key), "must not be empty")
    controllers = [owner for owner in owners if owner.get("controller")]
    if len(controllers) > 1:
        names = " and ".join(f"{o.get('kind', '')}/{o.get('name', '')}" for o in controllers[:2])
        detail = f"only one reference can have controller set to true, found it in {names}"
        yield invalid(path, [owner.get("uid", "") for owner in controllers], detail)


def check_update(metadata: Document, old: Document) -> list[Cause]:
    """Changes that no writer may make."""
    causes = [
        immutable(f"metadata.{key}", metadata.get(key, ""))
        for key in _IMMUTABLE
        if metadata.get(key) != old.get(key)
    ]
    grace = "deletionGracePeriodSeconds"
    if metadata.get(grace) != old.get(grace):
        detail = "field is immutable; it may only be changed by deleting the object"
        causes.append(invalid(f"metadata.{grace}", metadata.get(grace), detail))
    if old.get("deletionTimestamp"):
        added = [f for f in metadata.get("finalizers", []) if f not in old.get("finalizers", [])]
        if added:
            detail = (
                "no new finalizers can be added if the object is being deleted, found new "
                f"finalizers {shown(added)}"
            )
            causes.append(forbidden("metadata.finalizers", detail))
    return causes
