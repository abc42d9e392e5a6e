"""The typed door into the store of the same process."""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from captfctl.cluster.door import Page, Propagation, Watch, WatchEvent
from captfctl.embedded.store.merge import merge_patch
from captfctl.embedded.store.objects import decode
from captfctl.embedded.store.registry import Served
from captfctl.embedded.store.requests import (
    DeleteOptions,
    ListOptions,
    Manage,
    WatchOptions,
    WriteOptions,
    Written,
)
from captfctl.embedded.store.watch import RawWatch
from captfctl.model.resource import Document, Resource

if TYPE_CHECKING:
    from captfctl.embedded.store.store import EmbeddedStore

T = TypeVar("T")
U = TypeVar("U")

Track = Callable[[Served, str], Manage]
"""What takes note of who sets which field, for a kind and a subresource."""


class TypedWatch(Watch[T]):
    """A raw watch, decoded."""

    def __init__(self, resource: Resource[T], raw: RawWatch) -> None:
        self._resource = resource
        self._raw = raw

    def __iter__(self) -> Iterator[WatchEvent[T]]:
        for event in self._raw:
            found = None if event.type == "BOOKMARK" else self._resource.decode(event.body)
            yield WatchEvent(event.type, found, event.resource_version)

    def close(self) -> None:
        """End the watch, from any thread."""
        self._raw.close()

    def __enter__(self) -> "TypedWatch[T]":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class EmbeddedDoor:
    """Implements `captfctl.cluster.door.Door`.

    `track` takes note of what each write sets; `user` is the `userInfo` of who writes.
    """

    def __init__(
        self, store: "EmbeddedStore", track: Track | None, user: Mapping[str, Any]
    ) -> None:
        self._store = store
        self._track = track
        self._user = user

    def _options(self, served: Served, subresource: str = "") -> WriteOptions:
        manage = self._track(served, subresource) if self._track else None
        return WriteOptions(manage=manage, user=self._user)

    def _served(self, resource: Resource[Any]) -> Served:
        return self._store.registry.find(resource.group, resource.version, resource.plural)

    def get(self, resource: Resource[T], name: str, namespace: str = "") -> T:
        return resource.decode(self._store.get(self._served(resource), name, namespace))

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
        options = ListOptions(
            labels=labels,
            fields=fields,
            limit=limit,
            continue_token=continue_token,
            resource_version=resource_version,
        )
        page = self._store.list(self._served(resource), namespace, options)
        return Page(
            [resource.decode(body) for body in page.items],
            page.resource_version,
            page.continue_token,
            page.remaining,
        )

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
        options = WatchOptions(
            labels=labels,
            fields=fields,
            resource_version=resource_version,
            timeout_seconds=timeout_seconds,
            bookmarks=True,
        )
        return TypedWatch(resource, self._store.watch(self._served(resource), namespace, options))

    def create(self, resource: Resource[T], obj: T, namespace: str = "") -> T:
        document = decode(resource.encode(obj))
        metadata = document.get("metadata") or {}
        place = namespace or metadata.get("namespace", "")
        served = self._served(resource)
        written = self._store.create(served, document, place, self._options(served))
        return self._typed(resource, written)

    def create_subresource(
        self,
        resource: Resource[T],
        name: str,
        namespace: str,
        subresource: str,
        body: U,
        answer: type[U],
    ) -> U:
        document = decode(msgspec.json.encode(body))
        found = self._store.create_subresource(
            self._served(resource), name, namespace, subresource, document
        )
        return msgspec.convert(found, answer)

    def update(self, resource: Resource[T], obj: T, *, subresource: str = "") -> T:
        document = decode(resource.encode(obj))
        metadata, served = document["metadata"], self._served(resource)
        written = self._store.modify(
            served,
            metadata.get("name", ""),
            metadata.get("namespace", ""),
            # A repeated attempt needs the document as it was: reading it drops what is unknown.
            lambda _current: decode(resource.encode(obj)),
            self._options(served, subresource),
            subresource=subresource,
        )
        return self._typed(resource, written)

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
        wanted: Document = decode(msgspec.json.encode(patch))
        if resource_version:
            wanted.setdefault("metadata", {})["resourceVersion"] = resource_version

        def change(current: Document | None) -> Document:
            merged: Document = merge_patch(current, wanted)
            return merged

        served = self._served(resource)
        options = self._options(served, subresource)
        written = self._store.modify(
            served, name, namespace, change, options, subresource=subresource
        )
        return self._typed(resource, written)

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
        options = DeleteOptions(
            uid=uid,
            resource_version=resource_version,
            propagation=propagation,
            grace_period_seconds=grace_period_seconds,
            user=self._user,
        )
        self._store.delete(self._served(resource), name, namespace, options)

    def _typed(self, resource: Resource[T], written: Written) -> T:
        return resource.decode(written.body)
