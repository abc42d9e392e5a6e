"""Storing, or keeping, a state that a step could not store
(runner.md: A state that could not be stored)."""

import datetime
import os
import re
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from runner import kept, steps, wire
from runner.context import Context
from runner.execute import Ended, Supervisor
from runner.keeper import Keeper
from runner.text import unwrapped
from runner.workdir import PrepareError, Workdir, write_private

_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 30.0
_LONGEST_ATTEMPT = 60.0
_SHORTEST_TIME = 10.0
_REFUSALS = 3
"""Give up after this many errors that waiting cannot cure."""
_LARGEST_STATE = 256 << 20
_CREATED_LEEWAY = 1.0
_LOCK = re.compile(
    r"ID:\s+(?P<id>\S+)\s.*?Who:\s+\S*@(?P<host>\S+)\s.*?"
    r"Created:\s+(?P<day>\d{4}-\d\d-\d\d) (?P<time>\d\d:\d\d:\d\d)"
)
_TORN = re.compile(r"(?:loading|destination) state: (?:flate|gzip|unexpected E|unexpected end)")
UNRELEASED = "Error releasing the state lock"
"""The summary of an error of a runtime whose lock may still be held."""
# Error texts of causes that may pass by themselves: a server away, a full disk, a held lock.
_PASSING = (
    "connection refused",
    "connection reset",
    "connection lost",
    "broken pipe",
    "no route to host",
    "network is unreachable",
    "no such host",
    "temporary failure",
    "timeout",
    "timed out",
    "deadline exceeded",
    "EOF",
    "server is currently unable",
    "too many requests",
    "Internal error",
    "etcdserver",
    "is shutting down",
    "Operation cannot be fulfilled",
    "no space left on device",
    "acquiring the state lock",
)


class Span(NamedTuple):
    """When a command ran, in seconds since the epoch: by the clock that its lock's time is of."""

    began: float
    ended: float


class Failed(NamedTuple):
    """The step that could not store its state.

    `dump` is the state as the runtime printed it where it could not write a file either.
    `unreleased`: the step said that its lock may still be held.
    """

    step: str
    ran: Span
    dump: bytes = b""
    unreleased: bool = False


class Attempt(NamedTuple):
    """One try to store the state, and what it said on standard error."""

    ended: Ended
    stderr: bytes

    @property
    def stored(self) -> bool:
        return self.ended.exit == 0 and not self.ended.error

    @property
    def torn(self) -> bool:
        """Whether the stored state cannot be read: it was written in part."""
        return _TORN.search(unwrapped(self.stderr)) is not None

    @property
    def may_pass(self) -> bool:
        """Whether trying again may help: the cause is not the state itself."""
        said = unwrapped(self.stderr)
        return bool(self.ended.error) or any(text in said for text in _PASSING)


RunCommand = Callable[[steps.Step, bytes, float], Attempt]
"""Runs a step: what it reads on standard input, and its time limit in seconds."""


class Rescue:
    """Pushes a state until it is stored or the time is up; keeps it in Secrets meanwhile.

    In a pod it goes on until the pod is told to stop, as it is at its Job's deadline, and then for
    what is left of the stop timeout; elsewhere for one stop timeout.
    """

    def __init__(
        self,
        context: Context,
        supervisor: Supervisor,
        workdir: Workdir,
        run: RunCommand,
        keeper: Keeper,
    ) -> None:
        self._context = context
        self._supervisor = supervisor
        self._workdir = workdir
        self._run = run
        self._keeper = keeper
        self._patience = float("inf") if keeper.watched else context.stop_seconds
        self._began = time.monotonic()
        self._in_file = self._cleared = False
        self._ran: list[Span] = []
        self._unlocked: set[str] = set()

    def save(self, failed: Failed) -> Attempt | None:
        """Store what `failed` left; the last try, or None when it left nothing.

        What could not be stored is told by the result.
        """
        state = self._left_by(failed)
        if not state:
            return None
        self._began = time.monotonic()
        self._ran.append(failed.ran)
        attempt = self._push(failed, state)
        if attempt.stored:
            self._forget()
        else:
            found = kept.describe(state) or wire.Unsaved()
            self._context.result.unsaved = found._replace(secrets=self._keeper.secrets)
        self._keeper.close()
        return attempt

    @property
    def said_of_secrets(self) -> str:
        """Where the state is, for a person; empty when it is nowhere."""
        count = self._keeper.secrets
        return f", but is kept in {count} Secrets" if count else ""

    def _left_by(self, failed: Failed) -> bytes:
        """What the step left in its file, or printed where that is no whole state; empty when it
        left nothing."""
        path = self._workdir.errored_state
        try:
            with open(path, "rb") as file:
                state = file.read(_LARGEST_STATE)
        except OSError:
            state = b""
        self._in_file = bool(state)
        if kept.describe(state) is not None or kept.describe(failed.dump) is None:
            return state
        self._in_file = self._write_state_file(failed.dump)
        return failed.dump

    def _write_state_file(self, state: bytes) -> bool:
        """Put a state that was only printed where the node finds it after the run, if there is
        room for it."""
        path = self._workdir.errored_state
        try:
            write_private(f"{path}.new", state)
            os.replace(f"{path}.new", path)
        except (OSError, PrepareError) as error:
            self._context.log.info("The state could not be written to a file", err=str(error))
            return False
        return True

    def _push(self, failed: Failed, state: bytes) -> Attempt:
        """Try to store the state until it is stored, refused for good, or the time is up."""
        log, file = self._context.log, self._workdir.errored_state
        log.info("The runtime left a state it could not store, pushing it", file=file)
        refusals, pause = 0, _FIRST_PAUSE
        attempt = self._attempt(state, waits=not failed.unreleased)
        while not attempt.stored:
            if not self._remove_cause(attempt, state):
                if not attempt.may_pass:
                    refusals += 1
                left = self._left()
                if refusals >= _REFUSALS or left <= 0:
                    break
                log.info("The state is still not stored, trying again", seconds=round(pause, 1))
                self._supervisor.pause(min(pause, left))
                pause = min(pause * 2, _LONGEST_PAUSE)
            attempt = self._attempt(state, waits=False)
        return attempt

    def _remove_cause(self, attempt: Attempt, state: bytes) -> bool:
        """Whether a cause of the failure was found and removed, each at most once: a lock that the
        failed step or a push left, or a stored state that was written in part."""
        if self._release_own_lock(attempt):
            return True
        self._keeper.keep(state)
        if attempt.torn and self._keeper.secrets and not self._cleared:
            self._cleared = self._keeper.clear_stored()
            return self._cleared
        return False

    def _attempt(self, state: bytes, *, waits: bool) -> Attempt:
        """Push once. Only the first try waits for the state's lock: what holds it longer than that
        may be the failed step's own."""
        options, stop = self._context.options, self._context.stop_seconds
        limit = stop if waits else min(stop, _LONGEST_ATTEMPT)
        if not self._in_file:
            self._in_file = self._write_state_file(state)
        file = self._workdir.errored_state if self._in_file else "-"
        step = steps.push_errored_state(options, file, waits=waits)
        shortest = 0.1 if self._supervisor.cancelled_at is None else _SHORTEST_TIME
        allowed = max(min(limit, self._left()), shortest)
        began = time.time()
        attempt = self._run(step, b"" if self._in_file else state, allowed)
        self._ran.append(Span(began, time.time()))
        return attempt

    def _left(self) -> float:
        """How many seconds there are for further tries."""
        now, cancelled = time.monotonic(), self._supervisor.cancelled_at
        if cancelled is None:
            return self._began + self._patience - now
        # The result must still be written before the pod's grace period ends.
        stop = self._context.stop_seconds
        return max(cancelled + stop, self._began + _SHORTEST_TIME) - now

    def _release_own_lock(self, attempt: Attempt) -> bool:
        """Take off a lock that the failed step, or a push, could not release any more.

        It is theirs when it was taken on this host while one of them ran: nobody else can have held
        the lock then.
        """
        lock = _LOCK.search(unwrapped(attempt.stderr))
        if lock is None or lock["host"] != os.uname().nodename or lock["id"] in self._unlocked:
            return False
        created = datetime.datetime.fromisoformat(f"{lock['day']}T{lock['time']}+00:00").timestamp()
        if not any(r.began - _CREATED_LEEWAY <= created <= r.ended for r in self._ran):
            return False
        self._context.log.info("Removing the lock that an ended step left", id=lock["id"])
        removed = self._run(steps.force_unlock(lock["id"]), b"", _LONGEST_ATTEMPT).stored
        if removed:
            self._unlocked.add(lock["id"])
        return removed

    def _forget(self) -> None:
        """The state is stored: nothing must take what is left of it for one that is not."""
        with suppress(OSError):
            os.unlink(self._workdir.errored_state)
        self._keeper.forget()
