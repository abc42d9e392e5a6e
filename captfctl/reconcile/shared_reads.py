"""Live reads of what many objects use: credentials of one identity, thousands of users (10 §1).

A read is live for a pass when it began after the pass did. So passes that run at the same time may
share one: each asks through its own `Window`, and gets an answer that is no older than the window.
Nothing is kept beyond the last window that may use it; these are Secrets.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from captfctl.cluster.door import Door
from captfctl.model.resource import Resource
from captfctl.reconcile.cache import find

T = TypeVar("T")
_Key = tuple[str, str, str]


@dataclass(slots=True, eq=False)
class _Read:
    began: int
    ended: threading.Event = field(default_factory=threading.Event)
    found: Any = None
    failed: bool = False


class SharedReads:
    """Safe for any number of threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._moment = 0  # counts windows and reads as they begin
        self._windows: set[int] = set()
        self._reads: dict[_Key, _Read] = {}

    @contextmanager
    def window(self, door: Door) -> Iterator["Window"]:
        """For one pass, opened where it begins; reads go through `door`."""
        with self._lock:
            since = self._tick()
            self._windows.add(since)
        try:
            yield Window(self, door, since)
        finally:
            with self._lock:
                self._windows.remove(since)
                self._forget()

    def find(self, window: "Window", resource: Resource[T], namespace: str, name: str) -> T | None:
        key = (resource.name, namespace, name)
        with self._lock:
            read = self._reads.get(key)
            mine = read is None or read.began < window.since
            if read is None or mine:
                read = self._reads[key] = _Read(self._tick())
        if mine:
            return self._read(window.door, read, key, resource)
        read.ended.wait()
        if read.failed:  # its error is another pass's
            return find(window.door, resource, namespace, name)
        found: T | None = read.found
        return found

    def _read(self, door: Door, read: _Read, key: _Key, resource: Resource[T]) -> T | None:
        read.failed = True
        try:
            read.found = found = find(door, resource, key[1], key[2])
            read.failed = False
        finally:
            if read.failed:
                self._drop(key, read)
            read.ended.set()
        return found

    def _drop(self, key: _Key, read: _Read) -> None:
        with self._lock:
            if self._reads.get(key) is read:
                del self._reads[key]

    def _tick(self) -> int:
        self._moment += 1
        return self._moment

    def _forget(self) -> None:
        """Drop what began before every window that is still open."""
        oldest = min(self._windows, default=self._moment + 1)
        for key in [key for key, read in self._reads.items() if read.began < oldest]:
            del self._reads[key]


@dataclass(frozen=True, slots=True)
class Window:
    """The reads of one pass. What they give is shared: copy it before changing it."""

    reads: SharedReads
    door: Door
    since: int

    def find(self, resource: Resource[T], namespace: str, name: str) -> T | None:
        """The object, or None when there is none. Any other failure is raised."""
        return self.reads.find(self, resource, namespace, name)
