"""Orphaned descendants: reaped while a step runs, killed when it has ended
(runner.md: Running a step).

As PID 1, or as a child subreaper, the runner becomes the parent of every descendant whose own
parent is gone, also of one that moved into another session. Children the process already had when
it became the runner are not of its making and are left alone.
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module

_PR_SET_CHILD_SUBREAPER = 36
_PATIENCE_SECONDS = 5.0


class Family:
    """The children of this process that a step may leave behind."""

    def __init__(self) -> None:
        self._ours = frozenset(children())

    def adopt_orphans(self) -> None:
        """Become the parent of orphaned descendants, where the kernel can do it."""
        if os.getpid() != 1:
            _set_subreaper(1)

    def release(self) -> None:
        """Leave orphans to the system's first process again."""
        if os.getpid() != 1:
            _set_subreaper(0)

    def reap_orphans(self, child: int) -> None:
        """Collect ended orphans, so that they do not fill the process table.

        `child` is collected by its owner, not here.
        """
        if self._ours:
            return
        with suppress(ChildProcessError):
            while True:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
                if ended is None or ended.si_pid == child:
                    return
                os.waitpid(ended.si_pid, os.WNOHANG)

    def kill_orphans(self) -> None:
        """Kill every descendant that is left, until none is.

        Killing one may hand its own children over, hence the repetition; a process the kernel
        does not let go of is given up after some seconds.
        """
        give_up = time.monotonic() + _PATIENCE_SECONDS
        pause = 0.001
        while left := [pid for pid in children() if pid not in self._ours]:
            for pid in left:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
                with suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
            if time.monotonic() > give_up:
                return
            time.sleep(pause)
            pause = min(pause * 2, 0.05)


def children() -> list[int]:
    """The process numbers of this process's children; empty where /proc cannot tell."""
    found: list[int] = []
    try:
        for task in os.listdir("/proc/self/task"):
            with open(f"/proc/self/task/{task}/children", "rb") as file:
                found += map(int, file.read().split())
    except OSError:
        return _children_by_parent()
    return found


def _children_by_parent() -> list[int]:
    """The same from every process's own record, for kernels without the `children` file."""
    me = os.getpid()
    try:
        names = os.listdir("/proc")
    except OSError:
        return []
    return [int(name) for name in names if name.isdecimal() and _parent(name) == me]


def _parent(pid: str) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The name in parentheses may hold anything; the parent is the second field after it.
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return -1


def _set_subreaper(on: int) -> None:
    """Ask the kernel; where it cannot be asked, orphans stay out of reach."""
    with suppress(ImportError, OSError, AttributeError):
        _subreaper_call()(on)


def _subreaper_call() -> Callable[[int], object]:
    if getattr(sys, "frozen", False):
        # The executable is static: it has this call built in, and cannot load a library.
        return import_module("_runner_native").set_child_subreaper  # type: ignore[no-any-return]
    import ctypes

    prctl = ctypes.CDLL(None, use_errno=True).prctl
    return lambda on: prctl(_PR_SET_CHILD_SUBREAPER, on, 0, 0, 0)
