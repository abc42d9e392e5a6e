"""Processes as /proc shows them: who they are, who their children are, and ending them all.

A process is named by pid and start time, so that a reused pid is never taken for it.
"""

import os
import signal
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

_PROC = Path("/proc")


class Process(NamedTuple):
    """`start` in clock ticks since boot."""

    pid: int
    start: int


def boot_id() -> str:
    """Which boot of the machine this is: a start time means nothing after another."""
    return (_PROC / "sys/kernel/random/boot_id").read_text().strip()


class _Stat(NamedTuple):
    """`status` is the wait status of a process that has ended and was not reaped."""

    state: str
    parent: int
    session: int
    start: int
    status: int


def _stat(pid: int) -> _Stat | None:
    try:
        text = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The command's name stands in parentheses and may itself contain any character.
    fields = text[text.rindex(")") + 2 :].split()
    return _Stat(fields[0], int(fields[1]), int(fields[3]), int(fields[19]), int(fields[-1]))


def identify(pid: int) -> Process | None:
    """The process that has `pid` now; None when there is none, or only its exit status is left."""
    stat = _stat(pid)
    return None if stat is None or stat.state in "ZX" else Process(pid, stat.start)


def alive(process: Process) -> bool:
    """Whether exactly this process lives."""
    return identify(process.pid) == process


def unreaped(process: Process) -> int | None:
    """The wait status of exactly this process, when it has ended and its parent takes no notice."""
    stat = _stat(process.pid)
    if stat is None or stat.state != "Z" or stat.start != process.start:
        return None
    return stat.status


def send(process: Process, number: int) -> bool:
    """Signal exactly this process; False when it is gone."""
    try:
        handle = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return False
    try:
        # The descriptor holds on to the process with the pid now: check it only after it is open.
        if not alive(process):
            return False
        signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        return False
    finally:
        os.close(handle)
    return True


def _all_pids() -> list[int]:
    return [int(name) for name in os.listdir(_PROC) if name.isdigit()]  # noqa: PTH208


def descendants(pid: int) -> list[Process]:
    """All processes below `pid`, itself not included. One that is born meanwhile may be missed."""
    of = _listed_children if (_PROC / f"{pid}/task/{pid}/children").exists() else _scan()
    found: list[Process] = []
    queue = [pid]
    while queue:
        for child in of(queue.pop()):
            queue.append(child)
            process = identify(child)
            if process is not None:
                found.append(process)
    return found


def _listed_children(pid: int) -> list[int]:
    """As the kernel lists them per thread: no need to look at all processes of the machine."""
    found: list[int] = []
    try:
        for thread in (_PROC / f"{pid}/task").iterdir():
            found += map(int, (thread / "children").read_text().split())
    except OSError:
        return found  # it has just ended
    return found


def _scan() -> Callable[[int], list[int]]:
    """For kernels without such lists."""
    children: dict[int, list[int]] = {}
    for other in _all_pids():
        stat = _stat(other)
        if stat is not None:
            children.setdefault(stat.parent, []).append(other)
    return lambda pid: children.get(pid, [])


def uts_namespace(pid: int) -> int:
    """The inode of the process's UTS namespace; 0 when it cannot be told."""
    try:
        return (_PROC / str(pid) / "ns/uts").stat().st_ino
    except OSError:
        return 0


def _marked(pid: int, marker: bytes) -> bool:
    try:
        return marker in (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return False


def _in_cgroup(pid: int, part: str) -> bool:
    try:
        return part in (_PROC / str(pid) / "cgroup").read_text()
    except OSError:
        return False


def belonging(
    marker: str, uts: int = 0, *, cgroup: str = "", leader: Process | None = None
) -> list[Process]:
    """All processes that carry `marker` (`NAME=value`) in the environment they were started with,
    live in the UTS namespace `uts`, which none can leave, in a cgroup with `cgroup` in its path, or
    in the session that `leader` began; and all below them.
    """
    own = os.getpid()
    wanted = marker.encode()

    def belongs(pid: int) -> bool:
        return (
            bool(uts and uts_namespace(pid) == uts)
            or _marked(pid, wanted)
            or bool(cgroup and _in_cgroup(pid, cgroup))
            or (leader is not None and _in_session(pid, leader))
        )

    found = {
        process
        for pid in _all_pids()
        if pid != own and belongs(pid) and (process := identify(pid)) is not None
    }
    below = {process for above in found for process in descendants(above.pid)}
    return sorted(found | below)


def _in_session(pid: int, leader: Process) -> bool:
    """The number of a session is not given to another process while anything is in the session."""
    stat = _stat(pid)
    return stat is not None and stat.session == leader.pid and stat.start >= leader.start


def resident_bytes(processes: Iterable[Process]) -> int:
    """The memory that the processes hold, pages shared by several counted for each."""
    page = os.sysconf("SC_PAGE_SIZE")
    total = 0
    for process in processes:
        try:
            total += int((_PROC / str(process.pid) / "statm").read_text().split()[1]) * page
        except (OSError, IndexError):
            continue
    return total


def end_all(
    find: Callable[[], list[Process]], *, timeout: float, pause: float = 0.02
) -> int | None:
    """SIGKILL what `find` finds until it finds nothing twice in a row.

    Returns how many processes were killed; None when some still live after `timeout` seconds.
    Twice, because a process may fork between being listed and being killed.
    """
    killed: set[Process] = set()
    clear = 0
    limit = time.monotonic() + timeout
    while clear < 2:
        found = find()
        clear = 0 if found else clear + 1
        for process in found:
            if send(process, signal.SIGKILL):
                killed.add(process)
        if found:
            if time.monotonic() > limit:
                return None
            time.sleep(pause)
    return len(killed)
