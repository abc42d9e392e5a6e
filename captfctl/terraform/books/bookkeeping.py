"""Reading finished Jobs once and recording what they did (runs.md: Bookkeeping)."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from captfctl.cluster.door import Door
from captfctl.cluster.errors import ApiError
from captfctl.model import keys
from captfctl.model.conditions import ConditionValue, Type, find
from captfctl.model.core import Job
from captfctl.model.events import Note
from captfctl.model.meta import Condition
from captfctl.model.ops import Op
from captfctl.model.owner import Owner
from captfctl.model.reasons import JobFailure
from captfctl.model.status import CommonStatus, LastRun
from captfctl.model.terraform import DriftAction, JobPolicy
from captfctl.runs.finished import release, retire, running_job
from captfctl.runs.jobs import created_at, is_finished
from captfctl.runs.leases import Leases
from captfctl.runs.prune import prune
from captfctl.terraform.books.apply_condition import Saying, apply_condition, detail
from captfctl.terraform.books.counting import CountedRun, Retries, count, outcome_note
from captfctl.terraform.books.drift import Stamps, drift_condition, drift_job_condition, stamps
from captfctl.terraform.books.failures import FailureCounts, remediation_failures
from captfctl.terraform.books.last_run import last_run, runtime_of
from captfctl.terraform.books.promotion import Recorder
from captfctl.terraform.books.restores import (
    Restored,
    drop_restore_condition,
    restore_condition,
    restored,
)
from captfctl.terraform.books.results import (
    FinishedRun,
    op_of,
    read_finished,
)
from captfctl.terraform.books.runs import Runs
from captfctl.terraform.books.unsaved import UnsavedBooks, judge_unsaved
from captfctl.terraform.job.policy import failed_limit, history_limits
from captfctl.terraform.plans.drafts import Draft, Plans, drafts_of, empty_plan
from captfctl.terraform.state.lock import LockTrace, StateLock, find_lock, read_lock
from captfctl.terraform.state.records import Records
from captfctl.terraform.state.unsaved import Unsaved

__all__ = [
    "Bookkeeping",
    "BooksInput",
    "ConditionValue",
    "CountedRun",
    "Restored",
    "keep_books",
]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class BooksInput:
    """The object as this pass read it, as far as bookkeeping needs it.

    `paused`: a Job that could not pull its image was deleted so that it does not hold a move, and
    what the conditions say of that stays until the pause is over (runs.md: Jobs that cannot start).
    `lock`: as this pass read it already, which may only be where no Job is there to be read.
    `unsaved_shown`: the cache has a Secret that keeps an unsaved state.
    `inputs_key`: as `FailureCounts` has it. `plans_kept`: its changes may wait for an approval;
    `plans` are those of it, `manual`: every change waits.
    """

    owner: Owner
    status: CommonStatus
    records: Records
    policy: JobPolicy
    drift_action: DriftAction = DriftAction.REPORT
    deleting: bool = False
    paused: bool = False
    lock: StateLock | None = None
    unsaved_shown: bool = False
    inputs_key: str = keys.INPUTS_HASH
    plans: Plans = field(default_factory=Plans)
    plans_kept: bool = False
    manual: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Bookkeeping:
    """What one pass learned from the object's Jobs, and did about it.

    `jobs` is the list from before pruning, `finished` newest first, `active` the running Job.
    `counted` and `notes` come once per Job. `records` are the inputs records after this pass's
    writes. `lock` is None while a Job is active. The stamps only ever move forward. A condition
    that is None stays as it is; `drop_restore_condition` asks for its removal.
    `drafts` are the plans that the unread runs made, oldest first. `last_run`, `source_image` and
    `runtime_version` are to be written when they are not empty.
    """

    jobs: tuple[Job, ...]
    finished: Runs
    active: Job | None
    failures: FailureCounts
    records: Records
    apply_condition: ConditionValue
    counted: tuple[CountedRun, ...] = ()
    drafts: tuple[Draft, ...] = ()
    notes: tuple[Note, ...] = ()
    lock: StateLock | None = None
    last_refresh: datetime | None = None
    last_drift_check: datetime | None = None
    remediation_failures: int = 0
    empty_plan: str = ""
    drift_job_condition: ConditionValue | None = None
    drift_condition: ConditionValue | None = None
    restore_condition: ConditionValue | None = None
    drop_restore_condition: bool = False
    restored: Restored | None = None
    last_run: LastRun | None = None
    source_image: str = ""
    runtime_version: str = ""
    pruned: tuple[str, ...] = field(default=())
    unsaved: Unsaved = field(default_factory=Unsaved)

    def newest(self, *ops: Op) -> FinishedRun | None:
        """The finished run of any of the ops that ended last."""
        return self.finished.newest(*ops)

    @property
    def unread(self) -> tuple[FinishedRun, ...]:
        """Finished runs that this pass read and that are still to be marked."""
        return tuple(run for run in self.finished.unread if run.name not in self.pruned)


def keep_books(door: Door, jobs: Sequence[Job], leases: Leases, given: BooksInput) -> Bookkeeping:
    """See runs.md: Bookkeeping. An error leaves nothing marked: the next pass repeats it all.

    `jobs` are the owner's as cached.
    """
    owner, status, policy = given.owner, given.status, given.policy
    found = _read(door, owner, jobs)
    runs = Runs.of(run for run in found if not run.to_be_told)
    # A Job whose pod is still being ended runs, whatever its conditions say already.
    ending = max((run.job for run in found if run.to_be_told), key=created_at, default=None)
    active = running_job(job for job in jobs if op_of(job) is not None) or ending
    failed = FailureCounts(runs, given.inputs_key)

    recorder = Recorder(door, owner, given.records)
    recorder.record(runs)  # before the per-run Secrets go: the applied record is made from them
    unsaved = judge_unsaved(door, owner, runs, recorder.records, shown=given.unsaved_shown)
    counted = tuple(count(runs, run) for run in retire(door, runs))

    stamp = stamps(runs, status.last_refresh, status.last_drift_check)
    remediations = remediation_failures(runs, stamp.drift_check)
    retries = Retries(failed, failed_limit(policy), remediations)
    drafts = _drafts(given, runs)
    outcomes = [outcome_note(one, retries, drafts, owner.namespace) for one in counted]

    successful_limit, failure_limit = history_limits(policy)
    pruned = prune(door, jobs, successful=successful_limit, failed=failure_limit)
    lock = given.lock or (read_lock(door, owner) if active is None else None)
    release(leases, owner, runs)
    newest = runs[0] if runs else None
    image, runtime = runtime_of(newest)
    return Bookkeeping(
        jobs=tuple(jobs),
        finished=runs,
        active=active,
        failures=failed,
        records=_with(recorder.records, unsaved),
        apply_condition=_apply_condition(given, runs),
        counted=counted,
        drafts=drafts,
        notes=(*recorder.notes, *unsaved.notes, *outcomes),
        lock=lock,
        last_refresh=stamp.refresh,
        last_drift_check=stamp.drift_check,
        remediation_failures=remediations,
        empty_plan=empty_plan(runs),
        drift_job_condition=_drift_job_condition(given, runs, active),
        drift_condition=_drift_condition(given, runs, active, stamp),
        restore_condition=restore_condition(runs),
        drop_restore_condition=drop_restore_condition(runs, status.conditions),
        restored=restored(runs),
        last_run=last_run(newest, status.last_run),
        source_image=image,
        runtime_version=runtime,
        pruned=tuple(pruned),
        unsaved=unsaved.unsaved,
    )


def _with(records: Records, books: UnsavedBooks) -> Records:
    return records if books.record is None else replace(records, attempt=books.record)


def _read(door: Door, owner: Owner, jobs: Sequence[Job]) -> list[FinishedRun]:
    lock = _Lock(door, owner)
    runs = []
    for job in jobs:
        op = op_of(job)
        if op is not None and is_finished(job):
            run = read_finished(door, job, op, lock=lock)
            runs.append(replace(run, detail=detail(run)))
    return runs


def _drafts(given: BooksInput, runs: Runs) -> tuple[Draft, ...]:
    if given.deleting or not given.plans_kept:
        return ()
    return drafts_of(runs, given.owner, given.plans, manual=given.manual)


class _Lock:
    """Read at most once, and only when a silent apply has to be judged
    (state.md: The state lock)."""

    def __init__(self, door: Door, owner: Owner) -> None:
        self._door, self._owner = door, owner
        self._known = False
        self._trace: LockTrace | None = None

    def __call__(self) -> LockTrace | None:
        if not self._known:
            self._known, self._trace = True, self._read()
        return self._trace

    def _read(self) -> LockTrace | None:
        owner = self._owner
        try:
            return LockTrace.of(find_lock(self._door, owner))
        except ApiError as error:
            log.info("the state lock of %s/%s was not read: %s", owner.namespace, owner.name, error)
            return None  # no evidence


def _apply_condition(given: BooksInput, runs: Runs) -> ConditionValue:
    previous = find(given.status.conditions, Type.APPLY_JOB_SUCCEEDED)
    if previous is not None and _pull_failure_stays(given, previous, runs):
        return ConditionValue.of(previous)
    saying = Saying(
        given.owner,
        deleting=given.deleting,
        manual=given.manual,
        ended=given.plans.ended,
    )
    return apply_condition(runs, previous, saying)


def _drift_job_condition(given: BooksInput, runs: Runs, active: Job | None) -> ConditionValue:
    previous = find(given.status.conditions, Type.DRIFT_JOB_SUCCEEDED)
    if previous is not None and _pull_failure_stays(given, previous, runs):
        return ConditionValue.of(previous)
    return drift_job_condition(runs, active, previous)


def _drift_condition(
    given: BooksInput, runs: Runs, active: Job | None, stamp: Stamps
) -> ConditionValue | None:
    return drift_condition(
        runs,
        active,
        find(given.status.conditions, Type.DRIFT_DETECTED),
        action=given.drift_action,
        drift_check=stamp.drift_check,
    )


def _pull_failure_stays(given: BooksInput, previous: Condition, runs: Runs) -> bool:
    return given.paused and not runs.unread and previous.reason == JobFailure.IMAGE_PULL_FAILED
