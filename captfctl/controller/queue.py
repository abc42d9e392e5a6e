"""A queue of keys to work on; one object is reconciled by at most one worker
(manager.md: Caches and workers)."""

import heapq
import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, Protocol, TypeVar

from captfctl.backoff import doubled
from captfctl.clock import Clock

K = TypeVar("K", bound=Hashable)

BASE_DELAY = 0.005
"""Seconds before the first retry of a key; doubled for each further one, as client-go does."""

MAX_DELAY = 1000.0
"""Seconds between two retries of a key, at most."""


_URGENT_IN_A_ROW = 3
"""Urgent keys handed out before one of the others has its turn, so that neither starve."""


class ShutDown(Exception):
    """The queue hands out no more keys."""


class QueueMetrics(Protocol):
    """What a queue tells about itself. All times are in seconds; calls come from any thread."""

    def depth(self, waiting: int) -> None:
        """How many keys wait for a worker, after each change."""
        ...

    def added(self) -> None:
        """A key was added."""
        ...

    def retried(self) -> None:
        """A key was added again after a failure."""
        ...

    def waited(self, seconds: float) -> None:
        """How long a key waited before a worker took it."""
        ...

    def worked(self, seconds: float) -> None:
        """How long a worker held a key."""
        ...


class NoMetrics:
    """Tells nobody."""

    def depth(self, waiting: int) -> None: ...

    def added(self) -> None: ...

    def retried(self) -> None: ...

    def waited(self, seconds: float) -> None: ...

    def worked(self, seconds: float) -> None: ...


class WorkQueue(Generic[K]):
    """Keys to work on, in order of arrival; urgent ones before the others.

    A key waits in the queue at most once, and is in flight at most once: added while a worker holds
    it, it comes back when the worker is `done`. Nothing added is lost before `shut_down`.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        base_delay: float = BASE_DELAY,
        max_delay: float = MAX_DELAY,
        metrics: QueueMetrics | None = None,
    ) -> None:
        self._clock = clock
        self._base_delay = base_delay
        self._max_delay = max_delay
        self._metrics = metrics or NoMetrics()
        self._lock = threading.Lock()
        self._available = threading.Condition(self._lock)
        self._urgent: OrderedDict[K, None] = OrderedDict()
        self._ready: OrderedDict[K, None] = OrderedDict()
        self._in_a_row = 0
        self._dirty: dict[K, float] = {}  # waiting or to be worked on again: since when
        self._pressing: set[K] = set()  # those of them that are urgent
        self._in_flight: dict[K, float] = {}  # held by a worker: since when
        self._due: dict[K, float] = {}  # delayed: until when
        self._heap: list[tuple[float, int, K]] = []
        self._sequence = 0
        self._failures: dict[K, int] = {}
        self._moved_at = 0.0  # when work that waited last went on
        self._stopped = False
        self._alarm = threading.Event()
        self._timer: threading.Thread | None = None

    def add(self, key: K, *, urgent: bool = False) -> None:
        """Queue `key` unless it already waits. One that becomes urgent meanwhile moves forward."""
        with self._lock:
            self._add(key, urgent=urgent)

    def add_after(self, key: K, seconds: float) -> None:
        """Queue `key` in `seconds`. Of several delays of one key the earliest end counts."""
        if seconds <= 0:
            self.add(key)
            return
        with self._lock:
            if not self._stopped:
                self._delay(key, self._clock.monotonic() + seconds)

    def add_rate_limited(self, key: K) -> float:
        """Queue `key` again after a failure; return the delay in seconds."""
        with self._lock:
            failures = self._failures.get(key, 0)
            self._failures[key] = failures + 1
            delay = doubled(self._base_delay, failures, self._max_delay)
        self._metrics.retried()
        self.add_after(key, delay)
        return delay

    def forget(self, key: K) -> None:
        """`key` works again: its next failure is its first."""
        with self._lock:
            self._failures.pop(key, None)

    def failures(self, key: K) -> int:
        """How often `key` was queued again after a failure since it was last forgotten."""
        with self._lock:
            return self._failures.get(key, 0)

    def get(self) -> K:
        """Wait for a key and hold it until `done`. Raises `ShutDown`."""
        with self._lock:
            while True:
                if self._stopped:
                    raise ShutDown
                self._promote()
                if self._urgent or self._ready:
                    return self._take()
                self._available.wait()

    def try_get(self) -> K | None:
        """A key, held until `done`; None when none is ready."""
        with self._lock:
            if self._stopped:
                return None
            self._promote()
            return self._take() if self._urgent or self._ready else None

    def done(self, key: K) -> None:
        """The worker that got `key` has finished with it."""
        with self._lock:
            since = self._in_flight.pop(key)
            self._moved_at = self._clock.monotonic()
            self._metrics.worked(self._clock.monotonic() - since)
            if key in self._dirty:
                self._offer(key)

    def stalled_for(self) -> float:
        """For how many seconds there has been work and none of it came to an end."""
        with self._lock:
            if not (self._in_flight or self._depth()):
                return 0.0
            return self._clock.monotonic() - self._moved_at

    def next_due(self) -> float | None:
        """Seconds until the next delayed key is ready, 0 when one is; None without delayed keys."""
        with self._lock:
            due = self._earliest()
            return None if due is None else max(0.0, due - self._clock.monotonic())

    def shut_down(self) -> None:
        """Hand out nothing more and drop what waits. Keys in flight may still be `done`."""
        with self._lock:
            self._stopped = True
            self._urgent.clear()
            self._ready.clear()
            self._dirty.clear()
            self._pressing.clear()
            self._due.clear()
            self._heap.clear()
            self._metrics.depth(0)
            self._available.notify_all()
            self._alarm.set()

    def __len__(self) -> int:
        """How many keys wait for a worker (delayed ones not counted)."""
        with self._lock:
            return self._depth()

    # All below: with the lock held.

    def _depth(self) -> int:
        return len(self._urgent) + len(self._ready)

    def _add(self, key: K, *, urgent: bool = False) -> None:
        if self._stopped:
            return
        if urgent and key not in self._pressing:
            self._pressing.add(key)
            if key in self._ready:
                del self._ready[key]
                self._urgent[key] = None
        if key in self._dirty:
            return
        self._dirty[key] = self._clock.monotonic()
        self._metrics.added()
        if not (self._in_flight or self._depth()):
            self._moved_at = self._clock.monotonic()  # there was nothing to do before
        if key not in self._in_flight:
            self._offer(key)

    def _offer(self, key: K) -> None:
        lane = self._urgent if key in self._pressing else self._ready
        lane[key] = None
        self._metrics.depth(self._depth())
        self._available.notify()

    def _take(self) -> K:
        others_turn = self._ready and self._in_a_row >= _URGENT_IN_A_ROW
        urgent = bool(self._urgent) and not others_turn
        self._in_a_row = self._in_a_row + 1 if urgent else 0
        key, _ = (self._urgent if urgent else self._ready).popitem(last=False)
        self._pressing.discard(key)
        now = self._clock.monotonic()
        self._metrics.depth(self._depth())
        self._metrics.waited(now - self._dirty.pop(key))
        self._in_flight[key] = now
        return key

    def _delay(self, key: K, due: float) -> None:
        self._promote()  # an earlier delay that is over must not swallow this one
        known = self._due.get(key)
        if known is not None and known <= due:
            return
        first = self._earliest()
        self._due[key] = due
        self._sequence += 1
        heapq.heappush(self._heap, (due, self._sequence, key))
        if self._timer is None:
            self._timer = threading.Thread(target=self._tick, name="work-queue", daemon=True)
            self._timer.start()
        elif first is None or due < first:
            self._alarm.set()

    def _earliest(self) -> float | None:
        """When the first delayed key is due. Entries that a later, earlier delay replaced go."""
        while self._heap:
            due, _, key = self._heap[0]
            if self._due.get(key) == due:
                return due
            heapq.heappop(self._heap)
        return None

    def _promote(self) -> None:
        now = self._clock.monotonic()
        while (due := self._earliest()) is not None and due <= now:
            key = heapq.heappop(self._heap)[2]
            del self._due[key]
            self._add(key)

    # The timer's thread: wakes a waiting worker when a delayed key is due.

    def _tick(self) -> None:
        while True:
            with self._lock:
                if self._stopped:
                    return
                self._promote()
                due = self._earliest()
                self._alarm.clear()
            delay = MAX_DELAY if due is None else due - self._clock.monotonic()
            self._clock.wait(self._alarm, max(delay, 0.0))
