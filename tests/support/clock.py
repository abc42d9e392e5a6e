"""A clock that only moves when a test moves it."""

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

START = datetime(2026, 9, 25, 12, 0, tzinfo=UTC)
_LOOK = 0.002
DEADLINE = 20.0
"""Real seconds after which a wait of a test counts as failed."""


class FakeClock:
    """`advance` moves the time and thereby ends waits. Waits of other threads are real waits."""

    def __init__(self, start: datetime = START) -> None:
        self._start = start
        self._elapsed = 0.0
        self._lock = threading.Lock()
        self._waits = 0

    def now(self) -> datetime:
        with self._lock:
            return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        with self._lock:
            return self._elapsed

    def wait(self, event: threading.Event, seconds: float) -> bool:
        with self._lock:
            until = self._elapsed + seconds
            self._waits += 1
        while not event.wait(_LOOK):
            if self.monotonic() >= until:
                return event.is_set()
        return True

    def advance(self, seconds: float) -> None:
        with self._lock:
            self._elapsed += seconds

    def run_until(self, holds: Callable[[], bool], step: float = 0.1) -> None:
        """Advance in steps until `holds`; fail when it does not within a real time limit."""
        end = time.monotonic() + DEADLINE
        while not holds():
            assert time.monotonic() < end, "it did not happen in time"
            self.advance(step)
            time.sleep(_LOOK)

    def run_with_waiter(self, holds: Callable[[], bool], step: float) -> None:
        """The same with one other thread, which waits for `step` at a time and is never outrun: it
        is back in its wait before each step, however busy the machine is."""
        eventually(lambda: self._waits > 0, "a wait")
        while not holds():
            self._step(step)

    def _step(self, seconds: float) -> None:
        before = self._waits
        self.advance(seconds)
        eventually(lambda: self._waits > before, "the next wait")


def eventually(holds: Callable[[], bool], what: str = "it") -> None:
    """Wait for what another thread is about to do; fail when it does not within a time limit."""
    end = time.monotonic() + DEADLINE
    while not holds():
        assert time.monotonic() < end, f"{what} did not happen in time"
        time.sleep(_LOOK)
