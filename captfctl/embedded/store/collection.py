"""All objects of one resource, in memory, with the changes that led here.

Everything here is guarded by the store's lock, except reading one record.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from captfctl.cluster.door import EventType

_BESIDE_BODY = 1024
"""What an entry of the log takes besides the body of its object, about: labels, fields, itself."""

_LEAST = 12
"""So many changes are kept however large they are: one state may be written with nearly as many."""


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """One stored object: its JSON, and what selectors and indexes ask about."""

    key: str
    namespace: str
    name: str
    uid: str
    version: int
    body: bytes
    labels: Mapping[str, str]
    fields: Mapping[str, str]
    owners: tuple[str, ...] = ()
    views: dict[str, bytes] = field(default_factory=dict)
    """The same object in other versions, by apiVersion, made when first asked for."""


@dataclass(frozen=True, slots=True, eq=False)
class LogEntry:
    """One change. A deletion's `after` is the last state with the deletion's version."""

    version: int
    type: EventType
    before: Record | None
    after: Record

    @property
    def size(self) -> int:
        """Bytes that it keeps, about; the next change of the object may share them."""
        return len(self.after.body) + _BESIDE_BODY


def key_of(namespace: str, name: str) -> str:
    """Where an object stands in the order of its collection: that of etcd's keys."""
    return f"{namespace}/{name}" if namespace else name


@dataclass(slots=True, eq=False)
class Collection:
    """`floor`: the version from which on the change log is complete. The log is bounded in changes
    and in bytes of the objects in it: what changes large objects must not keep them all."""

    storage: str
    floor: int
    log_limit: int
    log_bytes: int
    records: dict[str, Record] = field(default_factory=dict)
    keys: list[str] = field(default_factory=list)
    log: list[LogEntry] = field(default_factory=list)
    logged: int = 0
    """Bytes of the objects in the log."""
    dropped: int = 0
    """How many entries the log has lost at its start: a place in it is counted from the first."""
    listeners: set[Callable[[], None]] = field(default_factory=set)
    closed: bool = False

    def load(self, records: list[Record]) -> None:
        """Take over what an earlier process stored."""
        self.records = {record.key: record for record in records}
        self.keys = sorted(self.records)

    def apply(self, entry: LogEntry) -> None:
        """Take over a change that has been made durable."""
        key = entry.after.key
        if entry.type is EventType.DELETED:
            del self.records[key]
            self.keys.pop(bisect_left(self.keys, key))
        else:
            if key not in self.records:
                insort(self.keys, key)
            self.records[key] = entry.after
        self.log.append(entry)
        self.logged += entry.size
        # Dropping a fifth at a time keeps the cost of shifting the list away from single writes.
        if len(self.log) > self.log_limit * 1.2:
            self.drop(len(self.log) - self.log_limit)
        if self.logged > self.log_bytes * 1.2:
            self.drop(self._excess())

    def _excess(self) -> int:
        """How many changes are beyond the limit in bytes."""
        left = self.logged
        for count, entry in enumerate(self.log[:-_LEAST]):
            if left <= self.log_bytes:
                return count
            left -= entry.size
        return max(0, len(self.log) - _LEAST)

    def drop(self, count: int) -> None:
        """Forget the oldest `count` changes."""
        if count:
            self.floor = self.log[count - 1].version
            self.dropped += count
            self.logged -= sum(entry.size for entry in self.log[:count])
            del self.log[:count]

    def wake(self) -> None:
        """Tell everybody who watches that there is something new."""
        for listener in tuple(self.listeners):
            listener()

    def span(self, namespace: str) -> tuple[str, str]:
        """The first key of a namespace, and the first one after it; empty: no bound."""
        return (f"{namespace}/", f"{namespace}0") if namespace else ("", "")

    def slice(self, namespace: str, after: str = "") -> list[Record]:
        """Records in order, those with keys greater than `after` only."""
        first, end = self.span(namespace)
        start = bisect_left(self.keys, max(first, f"{after}\0" if after else ""))
        stop = bisect_left(self.keys, end) if end else len(self.keys)
        records = self.records
        return [records[key] for key in self.keys[start:stop]]

    def at(self, version: int, namespace: str, after: str = "") -> list[Record]:
        """Records in order as they were at `version`, which must not be below `floor`."""
        place = self.place(version)
        if place == self.dropped + len(self.log):
            return self.slice(namespace, after)
        first, end = self.span(namespace)
        past: dict[str, Record | None] = {}
        for entry in self.log[place - self.dropped :]:
            past.setdefault(entry.after.key, entry.before)
        now = {record.key: record for record in self.slice(namespace, after)}
        for key, record in past.items():
            if key <= after or key < first or (end and key >= end):
                continue
            if record is None:
                now.pop(key, None)
            else:
                now[key] = record
        return [now[key] for key in sorted(now)]

    def place(self, version: int) -> int:
        """The place in the log of the first change after `version`."""
        return self.dropped + bisect_left(self.log, version + 1, key=lambda entry: entry.version)

    def since(self, place: int, limit: int) -> list[LogEntry]:
        """At most `limit` changes from a place on, which must not be below `dropped`."""
        start = place - self.dropped
        return self.log[start : start + limit]


@dataclass(slots=True, eq=False)
class OwnerIndex:
    """Which objects name a uid as their owner."""

    dependents: dict[str, set[tuple[str, str]]] = field(default_factory=dict)

    def replace(self, storage: str, before: Record | None, after: Record | None) -> None:
        """Take note of a change; None: the object did not, or does not, exist."""
        old = before.owners if before else ()
        new = after.owners if after else ()
        if old == new:
            return
        record = after or before
        assert record is not None
        for uid in old:
            found = self.dependents.get(uid, set())
            found.discard((storage, record.key))
            if not found:
                self.dependents.pop(uid, None)
        for uid in new:
            self.dependents.setdefault(uid, set()).add((storage, record.key))

    def of(self, uid: str) -> Iterator[tuple[str, str]]:
        """Storage and key of every dependent."""
        yield from sorted(self.dependents.get(uid, ()))
