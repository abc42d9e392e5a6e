"""Ending a long-running command: the first signal in order, the second at once."""

import os
import signal
import threading
from types import FrameType


def end_requested() -> threading.Event:
    """An event that SIGTERM or SIGINT sets; one more of them ends the process with 1.

    Call it from the main thread, before any other thread starts.
    """
    ending = threading.Event()

    def handle(_number: int, _frame: FrameType | None) -> None:
        if ending.is_set():
            os._exit(1)
        ending.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handle)
    return ending
