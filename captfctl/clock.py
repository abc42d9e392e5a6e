"""Time as a parameter: nothing below the command line and the manager asks the system for it."""

import threading
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """What code that depends on time is given."""

    def now(self) -> datetime:
        """The wall-clock time, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds from an arbitrary start that never go back."""
        ...

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Wait until `event` is set or `seconds` have passed; tell whether it is set."""
        ...


class SystemClock:
    """The machine's own time."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    def wait(self, event: threading.Event, seconds: float) -> bool:
        return event.wait(seconds)
