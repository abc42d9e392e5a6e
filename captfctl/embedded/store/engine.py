"""The store's heart: collections, the lock around them, and commits.

Every write passes through `commit`: durable first, then visible, then told to the watches. Readers
take no lock for single objects, and a short one for lists.
"""

import random
import threading
from collections.abc import Iterable, Sequence
from datetime import datetime

from captfctl.clock import Clock
from captfctl.cluster.door import EventType
from captfctl.cluster.errors import MethodNotAllowed, Unavailable
from captfctl.embedded.store.builtin import builtin_resources
from captfctl.embedded.store.collection import Collection, LogEntry, OwnerIndex, Record
from captfctl.embedded.store.journal import Journal, Row, StoredObject
from captfctl.embedded.store.kinds.definitions import all_names, served_versions
from captfctl.embedded.store.objects import decode, encode, record_of
from captfctl.embedded.store.policies import STORAGES, Bound, bound
from captfctl.embedded.store.registry import Registry, Served
from captfctl.embedded.store.violations import not_found, not_served, terminating
from captfctl.errors import EnvironmentFault
from captfctl.model.resource import Document
from captfctl.model.resources import ADMISSION_POLICIES, CRDS, NAMESPACES
from captfctl.model.resources import ADMISSION_POLICY_BINDINGS as _BINDINGS

LOG_LIMIT = 5_000
LOG_BYTES = 8 * 1024 * 1024


class Moved(Exception):
    """Another write came between reading and committing: try again."""


class Engine:
    """Raises `EnvironmentFault` when what is stored cannot be read."""

    def __init__(
        self,
        journal: Journal,
        clock: Clock,
        chance: random.Random,
        log_limit: int,
        log_bytes: int,
    ) -> None:
        self.journal = journal
        self.clock = clock
        self.chance = chance
        self.lock = threading.RLock()
        self.registry = Registry(builtin_resources(self._taken))
        self.owners = OwnerIndex()
        self.version = journal.version()
        self.closed = False
        self._log_limits = log_limit, log_bytes
        self._policies: tuple[Bound, ...] | None = None
        self._collections: dict[str, Collection] = {}
        self._selectables: dict[str, dict[str, str]] = {}
        self._load()

    def now(self) -> datetime:
        """The time."""
        return self.clock.now()

    def _load(self) -> None:
        stored: dict[str, list[StoredObject]] = {}
        for item in self.journal.objects():
            stored.setdefault(item.storage, []).append(item)
        # Definitions first: they say what can be selected by in their objects.
        for item in stored.get(CRDS.name, ()):
            definition = decode(item.body)
            self.registry.put(definition["metadata"]["name"], served_versions(definition))
        for storage, items in stored.items():
            selectable = self._selectable(storage)
            records = [_restored(item, selectable) for item in items]
            self._collection(storage).load(records)
            for record in records:
                self.owners.replace(storage, None, record)

    def collection(self, served: Served) -> Collection:
        """Raises `Unavailable` when the store is closed."""
        found = self._collections.get(served.storage)
        if found is None or self.closed:
            with self.lock:
                self.require_open()
                return self._collection(served.storage)
        return found

    def _collection(self, storage: str) -> Collection:
        if storage not in self._collections:
            self._collections[storage] = Collection(storage, self.version, *self._log_limits)
        return self._collections[storage]

    def require_open(self) -> None:
        """Raises `Unavailable` when the store is closed."""
        if self.closed:
            raise Unavailable("the store is closed")

    def _selectable(self, storage: str) -> dict[str, str]:
        """The field selectors of a collection, with the path in its stored objects of each."""
        found = self._selectables.get(storage)
        if found is None:
            found = self._selectables[storage] = {
                field: served.view.stored_path(field)
                for served in self.registry.of_storage(storage)
                for field in served.selectable
            }
        return found

    def commit(self, served: Served, before: Record | None, document: Document) -> Record:
        """Store `document` (in `served`'s form) in place of `before`.

        Raises `Moved`, `TooLarge`, `Unavailable`, and for a new object `NotFound` or `Forbidden`
        when its namespace does not exist or is ending.
        """
        stored = served.view.store(document)
        kind = EventType.ADDED if before is None else EventType.MODIFIED
        with self.lock:
            collection = self._ready(served, stored, before)
            entry = self._entry(served, kind, before, stored, self.version + 1)
            self._store(collection, [entry])
            if served.storage == CRDS.name:
                self._define(stored)
        return entry.after

    def remove(self, served: Served, before: Record) -> Record:
        """Raises `Moved`, `Unavailable`. Answers the last state, with the version of its end."""
        with self.lock:
            stored = decode(before.body)
            collection = self._ready(served, stored, before)
            entry = self._entry(served, EventType.DELETED, before, stored, self.version + 1)
            self._store(collection, [entry])
            if served.storage == CRDS.name:
                self._undefine(before.name)
        return entry.after

    def replace_all(
        self, served: Served, changes: Iterable[tuple[Record, Document | None]]
    ) -> list[Record]:
        """Store each document in place of its record, or remove the record (None), in one
        transaction. Not for definitions.

        Answers those that another write changed meanwhile: they are as that left them. Raises
        `TooLarge`, `Unavailable`: then nothing has taken place.
        """
        moved: list[Record] = []
        entries: list[LogEntry] = []
        with self.lock:
            self.require_open()
            collection = self._collection(served.storage)
            for before, document in changes:
                if collection.records.get(before.key) is not before:
                    moved.append(before)
                    continue
                gone = document is None
                kind = EventType.DELETED if gone else EventType.MODIFIED
                stored = decode(before.body) if document is None else served.view.store(document)
                version = self.version + 1 + len(entries)
                entries.append(self._entry(served, kind, before, stored, version))
            if entries:
                self._store(collection, entries)
        return moved

    def _entry(
        self,
        served: Served,
        kind: EventType,
        before: Record | None,
        stored: Document,
        version: int,
    ) -> LogEntry:
        """The change to `stored`, which gets its version. Raises `TooLarge`."""
        stored["metadata"]["resourceVersion"] = str(version)
        record = record_of(stored, encode(stored), version, self._selectable(served.storage))
        return LogEntry(version, kind, before, record)

    def _store(self, collection: Collection, entries: Sequence[LogEntry]) -> None:
        """Durable first, then visible, then told to the watches."""
        rows = [
            Row(
                entry.after.key,
                entry.version,
                None if entry.type is EventType.DELETED else entry.after.body,
            )
            for entry in entries
        ]
        self.journal.write(collection.storage, rows)
        for entry in entries:
            self._publish(collection, entry)
        collection.wake()

    def _ready(self, served: Served, stored: Document, before: Record | None) -> Collection:
        self.require_open()
        collection = self._collection(served.storage)
        metadata = stored["metadata"]
        namespace = metadata.get("namespace", "")
        key = f"{namespace}/{metadata['name']}" if namespace else metadata["name"]
        if collection.records.get(key) is not before:
            raise Moved
        if before is None:
            if namespace:
                self.require_namespace(served, namespace, metadata["name"])
            self._require_definition(served)
        return collection

    def _require_definition(self, served: Served) -> None:
        """Raises `NotFound` or `MethodNotAllowed` when a custom resource is no longer served."""
        if not served.custom:
            return
        record = self._collection(CRDS.name).records.get(served.storage)
        if record is None:
            raise not_served()
        if "deletionTimestamp" in decode(record.body)["metadata"]:
            raise MethodNotAllowed(
                "create not allowed while custom resource definition is terminating"
            )

    def require_namespace(self, served: Served, namespace: str, name: str) -> None:
        """Raises `NotFound` or `Forbidden` when nothing new can be made in the namespace."""
        record = self._collection(NAMESPACES.name).records.get(namespace)
        if record is None:
            raise not_found(NAMESPACES.name, namespace)
        if "deletionTimestamp" in decode(record.body)["metadata"]:
            raise terminating(served.resource.name, name, namespace)

    def policies(self) -> tuple[Bound, ...]:
        """The admission policies in force."""
        found = self._policies
        if found is None:
            with self.lock:
                stored = (self._documents(r.name) for r in (ADMISSION_POLICIES, _BINDINGS))
                found = self._policies = bound(*stored)
        return found

    def _documents(self, storage: str) -> list[Document]:
        return [decode(record.body) for record in self._collection(storage).records.values()]

    def _publish(self, collection: Collection, entry: LogEntry) -> None:
        self.version = entry.version
        collection.apply(entry)
        if collection.storage in STORAGES:
            self._policies = None
        after = None if entry.type is EventType.DELETED else entry.after
        self.owners.replace(collection.storage, entry.before, after)

    def _define(self, definition: Document) -> None:
        name = definition["metadata"]["name"]
        self.registry.put(name, served_versions(definition))
        self._selectables.pop(name, None)
        collection = self._collections.get(name)
        if collection is not None:
            selectable = self._selectable(name)
            for key, record in collection.records.items():
                collection.records[key] = record_of(
                    decode(record.body), record.body, record.version, selectable
                )

    def _undefine(self, name: str) -> None:
        self.registry.put(name, [])
        self._selectables.pop(name, None)
        collection = self._collections.pop(name, None)
        if collection is not None:
            collection.closed = True
            collection.wake()

    def _taken(self, group: str, definition: str) -> dict[str, str]:
        """The names in a group that other definitions have, with the definition's name."""
        taken: dict[str, str] = {}
        for record in tuple(self._collection(CRDS.name).records.values()):
            if record.name == definition:
                continue
            spec = decode(record.body)["spec"]
            if spec["group"] == group:
                taken |= {name.lower(): record.name for name in all_names(spec["names"])}
        return taken

    def compact(self) -> None:
        """Forget the change log of every collection."""
        with self.lock:
            for collection in self._collections.values():
                collection.drop(len(collection.log))
                collection.floor = self.version
                collection.wake()

    def close(self) -> None:
        """End all watches and release what is kept."""
        with self.lock:
            if self.closed:
                return
            self.closed = True
            for collection in self._collections.values():
                collection.closed = True
                collection.wake()
            self.journal.close()


def _restored(item: StoredObject, selectable: dict[str, str]) -> Record:
    try:
        return record_of(decode(item.body), item.body, item.version, selectable)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise EnvironmentFault(
            "the store holds an object that cannot be read",
            where=f"{item.storage}/{item.key}",
            why=str(error),
            do="restore the file from a copy, or move it away to start with an empty store",
        ) from None
