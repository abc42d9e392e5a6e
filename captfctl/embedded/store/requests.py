"""What the store is asked and what it answers: the options of Kubernetes' own requests."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from captfctl.cluster.door import EventType, Propagation
from captfctl.model.resource import Document

_EVERYTHING = ["system:masters", "system:authenticated"]

IN_PROCESS: Mapping[str, Any] = {"username": "system:captfctl", "groups": _EVERYTHING}
"""Who writes through a door in the process of the store, where nobody else is named."""
MANAGER: Mapping[str, Any] = {"username": "system:captfctl:manager", "groups": _EVERYTHING}
"""The manager in the process of the store."""
LOCAL_ADMIN: Mapping[str, Any] = {"username": "local-admin", "groups": _EVERYTHING}
"""The owner of this machine: who has the kubeconfig, and who runs commands on the store itself."""

Manage = Callable[[Document | None, Document], Document]
"""Takes note of who set which field, in the stored object's place-taker."""


class FieldValidation(StrEnum):
    """What happens to fields that the schema does not know (`?fieldValidation=`)."""

    IGNORE = "Ignore"
    WARN = "Warn"
    STRICT = "Strict"


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """Options of a create and of a change.

    `as_described`: a create keeps what only a server sets (uid, creationTimestamp, generation,
    deletionTimestamp, status) as it is given, and leaves out what is not given. `manage` gets the
    stored object (None: there is none) and the one that is about to take its place, with defaults
    and all; it answers the latter with its `metadata.managedFields`. `user` is the `userInfo` of
    who asks, for admission.
    """

    dry_run: bool = False
    field_validation: FieldValidation = FieldValidation.IGNORE
    as_described: bool = False
    manage: Manage | None = None
    user: Mapping[str, Any] = field(default_factory=lambda: IN_PROCESS)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOptions:
    """Options of a delete. `propagation` None: the kind's default; empty texts: no condition."""

    uid: str = ""
    resource_version: str = ""
    propagation: Propagation | None = None
    grace_period_seconds: int | None = None
    dry_run: bool = False
    user: Mapping[str, Any] = field(default_factory=lambda: IN_PROCESS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOptions:
    """Options of a list.

    `resource_version_match`: `Exact`, `NotOlderThan` or empty. `limit` 0: everything at once.
    """

    labels: str = ""
    fields: str = ""
    limit: int = 0
    continue_token: str = ""
    resource_version: str = ""
    resource_version_match: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchOptions:
    """Options of a watch.

    `resource_version` empty or `0`: everything that exists comes first, as ADDED.
    `timeout_seconds` 0: until closed. `bookmarks`: send one when nothing happened for a while
    and before the end. `send_initial_events` (a "watch list"): the objects that exist first, then a
    bookmark annotated `k8s.io/initial-events-end`.
    """

    labels: str = ""
    fields: str = ""
    resource_version: str = ""
    timeout_seconds: float = 0
    bookmarks: bool = False
    send_initial_events: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The object after a write, as JSON. `warnings` are for the person who wrote it."""

    body: bytes
    resource_version: str
    created: bool = False
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """The object after a delete, as JSON. `gone` is False when it was only marked."""

    body: bytes
    uid: str
    gone: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RawPage:
    """A list, or a part of one. `items` are JSON objects with their apiVersion and kind."""

    items: list[bytes]
    resource_version: str
    continue_token: str = ""
    remaining: int | None = None


@dataclass(frozen=True, slots=True)
class RawEvent:
    """One change. A bookmark's body holds apiVersion, kind and metadata.resourceVersion only."""

    type: EventType
    body: bytes
    resource_version: str
