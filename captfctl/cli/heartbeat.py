"""Lines of a long-running command: what happens, and that it is alive while nothing does."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from captfctl.clock import Clock

SILENCE_SECONDS = 8.0
"""With the time of a look, less than ten seconds."""
LOOK_SECONDS = 0.5
"""Between two looks at whether it was silent for so long."""


class Heartbeat:
    """Prints whole lines, and after some silence what is being waited for.

    The waiting may be in any call, so a thread of its own keeps the time.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._printing = threading.Lock()
        self._ended = threading.Event()
        self._doing = ""
        self._since = self._spoke = clock.monotonic()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def __enter__(self) -> "Heartbeat":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def say(self, line: str) -> None:
        """Print one line now."""
        with self._printing:
            print(line, flush=True)
            self._spoke = self._clock.monotonic()

    def now_doing(self, what: str) -> None:
        """Name what is waited for from now on; empty: something else shows that."""
        if what != self._doing:
            self._doing, self._since = what, self._clock.monotonic()

    @contextmanager
    def doing(self, what: str) -> Iterator[None]:
        """The same, for the time of a block."""
        before = self._doing
        self.now_doing(what)
        try:
            yield
        finally:
            self.now_doing(before)

    def _beat(self) -> None:
        while not self._clock.wait(self._ended, LOOK_SECONDS):
            doing, now = self._doing, self._clock.monotonic()
            if doing and now - self._spoke >= SILENCE_SECONDS:
                self.say(f"{doing} ({now - self._since:.0f}s)")
