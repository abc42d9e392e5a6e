"""A running watch on one collection."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import msgspec

from captfctl.clock import Clock
from captfctl.cluster.door import EventType
from captfctl.embedded.store.collection import Collection, LogEntry, Record
from captfctl.embedded.store.requests import RawEvent
from captfctl.embedded.store.selection import Selection
from captfctl.embedded.store.views import View, shown_body
from captfctl.embedded.store.violations import too_old

BOOKMARK_SECONDS = 60.0
_AT_ONCE = 500
INITIAL_EVENTS_END = "k8s.io/initial-events-end"


@dataclass(frozen=True, slots=True)
class Source:
    """What a watch reads from. `version` gives the latest write's version, under `lock`."""

    collection: Collection
    lock: threading.RLock
    version: Callable[[], int]
    clock: Clock


@dataclass(frozen=True, slots=True)
class Lens:
    """How a watch sees a collection."""

    kind: str
    view: View
    selection: Selection


class RawWatch:
    """A running watch. It holds a place in the change log, not a queue: a slow one blocks nobody.

    Blocking use: iterate, or call `next`. From an event loop: pass `wake` (called by the
    writer's thread, must return at once, and may be called without need) and then `poll`.
    `close` may be called from any thread and ends a blocked `next`.
    """

    def __init__(
        self,
        source: Source,
        lens: Lens,
        *,
        initial: list[RawEvent],
        place: int,
        position: int,
        timeout: float,
        bookmarks: bool,
        wake: Callable[[], None] | None,
    ) -> None:
        self._source = source
        self._lens = lens
        self._initial = initial
        self._place = place
        self._start = self._position = position
        self._bookmarks = bookmarks
        self._deadline = source.clock.monotonic() + timeout if timeout else None
        self._wake = wake
        self._ready = threading.Event()
        self._closed = False
        source.collection.listeners.add(self._notify)

    def _notify(self) -> None:
        self._ready.set()
        if self._wake is not None:
            self._wake()

    def poll(self) -> list[RawEvent]:
        """What there is now, without waiting. Raises `Gone` when it lagged behind the log."""
        if self._initial:
            initial, self._initial = self._initial, []
            return initial
        while not self._closed:
            entries = self._take()
            if not entries:
                break
            events = [event for entry in entries if (event := self._event(entry))]
            if events:
                return events
        return []

    def _take(self) -> list[LogEntry]:
        collection = self._source.collection
        with self._source.lock:
            self._ready.clear()
            if self._place < collection.dropped:
                self.close()
                raise too_old(self._position, collection.floor)
            entries = collection.since(self._place, _AT_ONCE)
            self._place += len(entries)
            if self._place == collection.dropped + len(collection.log):
                self._position = max(self._source.version(), self._start)
            elif entries:
                self._position = entries[-1].version
        return entries

    def _event(self, entry: LogEntry) -> RawEvent | None:
        if entry.version <= self._start:  # of a watch that starts in the future
            return None
        matches = self._lens.selection.matches
        before = entry.before if entry.before is not None and matches(entry.before) else None
        after = entry.after if entry.type is not EventType.DELETED else None
        if after is not None and matches(after):
            kind = EventType.ADDED if before is None else EventType.MODIFIED
            return RawEvent(kind, self._body(after), str(entry.version))
        if before is None:
            return None
        if after is None:
            body = self._body(entry.after)
        else:
            # It left the selection: what is gone is the object as it was selected.
            body = _with_version(self._body(before), entry.version)
        return RawEvent(EventType.DELETED, body, str(entry.version))

    def _body(self, record: Record) -> bytes:
        return shown_body(self._lens.view, record.body, record.views)

    def bookmark(self) -> RawEvent:
        """A bookmark at the place everything up to which has been handed out by `poll`."""
        return bookmark(self._lens, self._position)

    def next(self, timeout: float | None = None) -> list[RawEvent]:
        """Wait for at least one event. Empty: `timeout` seconds passed, or the watch ended."""
        clock = self._source.clock
        until = None if timeout is None else clock.monotonic() + timeout
        while True:
            events = self.poll()
            if events or self.ended:
                return events
            ends = [end for end in (until, self._deadline) if end is not None]
            left = min(ends) - clock.monotonic() if ends else None
            if left is None:
                self._ready.wait()
            elif left <= 0 or not clock.wait(self._ready, left):
                return self.poll()

    @property
    def ended(self) -> bool:
        """Closed, its `timeout_seconds` over, or its resource no longer served."""
        if self._closed:
            return True
        if self._deadline is not None and self._source.clock.monotonic() >= self._deadline:
            return True
        collection = self._source.collection
        return collection.closed and self._place == collection.dropped + len(collection.log)

    def close(self) -> None:
        """End the watch, from any thread."""
        self._closed = True
        with self._source.lock:
            self._source.collection.listeners.discard(self._notify)
        self._notify()

    def __iter__(self) -> Iterator[RawEvent]:
        """Until the end, with bookmarks when they were asked for."""
        while True:
            events = self.next(BOOKMARK_SECONDS if self._bookmarks else None)
            yield from events
            if self._closed:
                return
            if not events and self._bookmarks:
                yield self.bookmark()
            if not events and self.ended:
                return

    def __enter__(self) -> "RawWatch":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def bookmark(lens: Lens, version: int, *, initial_end: bool = False) -> RawEvent:
    """A bookmark at `version`."""
    metadata: dict[str, object] = {"resourceVersion": str(version)}
    if initial_end:
        metadata["annotations"] = {INITIAL_EVENTS_END: "true"}
    body = {"apiVersion": lens.view.api_version, "kind": lens.kind, "metadata": metadata}
    return RawEvent(EventType.BOOKMARK, msgspec.json.encode(body), str(version))


def _with_version(body: bytes, version: int) -> bytes:
    document = msgspec.json.decode(body)
    document["metadata"]["resourceVersion"] = str(version)
    return msgspec.json.encode(document)
