"""A process whose CPU time and memory are read while it runs."""

import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_POLL = 0.1
_IDLE = 0.05  # CPU seconds a second: what watches and probes take


class DidNotHappen(Exception):
    """A process ended, or did not do in time what was waited for; the message ends with its log."""


@dataclass(frozen=True)
class Usage:
    """CPU seconds since the process began (user and system), resident memory in bytes."""

    cpu: float
    memory: int
    peak: int


@dataclass
class Measured:
    """A child process with its output in `log`."""

    child: subprocess.Popen[bytes]
    log: Path

    @property
    def usage(self) -> Usage:
        folder = Path("/proc") / str(self.child.pid)
        fields = (folder / "stat").read_text().rpartition(")")[2].split()
        status = dict(
            line.split(":", 1)
            for line in (folder / "status").read_text().splitlines()
            if ":" in line
        )
        return Usage(
            cpu=(int(fields[11]) + int(fields[12])) / _TICKS,
            memory=_kilobytes(status["VmRSS"]),
            peak=_kilobytes(status["VmHWM"]),
        )

    def idle_for(self, seconds: float) -> bool:
        """Whether it does next to nothing in the next `seconds`."""
        before = self.usage.cpu
        time.sleep(seconds)
        return self.usage.cpu - before <= _IDLE * seconds

    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def wait_until(self, check: Callable[[], bool], what: str, seconds: float) -> None:
        """Raises `DidNotHappen`."""
        deadline = time.monotonic() + seconds
        while not check():
            if self.child.poll() is not None:
                raise DidNotHappen(f"the process ended before {what}:\n{self.output()[-2000:]}")
            if time.monotonic() > deadline:
                raise DidNotHappen(f"not within {seconds:.0f} s: {what}:\n{self.output()[-2000:]}")
            time.sleep(_POLL)


def _kilobytes(text: str) -> int:
    return int(text.split()[0]) * 1024


@contextlib.contextmanager
def measured(command: Sequence[str], log: Path, **environment: str) -> Iterator[Measured]:
    """Run the command meanwhile; it is ended with SIGTERM, and killed when that takes too long."""
    with log.open("wb") as output:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=os.environ | environment,
        )
    try:
        yield Measured(child, log)
    finally:
        child.terminate()
        try:
            child.wait(30)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
