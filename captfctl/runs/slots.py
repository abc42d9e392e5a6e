"""Limits on running Jobs, and who is next when one ends (runs.md: Limits on running Jobs)."""

import bisect
import itertools
import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from captfctl.clock import Clock
from captfctl.cluster.door import Door, find
from captfctl.cluster.errors import ApiError
from captfctl.model.reasons import WaitReason
from captfctl.model.resources import JOBS
from captfctl.model.subject import Subject
from captfctl.runs.jobs import is_finished
from captfctl.runs.reader import JobsReader, Key
from captfctl.runs.run import Run
from captfctl.runs.waits import Wait

UNSHOWN_AFTER = timedelta(seconds=10)
"""A slot is asked about live when no cache shows its Job by then and no pass works on it."""

_BACKGROUND_PERCENT = 80


class SlotOwner(NamedTuple):
    """The subject that has a slot or waits for one."""

    kind: str
    namespace: str
    name: str

    @classmethod
    def of(cls, subject: Subject) -> "SlotOwner":
        return cls(subject.kind, subject.namespace, subject.name)


class _Place(NamedTuple):
    """In the line: work that somebody waits for comes first, then what has waited longest."""

    background: bool
    since: datetime
    number: int


@dataclass(frozen=True, slots=True)
class _Claim:
    """On a slot of the manager, and on one of the group where the subject has one with a limit."""

    owner: SlotOwner
    place: _Place
    group: Key | None
    group_limit: int


@dataclass(slots=True)
class _Reserved:
    """A slot whose Job is about to be created, or is not shown by the cache yet."""

    claim: _Claim
    since: datetime
    in_pass: bool = True


class Slots:
    """The Job slots of one process: `limit` of them, 0 for no limit.

    A slot is reserved before its Job is created, and until the cache shows the Job: passes that
    work at the same time never share one. A slot that gets free is kept for the first in line that
    may have it, which `wake` is called for. The next pass of that subject takes the slot, or ends
    without asking for it; then the next one is called.
    """

    def __init__(
        self,
        door: Door,
        jobs: JobsReader,
        clock: Clock,
        limit: int,
        wake: Callable[[SlotOwner], None] = lambda _: None,
    ) -> None:
        self._door, self._jobs, self._clock = door, jobs, clock
        self._limit = limit
        self._wake = wake
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._reserved: dict[Key, _Reserved] = {}  # by namespace and name of the Job
        self._called: dict[SlotOwner, _Claim] = {}
        self._waiting: dict[SlotOwner, _Claim] = {}
        self._line: list[tuple[_Place, SlotOwner]] = []  # sorted
        self._asked: set[SlotOwner] = set()  # in the pass that works on them now

    def take(self, run: Run, group_limit: int, since: datetime) -> Wait | None:
        """Reserve a slot for the run, which has waited `since` then; None: reserved.

        The message of a wait names no count: it would rewrite the status whenever another Job
        starts or ends.
        """
        self._forget_lost()
        job = _job(run)
        with self._lock:
            claim = self._claim(run, group_limit, since)
            self._asked.add(claim.owner)
            self._leave(claim.owner)
            if job in self._reserved:  # by a start that ended before it knew what came of it
                self._reserved[job].in_pass = True
                return None
            self._join(claim)
            self._call_next(asking=claim.owner)
            if self._called.pop(claim.owner, None) is None:
                return self._wait(run, claim)
            self._reserved[job] = _Reserved(claim, self._clock.now())
            return None

    def give_up(self, run: Run) -> None:
        """The run's Job was not created after all: its slot is free."""
        with self._lock:
            if self._reserved.pop(_job(run), None) is not None:
                self._call_next()

    def passed(self, owner: SlotOwner) -> None:
        """A pass of that subject is over. If it did not ask for a slot, none is wanted any more."""
        with self._lock:
            for reserved in self._reserved.values():
                if reserved.claim.owner == owner:
                    reserved.in_pass = False
            if owner in self._asked:
                self._asked.discard(owner)
            elif self._leave(owner):
                self._call_next()

    def freed(self) -> None:
        """A Job has ended, or is gone: call who is next."""
        with self._lock:
            self._call_next()

    def _forget_lost(self) -> None:
        """Free the slots of Jobs that no cache will show: never created, or gone too soon."""
        latest = self._clock.now() - UNSHOWN_AFTER
        with self._lock:
            unshown = [
                job for job, r in self._reserved.items() if not r.in_pass and r.since <= latest
            ]
        for namespace, name in unshown:
            try:
                live = find(self._door, JOBS, namespace, name)
            except ApiError:
                continue  # it may exist
            if live is None or is_finished(live):
                with self._lock:
                    self._reserved.pop((namespace, name), None)

    # All below: with the lock held.

    def _claim(self, run: Run, group_limit: int, since: datetime) -> _Claim:
        """With the place that the subject had before, if it is for work of the same class."""
        owner, group = SlotOwner.of(run.subject), run.subject.group
        place = _Place(run.background, since, next(self._numbers))
        before = self._waiting.get(owner) or self._called.get(owner)
        if before is not None and before.place.background == run.background:
            place = before.place
        shared = (run.subject.namespace, group.name) if group else None
        return _Claim(owner, place, shared, group_limit)

    def _join(self, claim: _Claim) -> None:
        self._waiting[claim.owner] = claim
        bisect.insort(self._line, (claim.place, claim.owner))

    def _leave(self, owner: SlotOwner) -> bool:
        """Whether it waited, or a slot was kept for it."""
        claim = self._waiting.pop(owner, None)
        if claim is not None:
            del self._line[bisect.bisect_left(self._line, (claim.place, owner))]
        return self._called.pop(owner, None) is not None or claim is not None

    def _call_next(self, asking: SlotOwner | None = None) -> None:
        """Keep each free slot for the first in line that may have it, and wake its subject.

        `asking` is in a pass that asks just now, and is told the answer.
        """
        for claim in self._next():
            self._leave(claim.owner)
            self._called[claim.owner] = claim
            if claim.owner != asking:
                self._wake(claim.owner)

    def _next(self) -> Sequence[_Claim]:
        if not self._line:
            return ()
        found: list[_Claim] = []
        used = self._used()
        for place, owner in self._line:
            if not used.leaves_one(place):
                break  # nor for those behind, who may have no more slots than this one
            claim = self._waiting[owner]
            if used.group_leaves_one(claim):
                used.add(claim)
                found.append(claim)
        return found

    def _used(self) -> "_Used":
        # In this order: a Job that the cache shows from now on is counted there, and not missed.
        for job in [job for job in self._reserved if self._jobs.has_job(*job)]:
            del self._reserved[job]
        claims = [reserved.claim for reserved in self._reserved.values()]
        return _Used(self._jobs, self._limit, [*claims, *self._called.values()])

    def _wait(self, run: Run, claim: _Claim) -> Wait:
        scope, limit = "the manager", self._limit
        if claim.group and self._used().leaves_one(claim.place):
            scope, limit = f"Cluster {claim.group[1]}", claim.group_limit
        text = f"{scope} is at its limit of {limit} active Jobs"
        if run.background:
            text += f"; {run.operation} starts while fewer than {_usable(limit, True)} are active"
        return Wait(WaitReason.JOB_SLOT, text)


class _Used:
    """The slots in use: those of Jobs that the cache shows, and further claims."""

    def __init__(self, jobs: JobsReader, limit: int, claims: Sequence[_Claim]) -> None:
        self._jobs, self._limit = jobs, limit
        self._count = len(jobs.running_keys()) + len(claims)
        self._claims = list(claims)
        self._by_group: dict[Key, int] = {}

    def leaves_one(self, place: _Place) -> bool:
        return self._count < _usable(self._limit, place.background)

    def group_leaves_one(self, claim: _Claim) -> bool:
        if claim.group is None:
            return True
        if claim.group not in self._by_group:
            others = sum(other.group == claim.group for other in self._claims)
            self._by_group[claim.group] = len(self._jobs.running_keys(*claim.group)) + others
        return self._by_group[claim.group] < _usable(claim.group_limit, claim.place.background)

    def add(self, claim: _Claim) -> None:
        self._count += 1
        if claim.group in self._by_group:
            self._by_group[claim.group] += 1
        self._claims.append(claim)


def _usable(limit: int, background: bool) -> float:
    """A run may take a slot while fewer than this are in use. Background work leaves a fifth of
    them to others, and one at least where there are two."""
    if not limit:
        return math.inf
    if not background:
        return limit
    return max(1, min(limit - 1, math.ceil(limit * _BACKGROUND_PERCENT / 100)))


def _job(run: Run) -> Key:
    return run.subject.namespace, run.name
