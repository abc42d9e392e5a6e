"""Starting a Job, in an order that survives a crash after any step (runs.md: Starting a Job)."""

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from captfctl.clock import Clock
from captfctl.cluster.door import Door, find
from captfctl.cluster.errors import REFUSALS, AlreadyExists, ApiError, NotFound, Unavailable
from captfctl.model.core import Job
from captfctl.model.resources import JOBS
from captfctl.runs.jobs import delete_job, is_finished
from captfctl.runs.leases import Leases
from captfctl.runs.patience import Patience
from captfctl.runs.run import Run
from captfctl.runs.slots import Slots

log = logging.getLogger(__name__)

_JUST_TAKEN = 1.0
"""Seconds in which a lease that was written is not read again: nobody takes a fresh one."""


class Work(Protocol):
    """What the run is for its subject: the part of a start that the engine does not know."""

    def build(self) -> Job:
        """The Job to create. Reads live what it depends on, and makes what must exist before it.

        Nothing that this makes has to be taken back when the start comes to nothing.
        """
        ...

    def provide(self, job: Job) -> None:
        """Make what the pod of `job`, which exists, waits for.

        May be called again when an answer was lost: every write of it may have taken place.
        """
        ...

    def withdraw(self) -> None:
        """Remove what `provide` made: the Job had ended before, and nothing reads it any more."""
        ...


@dataclass(frozen=True, slots=True)
class Started:
    """The Job runs. `adopted`: an earlier, interrupted start had created it."""

    job: Job
    adopted: bool


@dataclass(frozen=True, slots=True)
class Deferred:
    """Not now, and no failure: look again in 5 s. `why` is for the log."""

    why: str


class Starter:
    """Starts Jobs, for which `Slots.take` and `Leases.acquire` were asked before.

    `patience`: for how many seconds a step is tried again while the server is away, once a Job may
    exist.
    """

    def __init__(
        self, door: Door, leases: Leases, slots: Slots, clock: Clock, *, patience: float = 0.0
    ) -> None:
        self._door = door
        self._leases = leases
        self._slots = slots
        self._clock = clock
        self._patience = patience

    def start(
        self,
        run: Run,
        work: Work,
        confirm: Callable[[], str],
        *,
        leased_at: float = -math.inf,
    ) -> Started | Deferred:
        """Start the run, or adopt it. `leased_at`: when taking its leases was begun, on the clock
        that never goes back.

        `confirm` is asked first: it holds moves of the subject on the server and tells why, as seen
        live, the run may not start after all; empty when it may. Raises the door's errors; whether
        the leases were given back then is in runs.md: Starting a Job.
        """
        found = self._start(run, work, confirm, leased_at)
        if isinstance(found, Deferred):
            self._slots.give_up(run)
        return found

    def _start(
        self, run: Run, work: Work, confirm: Callable[[], str], leased_at: float
    ) -> Started | Deferred:
        try:
            job = self._prepare(run, work, confirm, leased_at)
        except Exception:
            self.give_back(run)
            raise
        if isinstance(job, Deferred):
            return job
        patience = Patience(self._clock, self._patience)
        found = self._create(run, job, patience)
        if isinstance(found, Started):
            patience.insist(lambda: self._provide(run, work, found.job))
        return found

    def _prepare(
        self, run: Run, work: Work, confirm: Callable[[], str], leased_at: float
    ) -> Job | Deferred:
        """The steps before the Job: nothing exists yet that has to be taken back by hand."""
        refusal = confirm()
        if refusal:
            self.give_back(run)
            return Deferred(refusal)
        job = work.build()
        just_taken = self._clock.monotonic() - leased_at < _JUST_TAKEN
        if not just_taken and not self._leases.freshen(run):
            return Deferred("another Job holds the run lease by now")
        return job

    def _create(self, run: Run, job: Job, patience: Patience) -> Started | Deferred:
        try:
            created = self._door.create(JOBS, job, run.subject.namespace)
        except AlreadyExists:
            return self._adopt(run, patience.insist(lambda: self._read_job(run)))
        except Unavailable as error:
            if not error.outcome_unknown:
                raise
            patience.note(error)
            # Where only the answer is lost, the Job waits for its Secret already.
            existing = patience.insist(lambda: self._read_job(run))
            if existing is None:
                raise
            return self._adopt(run, existing)
        except (*REFUSALS, NotFound):  # the Job does not exist
            self.give_back(run)
            raise
        return Started(created, adopted=False)

    def _adopt(self, run: Run, job: Job | None) -> Started | Deferred:
        """What to do about a Job that has the name already."""
        if job is None:
            return Deferred("the Job of that name went away meanwhile")
        ours, finished = run.subject.controls(job.metadata), is_finished(job)
        if ours and not finished:
            return Started(job, adopted=True)
        if ours:
            return Deferred("the Job finished already: the cache is behind")
        if finished:
            delete_job(self._door, job)
            return Deferred("removed a finished Job of an earlier object")
        return Deferred("a Job of an earlier object still runs")

    def _read_job(self, run: Run) -> Job | None:
        return find(self._door, JOBS, run.subject.namespace, run.name)

    def give_back(self, run: Run) -> None:
        """The leases and the slot of a start that came to nothing; kept when its Job does exist."""
        try:
            exists = self._read_job(run) is not None
        except ApiError as error:
            log.warning("leases of %s are kept, it cannot be read: %s", run.name, error)
            return
        if not exists:
            self._leases.give_up(run)
            self._slots.give_up(run)

    def _provide(self, run: Run, work: Work, job: Job) -> None:
        """The steps after the Job. A start that was held up may find that another manager adopted
        it meanwhile, saw it finish and read it: what is provided after that must not stay."""
        work.provide(job)
        live = self._read_job(run)
        if live is not None and is_finished(live):
            work.withdraw()
