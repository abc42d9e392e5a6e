"""One child process: started without a shell, read through two pipes
(runner.md: Running a step)."""

import os
import signal
from collections.abc import Mapping, Sequence

# Those the interpreter itself changes, and those the runner may have been started with ignored.
_DEFAULT_SIGNALS = sorted(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})


class Child:
    """A started process, until `reap` has collected it.

    It has a process group of its own, default signal dispositions, nothing on standard input unless
    it is given something, and no descriptor but the three standard ones.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        directory: str,
        environment: Mapping[str, str],
        stdin_data: bytes = b"",
    ) -> None:
        """Start it in `directory`. Raises OSError, or ValueError for what no system can take."""
        stdin = _input_of(stdin_data) if stdin_data else _empty_input()
        self.stdout, stdout = os.pipe()
        self.stderr, stderr = os.pipe()
        actions = [
            (os.POSIX_SPAWN_DUP2, stdin, 0),
            (os.POSIX_SPAWN_DUP2, stdout, 1),
            (os.POSIX_SPAWN_DUP2, stderr, 2),
        ]
        try:
            self.pid = _spawn(arguments, directory, environment, actions)
        except (OSError, ValueError):
            self.close()
            raise
        finally:
            for descriptor in (stdin, stdout, stderr):
                os.close(descriptor)

    def ended(self) -> bool:
        """Whether it has ended; it stays to be collected, so that its number is not given away."""
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self.pid, flags) is not None

    def send(self, number: signal.Signals) -> None:
        """Send it, and nobody else, a signal."""
        os.kill(self.pid, number)

    def kill_group(self) -> None:
        """Kill whatever is left of its process group."""
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            return

    def close(self) -> None:
        """Stop reading from it."""
        os.close(self.stdout)
        os.close(self.stderr)

    def reap(self) -> int:
        """Wait for its end; its exit code, or the negative number of the signal that ended it."""
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def settle_descriptors() -> None:
    """Let no child inherit what the runner was started with, but the three standard streams.

    Those that are missing are opened, so that no pipe is taken for one of them.
    """
    for standard in range(3):
        try:
            os.fstat(standard)
        except OSError:
            _empty_input()  # takes the lowest free number
    try:
        names = os.listdir("/proc/self/fd")
    except OSError:
        return
    for descriptor in map(int, names):
        if descriptor > 2:
            try:
                os.set_inheritable(descriptor, False)
            except OSError:
                continue  # the listing's own


def _spawn(
    arguments: Sequence[str],
    directory: str,
    environment: Mapping[str, str],
    actions: Sequence[tuple[int, int, int]],
) -> int:
    program = arguments[0]
    if "/" in program:
        program = os.path.abspath(program)
    here = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    try:
        # The child starts where the runner is; the runner is there for no longer than that.
        os.chdir(directory)
        return os.posix_spawnp(
            program,
            list(arguments),
            environment,
            file_actions=actions,
            setpgroup=0,
            setsigmask=[],
            setsigdef=_DEFAULT_SIGNALS,
        )
    finally:
        os.fchdir(here)
        os.close(here)


def _input_of(data: bytes) -> int:
    """A descriptor that reads as `data`; it needs no room on a disk."""
    descriptor = os.memfd_create("stdin", os.MFD_CLOEXEC)
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _empty_input() -> int:
    """A descriptor that reads as empty, also where there is no /dev."""
    try:
        return os.open(os.devnull, os.O_RDONLY)
    except OSError:
        reading, writing = os.pipe()
        os.close(writing)
        return reading
