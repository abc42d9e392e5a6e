"""Applying described objects through a door: create, or change what the description changed.

A three-way merge, as `kubectl apply` does it, with the same annotation: fields that an earlier
description had and this one lacks are removed, fields that others set are left alone.
"""

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from captfctl.cluster.door import Door
from captfctl.cluster.errors import AlreadyExists, NotFound
from captfctl.model.resource import Document, Resource

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_RECORDED = ("metadata", "spec", "data", "binaryData", "rules", "roleRef", "subjects")


class Action(StrEnum):
    """What applying did, in kubectl's words."""

    CREATED = "created"
    CONFIGURED = "configured"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of one described object: the stored object and how it came to be so."""

    action: Action
    document: Document


def apply(door: Door, resource: Resource[Document], document: Document) -> Applied:
    """Make the stored object as described. Status in the description is ignored.

    Raises the door's errors; `Conflict` does not occur, since the patch names no version.
    """
    wanted = {key: value for key, value in document.items() if key != "status"}
    if resource.kind == "Secret":
        wanted = _without_string_data(wanted)
    else:
        wanted = _with_record(wanted)
    metadata = wanted["metadata"]
    name, namespace = metadata["name"], metadata.get("namespace", "")
    try:
        current = door.get(resource, name, namespace)
    except NotFound:
        try:
            return Applied(Action.CREATED, door.create(resource, wanted, namespace))
        except AlreadyExists:
            current = door.get(resource, name, namespace)
    patch = three_way_patch(_last_applied(current, wanted), wanted, current)
    if not patch:
        return Applied(Action.UNCHANGED, current)
    return Applied(Action.CONFIGURED, door.patch(resource, name, namespace, patch))


def three_way_patch(original: Document, wanted: Document, current: Document) -> Document:
    """The JSON merge patch that takes `current` to `wanted`.

    Removes what `original` had and `wanted` lacks; keeps everything else that `current` has.
    Empty when there is nothing to change.
    """
    patch: Document = {}
    for key, value in wanted.items():
        before = current.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            earlier = original.get(key)
            inner = three_way_patch(earlier if isinstance(earlier, dict) else {}, value, before)
            if inner:
                patch[key] = inner
        elif key not in current or before != value:
            patch[key] = value
    for key in original:
        if key not in wanted and key in current:
            patch[key] = None
    return patch


def _with_record(wanted: Document) -> Document:
    """`wanted` with itself recorded in kubectl's annotation."""
    record = json.dumps(wanted, separators=(",", ":"), sort_keys=True) + "\n"
    metadata = dict(wanted["metadata"])
    metadata["annotations"] = {**(metadata.get("annotations") or {}), LAST_APPLIED: record}
    return {**wanted, "metadata": metadata}


def _last_applied(current: Document, wanted: Document) -> Document:
    text = (current["metadata"].get("annotations") or {}).get(LAST_APPLIED)
    if text is None:
        # A Secret has no record (it would hold the values): its data is what the file says.
        return {"data": current.get("data") or {}} if "data" in wanted else {}
    try:
        record: Any = json.loads(text)
    except ValueError:
        return {}
    if not isinstance(record, dict):
        return {}
    known = {key: value for key, value in record.items() if key in _RECORDED}
    metadata = known.get("metadata")
    if isinstance(metadata, dict):
        known["metadata"] = {
            key: value for key, value in metadata.items() if key in ("labels", "annotations")
        }
    return known


def _without_string_data(secret: Document) -> Document:
    """`stringData` as the `data` that a server makes of it, so that an unchanged one is seen."""
    import base64

    data = dict(secret.get("data") or {})
    for key, value in (secret.get("stringData") or {}).items():
        data[key] = base64.b64encode(str(value).encode()).decode()
    rest = {key: value for key, value in secret.items() if key != "stringData"}
    return {**rest, "data": data}
