"""What goes away at the end of a step of the interrupt matrix: the API server, or the disk."""

import contextlib
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from tests.support.proxy import FaultProxy

PATIENCE = 120.0
_POLL = 0.002
_FILL = 1 << 16


class Outage(NamedTuple):
    """Nothing answers for the API server for `seconds`, from the end of `step` on; `full_disk`: the
    work directory takes nothing either, until the run has ended."""

    step: str
    seconds: float
    full_disk: bool = False

    def __str__(self) -> str:
        disk = "disk full, " if self.full_disk else ""
        return f"{disk}API away {self.seconds:.0f} s, end of {self.step}"


OUTAGES = (
    *(Outage(step, seconds) for seconds in (2, 10, 60) for step in ("init", "plan", "apply")),
    Outage("apply", 2, full_disk=True),
)


def strike(
    outage: Outage,
    proxy: FaultProxy,
    work: Path,
    at_end: Path,
    running: Callable[[], str],
    ended: Callable[[], bool],
) -> threading.Timer:
    """Wait for the moment and take it all away; the timer brings the server back.

    `at_end` is the file that the module makes with its last resource; `running` tells which command
    of the runtime runs, `ended` whether the run is over.
    """
    if outage.step == "apply":
        _wait(at_end.exists, ended)
    else:
        _wait(lambda: running() == outage.step, ended)
        _wait(lambda: running() != outage.step, ended)
    proxy.leave()
    if outage.full_disk:
        fill(work)
    back = threading.Timer(outage.seconds, proxy.heal)
    back.start()
    return back


def _wait(condition: Callable[[], object], ended: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition() and not ended():
        if time.monotonic() > deadline:
            raise TimeoutError("the moment of the outage did not come")
        time.sleep(_POLL)


def fill(directory: Path) -> None:
    """Leave no byte of room in the directory's file system."""
    with (directory / "filler").open("wb", buffering=0) as file, contextlib.suppress(OSError):
        size = _FILL
        while size:
            try:
                file.write(bytes(size))
            except OSError:
                size //= 2


@contextlib.contextmanager
def small_disk(directory: Path) -> Iterator[None]:
    """A file system of 16 MiB for the work directory; `OSError` where none may be mounted."""
    directory.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(directory)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        raise PermissionError("a full disk needs a file system to be mounted: run this as root")
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            (directory / "filler").unlink()
        subprocess.run(["umount", "--lazy", str(directory)], check=True)
