"""Where bytes leave the runner: its standard output and standard error (runner.md: The log).

A sink never fails the run: a closed pipe or a full disk loses log lines, nothing else. A reader
that stops reading must not keep the runner from stopping a step in time, so a sink that cannot
take more bytes lets the owner of the deadlines act meanwhile.
"""

import os
import select
import stat
from collections.abc import Callable

# A pipe that poll reports as writable takes at least this many bytes without blocking (PIPE_BUF).
_SURE = 4096
_ATTEND_MS = 100


class Sink:
    """One output descriptor.

    `attend` is called again and again while the descriptor takes nothing; it returns False to
    give up, which discards everything written from then on.
    """

    def __init__(self, fd: int, attend: Callable[[], bool] | None = None) -> None:
        self._fd = fd
        self.attend = attend
        self._lost = False
        try:
            mode = os.fstat(fd).st_mode
        except OSError:
            self._lost = True
            mode = 0
        self._may_block = stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stat.S_ISCHR(mode)
        self._ready = select.poll()
        if not self._lost:
            self._ready.register(fd, select.POLLOUT)

    def write(self, data: bytes) -> None:
        """Write all of `data`, or lose it."""
        view = memoryview(data)
        while view and not self._lost:
            piece = view[:_SURE] if self._may_block else view
            if self._may_block and not self._wait():
                self._lost = True
                return
            try:
                view = view[os.write(self._fd, piece) :]
            except BlockingIOError:
                continue
            except OSError:
                self._lost = True

    def _wait(self) -> bool:
        """Wait until the descriptor takes bytes; False when its owner gives up."""
        while not self._ready.poll(_ATTEND_MS):
            if self.attend is not None and not self.attend():
                return False
        return True
