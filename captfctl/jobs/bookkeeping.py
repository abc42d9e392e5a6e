"""Reading finished Jobs once and recording what they did (11 §8)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from captfctl.clock import Clock
from captfctl.cluster.door import Door
from captfctl.jobs.failures import Failures
from captfctl.jobs.leases import Leases
from captfctl.jobs.reader import JobsReader
from captfctl.jobs.results import FinishedRun
from captfctl.model.core import Job
from captfctl.model.events import Note
from captfctl.model.ops import Op
from captfctl.model.owner import Owner
from captfctl.model.status import CommonStatus, LastRun
from captfctl.model.terraform import DriftAction, JobPolicy
from captfctl.state.lock import StateLock
from captfctl.state.records import Records


@dataclass(frozen=True, slots=True)
class ConditionValue:
    """What a condition should become; the pass sets it on the object."""

    status: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class CountedRun:
    """A finished Job whose per-run Secret this pass deleted: metrics count it once (11 §8.1).

    `duration` and `queue_time` are in seconds.
    """

    run: FinishedRun
    result: str
    duration: float
    queue_time: float | None
    retry: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BooksInput:
    """The object as this pass read it, as far as bookkeeping needs it."""

    owner: Owner
    status: CommonStatus
    records: Records
    policy: JobPolicy
    drift_action: DriftAction = DriftAction.REPORT
    annotations: Mapping[str, str] = field(default_factory=dict)
    deleting: bool = False
    mutable: bool = True
    interval_seconds: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """The newest finished restore Job, when it was not bookkept yet: consume it once (40 §11.4)."""

    run: FinishedRun
    serial: int
    ok: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Bookkeeping:
    """What one pass learned from the object's Jobs, and did about it."""

    jobs: tuple[Job, ...]
    finished: tuple[FinishedRun, ...]
    active: Job | None
    failures: Mapping[Op, Failures]
    records: Records
    counted: tuple[CountedRun, ...] = ()
    notes: tuple[Note, ...] = ()
    lock: StateLock | None = None
    last_refresh: datetime | None = None
    last_drift_check: datetime | None = None
    remediation_failures: int = 0
    empty_plan: str = ""
    apply_condition: ConditionValue
    drift_job_condition: ConditionValue | None = None
    drift_condition: ConditionValue | None = None
    restore_condition: ConditionValue | None = None
    last_run: LastRun | None = None
    source_image: str = ""
    runtime_version: str = ""
    restored: Restored | None = None

    def newest(self, *ops: Op) -> FinishedRun | None:
        """The finished run of any of the ops that ended last."""
        raise NotImplementedError

    @property
    def unread(self) -> tuple[FinishedRun, ...]:
        """Finished runs that this pass read and that are still to be marked."""
        raise NotImplementedError


def keep_books(
    door: Door, reader: JobsReader, leases: Leases, clock: Clock, given: BooksInput
) -> Bookkeeping:
    """Steps 1–11 of 11 §8. An error leaves nothing marked: the next pass repeats it all."""
    raise NotImplementedError


def mark_bookkept(door: Door, runs: Sequence[FinishedRun]) -> list[str]:
    """Mark the Jobs as read, after the status was written. Returns what failed, for the log."""
    raise NotImplementedError
