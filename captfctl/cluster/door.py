"""The one door to objects: what every implementation offers, and its promises.

Promises, held by one contract test suite for every implementation (tests/contract):

- a write that returns has taken place; a write that raises `Unavailable(outcome_unknown=True)` may
  have, any other error means it has not;
- objects handed out belong to the caller;
- `watch` delivers every change after its `resource_version`, in order, or raises `Gone`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, Protocol, TypeVar

from captfctl.cluster.errors import NotFound, Unavailable
from captfctl.model.meta import ApiObject, ObjectMeta
from captfctl.model.resource import Document, Resource

T = TypeVar("T")
U = TypeVar("U")
A = TypeVar("A", bound=ApiObject)


class Propagation(StrEnum):
    """What happens to an object's dependents when it is deleted."""

    BACKGROUND = "Background"
    FOREGROUND = "Foreground"
    ORPHAN = "Orphan"


class EventType(StrEnum):
    """What happened to the object of a watch event."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


@dataclass(frozen=True, slots=True)
class WatchEvent(Generic[T]):
    """One change. A bookmark carries only a resourceVersion: `object` is None then."""

    type: EventType
    object: T | None
    resource_version: str


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A list, or a part of one: pass `continue_token` to `list` for what follows."""

    items: list[T]
    resource_version: str
    continue_token: str = ""
    remaining: int | None = None


class Watch(Protocol[T]):
    """A running watch: iterate it, and close it from any thread.

    Iteration ends when the watch is closed or the server ends it. It raises `Gone` when changes
    were missed, `Unavailable` when the connection broke.
    """

    def __iter__(self) -> Iterator[WatchEvent[T]]: ...

    def close(self) -> None:
        """End the iteration, also one that waits in another thread."""
        ...

    def __enter__(self) -> "Watch[T]": ...

    def __exit__(self, *_: object) -> None: ...


class Door(Protocol):
    """Reads and writes of API objects. Every method raises the errors of `captfctl.cluster.errors`.

    `labels` and `fields` are selectors in Kubernetes' own notation (`a=b,c!=d,e in (f,g)`).
    """

    def get(self, resource: Resource[T], name: str, namespace: str = "") -> T:
        """The object. Raises `NotFound`."""
        ...

    def list(
        self,
        resource: Resource[T],
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        limit: int = 0,
        continue_token: str = "",
        resource_version: str = "",
    ) -> Page[T]:
        """Objects of one namespace, or of all when it is empty, in order of namespace and name."""
        ...

    def watch(
        self,
        resource: Resource[T],
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        resource_version: str = "",
        timeout_seconds: int = 0,
    ) -> Watch[T]:
        """Changes after `resource_version`; empty: everything that exists first, as ADDED."""
        ...

    def create(self, resource: Resource[T], obj: T, namespace: str = "") -> T:
        """Raises `AlreadyExists`, `Invalid`, `TooLarge`."""
        ...

    def create_subresource(
        self,
        resource: Resource[T],
        name: str,
        namespace: str,
        subresource: str,
        body: U,
        answer: type[U],
    ) -> U:
        """POST to a subresource: a token request, a pod's binding."""
        ...

    def update(self, resource: Resource[T], obj: T, *, subresource: str = "") -> T:
        """Replace the object. Its own resourceVersion, when set, must be the stored one."""
        ...

    def patch(
        self,
        resource: Resource[T],
        name: str,
        namespace: str,
        patch: Mapping[str, Any],
        *,
        resource_version: str = "",
        subresource: str = "",
    ) -> T:
        """A JSON merge patch. With `resource_version` it applies to that version or not at all."""
        ...

    def delete(
        self,
        resource: Resource[T],
        name: str,
        namespace: str = "",
        *,
        uid: str = "",
        resource_version: str = "",
        propagation: Propagation | None = None,
        grace_period_seconds: int | None = None,
    ) -> None:
        """Delete, or mark for deletion while finalizers remain. None: the kind's own default."""
        ...


def find(door: Door, resource: Resource[T], namespace: str, name: str) -> T | None:
    """The object read live, or None when there is none. Raises every other error of the door."""
    try:
        return door.get(resource, name, namespace)
    except NotFound:
        return None


def patch_as_read(
    door: Door,
    resource: Resource[Any],
    meta: ObjectMeta,
    patch: Document,
    *,
    again: str,
) -> None:
    """Merge onto the version that was read, for a person. Raises `Conflict` when the object is
    another one, and every other error of the door.

    `again` is what to do when it is not known whether the write took place.
    """
    try:
        door.patch(
            resource, meta.name, meta.namespace, patch, resource_version=meta.resource_version
        )
    except Unavailable as problem:
        if problem.outcome_unknown:
            problem.do = again
        raise


def delete_as_read(door: Door, resource: Resource[A], obj: A) -> None:
    """Delete the object if it is still the version that was read. Raises `Conflict` when it is not,
    `NotFound` when it is gone, and every other error of the door."""
    meta = obj.metadata
    door.delete(
        resource,
        meta.name,
        meta.namespace,
        uid=meta.uid,
        resource_version=meta.resource_version,
    )
