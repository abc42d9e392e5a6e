"""Ending a long-running command: the first signal in order, the second at once."""

import _thread
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

        Called by a signal handler, which may have interrupted anything: `left` may want a lock that
        the interrupted code holds, so it gets a moment in a thread of its own, and nothing here
        takes one.
        """
        told: list[str] = []
        done = _thread.allocate_lock()
        done.acquire()

        def tell() -> None:
            try:
                told.append(self.left())
            finally:
                done.release()

        _thread.start_new_thread(tell, ())
        done.acquire(timeout=_LAST_WORDS_SECONDS)
        left = "".join(told) or "what ran goes on and is taken over by the next captfctl command"
        os.write(2, f"ended at once: {left}\n".encode())
        os._exit(1)


def end_requested() -> EndRequest:
    """Set by SIGTERM, SIGINT, and a terminal that is closed; one more ends the process with 1.

    Call it from the main thread, before any other thread starts.
    """
    ending = EndRequest()

    def handle(number: int, _frame: FrameType | None) -> None:
        if ending.is_set():
            ending.end_at_once()
        ending.exit_code = 128 + number
        ending.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handle)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup leaves it
        signal.signal(signal.SIGHUP, handle)
    return ending
