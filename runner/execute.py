"""Running one command: output as it arrives, signals, time limits, nothing left behind
(runner.md: Running a step).

One thread, one loop: it waits for output, for the child's end and for signals at once, so the
order of a stream is kept and no lock is needed. A child runs in a process group of its own. A
signal goes to the child alone (the runtime stops its plugins itself); what is left of it after its
end is killed.
"""

import os
import select
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import FrameType
from typing import NamedTuple, Protocol

from runner import descendants
from runner.child import Child
from runner.signals import Cancellation

_READ = 1 << 16
_FOREVER = float("inf")
_DEFAULT_STOP_SECONDS = 60.0


class Consumer(Protocol):
    """Takes one output stream of a child."""

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        ...

    def close(self) -> None:
        """The stream has ended."""
        ...

    def due(self) -> float:
        """The monotonic time at which `tick` must be called; infinite when never."""
        ...

    def tick(self) -> None:
        """Let go of what was held back too long."""
        ...


class Command(NamedTuple):
    """What to start. `stop_seconds` is the time between SIGTERM and SIGKILL."""

    arguments: Sequence[str]
    directory: str
    environment: Mapping[str, str]
    stop_seconds: float
    stdin: bytes = b""


class Ended(NamedTuple):
    """How a command ended.

    `exit` is its own exit code when `error` is empty; otherwise 1, and `error` says which signal
    ended it or why it was not started.
    """

    exit: int
    error: str
    seconds: float


def stop_seconds(nanoseconds: int) -> float:
    """The stop timeout in seconds; one that is not positive means a minute
    (runner.md: Flags of run)."""
    return nanoseconds / 1e9 if nanoseconds > 0 else _DEFAULT_STOP_SECONDS


class Supervisor:
    """Starts commands one at a time and owns the process's signals while entered.

    Must be entered in the main thread. `flush` is called when `flush_due` (seconds) says so.
    """

    def __init__(
        self,
        cancellation: Cancellation,
        flush_due: Callable[[], float],
        flush: Callable[[], None],
    ) -> None:
        self._cancellation = cancellation
        self._flush_due = flush_due
        self._flush = flush
        self._wake_read, self._wake_write = -1, -1
        self._restore: list[Callable[[], object]] = []
        self._family = descendants.Family()
        self._running: _Running | None = None

    def __enter__(self) -> "Supervisor":
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)
        before = signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        self._restore.append(lambda: signal.set_wakeup_fd(before))
        child_handler = signal.signal(signal.SIGCHLD, _wake_only)
        self._restore.append(lambda: signal.signal(signal.SIGCHLD, child_handler))
        mask = signal.pthread_sigmask(
            signal.SIG_UNBLOCK, (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD)
        )
        self._restore.append(lambda: signal.pthread_sigmask(signal.SIG_SETMASK, mask))
        self._family.adopt_orphans()
        self._restore.append(self._family.release)
        return self

    def __exit__(self, *_: object) -> None:
        for undo in reversed(self._restore):
            undo()
        os.close(self._wake_read)
        os.close(self._wake_write)

    @property
    def cancelled_at(self) -> float | None:
        """When the run was told to stop, in monotonic seconds."""
        return self._cancellation.at

    @property
    def cancelled(self) -> bool:
        """Whether the run was told to stop."""
        return self.cancelled_at is not None

    def run(
        self, command: Command, out: Consumer, err: Consumer, *, limit: float | None = None
    ) -> Ended:
        """Run a command to its end.

        With `limit` (seconds) the run's cancellation is ignored, and SIGTERM is sent when the time
        is up; without, a cancelled run starts nothing and SIGTERM is sent on cancellation.
        """
        started = time.monotonic()
        if self.cancelled and limit is None:
            return Ended(1, "not started, the run was cancelled before it", 0.0)
        try:
            child = Child(command.arguments, command.directory, command.environment, command.stdin)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            what = f"could not be started: {command.arguments[0]}: {reason}"
            return Ended(1, what, time.monotonic() - started)
        self._running = _Running(child, command.stop_seconds, started, limit)
        try:
            self._attend_to_end(self._running, out, err)
        finally:
            code = self._clear_away(self._running)
            self._running = None
        return _judge(code, time.monotonic() - started)

    def pause(self, seconds: float) -> None:
        """Let time pass between two commands; less when the run is told to stop meanwhile."""
        until = time.monotonic() + seconds
        before = self.cancelled
        poll = select.poll()
        poll.register(self._wake_read, select.POLLIN)
        while self.cancelled == before and (left := until - time.monotonic()) > 0:
            if poll.poll(left * 1000):
                self._drain_wakeups()

    def keep_deadlines(self) -> bool:
        """Act on deadlines while output is stuck; False when waiting longer is pointless."""
        running = self._running
        if running is None:
            return not self.cancelled
        running.keep_deadlines(self.cancelled_at)
        return time.monotonic() < running.give_up_at

    def _attend_to_end(self, running: "_Running", out: Consumer, err: Consumer) -> None:
        child = running.child
        streams = {child.stdout: out, child.stderr: err}
        poll = select.poll()
        poll.register(self._wake_read, select.POLLIN)
        for fd in streams:
            poll.register(fd, select.POLLIN)
        while True:
            running.keep_deadlines(self.cancelled_at)
            if running.ended and (not streams or time.monotonic() >= running.close_at):
                break
            for fd, _ in poll.poll(self._timeout(running, out, err)):
                if fd == self._wake_read:
                    self._drain_wakeups()
                elif data := os.read(fd, _READ):
                    streams[fd].feed(data)
                else:
                    poll.unregister(fd)
                    del streams[fd]
            for consumer in (out, err):
                if consumer.due() <= time.monotonic():
                    consumer.tick()
            if self._flush_due() <= 0:
                self._flush()
        out.close()
        err.close()

    def _timeout(self, running: "_Running", out: Consumer, err: Consumer) -> float | None:
        """Milliseconds until something must be done without being woken."""
        now = time.monotonic()
        moment = min(running.next_deadline(), out.due(), err.due(), now + self._flush_due())
        return None if moment == _FOREVER else max(0.0, (moment - now) * 1000 + 1)

    def _drain_wakeups(self) -> None:
        with suppress(BlockingIOError):
            while os.read(self._wake_read, _READ):
                pass
        self._family.reap_orphans(self._running.child.pid if self._running else 0)

    def _clear_away(self, running: "_Running") -> int:
        """Kill what is left of the child's group and of its descendants; return its status."""
        child = running.child
        child.close()
        # It is reaped last: until then its process group's number cannot be given away.
        child.kill_group()
        code = child.reap()
        self._family.kill_orphans()
        return code


class _Running:
    """One started child and its deadlines, all in monotonic seconds."""

    def __init__(
        self,
        child: Child,
        stop_seconds: float,
        started: float,
        limit: float | None,
    ) -> None:
        self.child = child
        self.ended = False
        self.close_at = _FOREVER
        self._stop_seconds = stop_seconds
        self._limited = limit is not None
        self._term_at = started + limit if limit is not None else _FOREVER
        self._kill_at = _FOREVER
        self._killed = False

    @property
    def give_up_at(self) -> float:
        """From when on output that nobody takes is thrown away."""
        return min(self.close_at, self._kill_at)

    def keep_deadlines(self, cancelled_at: float | None) -> None:
        """Notice the child's end; send the signals that are due."""
        self._notice_end()
        if self.ended:
            return
        now = time.monotonic()
        if not self._limited and cancelled_at is not None:
            self._term_at = min(self._term_at, cancelled_at)
        if now >= self._term_at and self._kill_at == _FOREVER:
            self._kill_at = now + self._stop_seconds
            self.child.send(signal.SIGTERM)
        elif now >= self._kill_at and not self._killed:
            self._killed = True
            self.child.send(signal.SIGKILL)

    def next_deadline(self) -> float:
        """When `keep_deadlines` has something to do."""
        if self.ended:
            return self.close_at
        if self._killed:
            return _FOREVER  # SIGCHLD wakes the loop
        return self._term_at if self._kill_at == _FOREVER else self._kill_at

    def _notice_end(self) -> None:
        if not self.ended and self.child.ended():
            self.ended = True
            self.close_at = time.monotonic() + self._stop_seconds


def _wake_only(_number: int, _frame: FrameType | None) -> None:
    """A handler, so that the signal arrives; the wake-up descriptor does the rest."""


def _judge(code: int, seconds: float) -> Ended:
    if code >= 0:
        return Ended(code, "", seconds)
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return Ended(1, f"was killed by {name}", seconds)
