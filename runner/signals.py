"""Being told to stop (runner.md: Interruption).

As PID 1 the runner gets only the signals it handles, so the handlers are installed before anything
else is loaded. Until then SIGTERM is held back: by the executable as it starts, on a node of this
machine by what starts it.
"""

import signal
import time
from types import FrameType

_STOPS = (signal.SIGTERM, signal.SIGINT)


class Cancellation:
    """Notes the first SIGTERM or SIGINT; later ones change nothing."""

    def __init__(self) -> None:
        self.at: float | None = None
        self._before: list[tuple[signal.Signals, object]] = []

    def watch(self) -> None:
        """Take over SIGTERM and SIGINT, also those that were held back since the process began.
        Main thread only."""
        for number in _STOPS:
            self._before.append((number, signal.signal(number, self._note)))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPS)

    def release(self) -> None:
        """Give the signals back to their earlier handlers."""
        while self._before:
            number, handler = self._before.pop()
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        if self.at is None:
            self.at = time.monotonic()
