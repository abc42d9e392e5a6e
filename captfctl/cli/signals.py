"""Ending a long-running command: the first signal in order, the second at once."""

import os
import signal
import threading
from types import FrameType


class Interrupted(SystemExit):
    """A command was told to end before it was done; its code is what a shell makes of a signal."""


class EndRequest(threading.Event):
    """Set when the process is told to end."""

    exit_code = 0
    """128 and the number of the signal, once it is set."""

    def check(self) -> None:
        """Raises `Interrupted` once it is set."""
        if self.is_set():
            raise Interrupted(self.exit_code)


def end_requested() -> EndRequest:
    """Set by SIGTERM, SIGINT, and a terminal that is closed; one more ends the process with 1.

    Call it from the main thread, before any other thread starts.
    """
    ending = EndRequest()

    def handle(number: int, _frame: FrameType | None) -> None:
        if ending.is_set():
            os._exit(1)
        ending.exit_code = 128 + number
        ending.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handle)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup leaves it
        signal.signal(signal.SIGHUP, handle)
    return ending
