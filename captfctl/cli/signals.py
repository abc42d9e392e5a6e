"""Ending a long-running command: the first signal in order, the second at once."""

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType

_LAST_WORDS_SECONDS = 1.0


class Interrupted(SystemExit):
    """A command was told to end before it was done; its code is what a shell makes of a signal."""


class EndRequest(threading.Event):
    """Set when the process is told to end."""

    exit_code = 0
    """128 and the number of the signal, once it is set."""
    left: Callable[[], str] = staticmethod(lambda: "")
    """Tells, in a sentence, what goes on when the process ends at once."""

    def check(self) -> None:
        """Raises `Interrupted` once it is set."""
        if self.is_set():
            raise Interrupted(self.exit_code)

    def end_at_once(self) -> None:
        """Say what is left, and end the process with 1, whatever it was doing.

        `left` may want a lock that is never given back, so it gets a moment and no more.
        """
        told: list[str] = []
        teller = threading.Thread(target=lambda: told.append(self.left()), daemon=True)
        teller.start()
        teller.join(_LAST_WORDS_SECONDS)
        left = "".join(told) or "what ran goes on and is taken over by the next captfctl command"
        os.write(2, f"ended at once: {left}\n".encode())
        os._exit(1)


def end_requested() -> EndRequest:
    """Set by SIGTERM, SIGINT, and a terminal that is closed; one more ends the process with 1.

    Call it once, from the main thread.

    A thread reads the signals, since Python runs a handler in the main thread, between any two of
    its instructions: there an `Event` that the main thread waits for cannot be set safely, as the
    wait may hold its lock at that moment, and while the main thread is in a call that goes on after
    a signal no handler runs at all.
    """
    ending = EndRequest()
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _only_wake)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup leaves it
        signal.signal(signal.SIGHUP, _only_wake)
    threading.Thread(target=_read, args=(reading, ending), name="signals", daemon=True).start()
    return ending


def _only_wake(_number: int, _frame: FrameType | None) -> None:
    """The number is written to the wakeup descriptor only for signals that have a handler."""


def _read(reading: int, ending: EndRequest) -> None:
    while number := os.read(reading, 1):
        if ending.is_set():
            ending.end_at_once()
        ending.exit_code = 128 + number[0]
        ending.set()
