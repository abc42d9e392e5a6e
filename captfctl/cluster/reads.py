"""Live reads that are shared between passes, or begun before they are needed
(reconcile.md: Cached and live reads).

A read is live for a pass when it began after the pass did. So passes that run at the same time may
share one, as of an identity with thousands of users, and a pass may begin several at once. Each
pass asks through its own `Window` and gets answers that are no older than that, and none that began
before the shared one it got last: an identity is read before the Secret that it names. Nothing is
kept beyond the last window that may use it; these are Secrets.
"""

import contextlib
import logging
import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from captfctl.cluster.door import Door, find
from captfctl.model.resource import Resource

T = TypeVar("T")
_Key = tuple[Resource[Any], str, str]

log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class _Read:
    """`began` and `until` count on the clock of `SharedReads`."""

    began: int = 0
    until: int = 0
    ended: threading.Event = field(default_factory=threading.Event)
    found: Any = None
    failed: bool = True

    def do(self, door: Door, key: _Key, moment: Callable[[], int]) -> None:
        try:
            self.found = find(door, *key)
            self.failed = False
        finally:
            self.until = moment()
            self.ended.set()

    def answer(self, door: Door, key: _Key) -> Any:
        """Wait for it. Its error is raised where it was begun; every other pass reads again."""
        self.ended.wait()
        return find(door, *key) if self.failed else self.found


class SharedReads:
    """Safe for any number of threads. With `threads` 0 nothing is read ahead."""

    def __init__(self, threads: int = 0) -> None:
        self.lock = threading.Lock()
        self._threads = _Threads(threads)
        self._moment = 0  # counts windows, and shared reads as they begin and end
        self._windows: set[int] = set()
        self._reads: dict[_Key, _Read] = {}

    @contextmanager
    def window(self, door: Door) -> Iterator["Window"]:
        """For one pass, opened where it begins; reads go through `door`."""
        with self.lock:
            since = self._tick()
            window = Window(self, door, since, since)
            self._windows.add(window.since)
        try:
            yield window
        finally:
            with self.lock:
                self._windows.remove(window.since)
                window.forget()
                self._forget()

    def close(self) -> None:
        """Read nothing ahead any more. A pass that still runs reads for itself."""
        self._threads.close()

    def is_open(self, window: "Window") -> bool:
        """To be asked with the lock held."""
        return window.since in self._windows

    def find(self, window: "Window", key: _Key) -> tuple[Any, int]:
        """The answer, and the moment when it was there."""
        with self.lock:
            if not self.is_open(window):
                return None, 0  # read ahead, and not wanted any more
            read = self._reads.get(key)
            mine = read is None or read.began < window.floor
            if read is None or mine:
                read = self._reads[key] = _Read(self._tick())
        if not mine:
            found = read.answer(window.door, key)
            return found, self.moment() if read.failed else read.until
        try:
            read.do(window.door, key, self.moment)
        except BaseException:
            self._drop(key, read)
            raise
        return read.found, read.until

    def moment(self) -> int:
        """Now, on a clock of our own: no two events have the same."""
        with self.lock:
            return self._tick()

    def ahead(self, key: _Key, task: Callable[[], None]) -> None:
        """Let another thread do `task` some time, unless none is there for it."""
        self._threads.do(partial(_quietly, key, task))

    def _drop(self, key: _Key, read: _Read) -> None:
        with self.lock:
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


@dataclass(slots=True, eq=False)
class Window:
    """The reads of one pass, for that pass's thread. Open `since`; shared reads begin after
    `floor`."""

    reads: SharedReads
    door: Door
    since: int
    floor: int = 0
    _own: dict[_Key, _Read] = field(default_factory=dict)
    _asked: set[_Key] = field(default_factory=set)

    def find(self, resource: Resource[T], namespace: str, name: str) -> T | None:
        """The object, or None when there is none. Any other failure is raised.

        Read now, but for the first time where that was begun ahead.
        """
        key = (resource, namespace, name)
        with self.reads.lock:
            self._asked.add(key)
            read = self._own.pop(key, None)
        found: T | None = find(self.door, *key) if read is None else read.answer(self.door, key)
        return found

    def find_shared(self, resource: Resource[T], namespace: str, name: str) -> T | None:
        """The same of what other passes read, too: copy it before changing it."""
        answer: tuple[T | None, int] = self.reads.find(self, (resource, namespace, name))
        found, self.floor = answer
        return found

    def ahead(self, resource: Resource[Any], namespace: str, name: str) -> None:
        """Begin to read what `find` will be asked for soon, and nothing may happen before."""
        key = (resource, namespace, name)
        self.reads.ahead(key, partial(self._read_own, key))

    def ahead_shared(self, resource: Resource[Any], namespace: str, name: str) -> None:
        """The same for `find_shared`."""
        key = (resource, namespace, name)
        self.reads.ahead(key, partial(self._read_shared, key))

    def _read_own(self, key: _Key) -> None:
        with self.reads.lock:
            if key in self._asked or not self.reads.is_open(self):
                return
            read = self._own[key] = _Read()
        read.do(self.door, key, self.reads.moment)

    def _read_shared(self, key: _Key) -> None:
        self.reads.find(self, key)

    def forget(self) -> None:
        """To be called with the lock held, when the pass is over."""
        self._own.clear()


def _quietly(key: _Key, task: Callable[[], None]) -> None:
    try:
        task()
    except Exception as problem:  # the pass that needs it reads it again, and tells
        log.debug("%s %s/%s was not read ahead: %s", key[0].name, *key[1:], problem)


class _Threads:
    """Daemons, unlike an executor's: the process never waits for a server that does not answer."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._lock = threading.Lock()
        self._started = 0
        self._closed = False
        self._tasks: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()

    def do(self, task: Callable[[], None]) -> None:
        with self._lock:
            if not self._closed and (self._started or self._start()):
                self._tasks.put(task)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            for _ in range(self._started):
                self._tasks.put(None)

    def _start(self) -> int:
        """How many there are now: fewer than wanted where the system gives no more."""
        with contextlib.suppress(RuntimeError):
            while self._started < self._count:
                name = f"read-ahead-{self._started}"
                threading.Thread(target=self._work, name=name, daemon=True).start()
                self._started += 1
        return self._started

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            task()
            del task  # it holds what was read
