"""Live reads that are shared between passes, or begun before they are needed (10 §1).

A read is live for a pass when it began after the pass did. So passes that run at the same time may
share one, as of an identity with thousands of users, and a pass may begin several at once. Each
pass asks through its own `Window`, and gets answers that are no older than the window. Nothing is
kept beyond the last window that may use it; these are Secrets.
"""

import logging
import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from captfctl.cluster.door import Door
from captfctl.cluster.errors import NotFound
from captfctl.model.resource import Resource

T = TypeVar("T")
_Key = tuple[Resource[Any], str, str]

log = logging.getLogger(__name__)


def find(door: Door, resource: Resource[T], namespace: str, name: str) -> T | None:
    """The object, or None when there is none. Any other failure is raised."""
    try:
        return door.get(resource, name, namespace)
    except NotFound:
        return None


class _Threads:
    """Daemons, unlike an executor's: the process never waits for a server that does not answer."""

    def __init__(self, count: int) -> None:
        self._tasks: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._work, name=f"read-ahead-{number}", daemon=True)
            for number in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def do(self, task: Callable[[], None]) -> None:
        self._tasks.put(task)

    def close(self) -> None:
        """After what is queued."""
        for _ in self._threads:
            self._tasks.put(None)

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            task()


@dataclass(slots=True, eq=False)
class _Read:
    began: int
    ended: threading.Event = field(default_factory=threading.Event)
    found: Any = None
    failed: bool = False


class SharedReads:
    """Safe for any number of threads. With `threads` 0 nothing is read ahead."""

    def __init__(self, threads: int = 0) -> None:
        self._ahead = _Threads(threads) if threads else None
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

    def close(self) -> None:
        """No pass runs any more: end the threads."""
        if self._ahead is not None:
            self._ahead.close()

    def find(self, window: "Window", resource: Resource[T], namespace: str, name: str) -> T | None:
        key = (resource, namespace, name)
        read, mine = self._join(window, key)
        if mine:
            self._read(window.door, read, key)
        else:
            read.ended.wait()
        if read.failed:  # its error is another pass's
            return find(window.door, resource, namespace, name)
        found: T | None = read.found
        return found

    def ahead(self, window: "Window", resource: Resource[Any], namespace: str, name: str) -> None:
        if self._ahead is None:
            return
        key = (resource, namespace, name)
        read, mine = self._join(window, key)
        if mine:
            self._ahead.do(partial(self._read_quietly, window.door, read, key))

    def _join(self, window: "Window", key: _Key) -> tuple[_Read, bool]:
        """The read to wait for, and whether it is the caller's to do."""
        with self._lock:
            read = self._reads.get(key)
            if read is not None and read.began > window.since:
                return read, False
            read = self._reads[key] = _Read(self._tick(), failed=True)
            return read, True

    def _read(self, door: Door, read: _Read, key: _Key) -> None:
        try:
            read.found = find(door, *key)
            read.failed = False
        finally:
            self._end(read, key)

    def _read_quietly(self, door: Door, read: _Read, key: _Key) -> None:
        try:
            self._read(door, read, key)
        except Exception as problem:  # the pass that needs it reads it again, and tells
            log.debug("%s %s/%s was not read ahead: %s", key[0].name, *key[1:], problem)

    def _end(self, read: _Read, key: _Key) -> None:
        if read.failed:
            with self._lock:
                if self._reads.get(key) is read:
                    del self._reads[key]
        read.ended.set()

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

    def ahead(self, resource: Resource[Any], namespace: str, name: str) -> None:
        """Begin to read what `find` will be asked for soon. Fails with `find`, if at all."""
        self.reads.ahead(self, resource, namespace, name)
