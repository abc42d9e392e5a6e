"""Reading finished Jobs: outcome, pod, flags (runs.md: Reading a finished Job)."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from captfctl.cluster.door import Door
from captfctl.model import keys
from captfctl.model.core import Job, Pod
from captfctl.model.meta import ObjectMeta
from captfctl.model.ops import Op
from captfctl.runs.jobs import (
    Outcome,
    deadline_exceeded,
    finish_time,
    is_bookkept,
    kept_unread,
    newest_pod,
    outcome,
    pod_ended,
    pod_over,
)
from captfctl.terraform.books.result_document import never_started, read_result
from captfctl.terraform.state.lock import LockTrace
from runner import wire

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRun:
    """A finished Job with everything that was learned about it.

    `pod` and `result` are None for a Job that is bookkept: its flags come from its annotations.
    `deadline`: it ran into its own deadline. `nothing_changed`: the state lock proves that a silent
    apply changed nothing. `detail` says in words why it failed, or what it stopped before.
    """

    job: Job
    op: Op
    finished_at: datetime
    succeeded: bool
    deadline: bool = False
    bookkept: bool = False
    interrupted: bool = False
    blocked: bool = False
    plan_changed: bool = False
    plan_unreadable: bool = False
    image_invalid: bool = False
    nothing_changed: bool = False
    detail: str = ""
    pod: Pod | None = None
    result: wire.RunResult | None = None

    @property
    def name(self) -> str:
        """The Job's name."""
        return self.job.metadata.name

    @property
    def ok(self) -> bool:
        """Whether it did what it was for."""
        return self.succeeded and not self.plan_unreadable

    @property
    def stopped(self) -> bool:
        """The runner itself refused to go on: no failure (runs.md: Counting failures)."""
        return self.blocked or self.plan_changed

    @property
    def failed(self) -> bool:
        """Counts towards backoff."""
        return not (self.ok or self.interrupted or self.stopped)

    @property
    def inputs_hash(self) -> str:
        """The hash of the inputs that it ran; empty when the Job does not tell."""
        return self.job.metadata.annotations.get(keys.INPUTS_HASH, "")

    @property
    def error_kind(self) -> str:
        """For metrics: one of the runner's five kinds, `deadline`, `unknown`, or empty if ok."""
        if self.ok:
            return ""
        if self.result is not None and self.result.error is not None:
            return self.result.error_kind
        return "deadline" if self.deadline else "unknown"

    @property
    def label(self) -> str:
        """The `result` label of metrics."""
        labels = (
            (self.ok, "succeeded"),
            (self.blocked, wire.BLOCKED),
            (self.plan_changed, wire.PLAN_CHANGED),
            (self.deadline, "deadline"),
            (self.interrupted, wire.INTERRUPTED),
        )
        return next((label for holds, label in labels if holds), "failed")

    @property
    def pod_runs(self) -> bool:
        """Whether its pod outlives the Job, as one may that is being ended."""
        return self.pod is not None and not pod_ended(self.pod)

    @property
    def to_be_told(self) -> bool:
        """Whether its pod, which is kept until its result was read, has yet to end."""
        return self.pod is not None and kept_unread(self.pod) and not pod_over(self.pod)

    @property
    def may_have_applied(self) -> bool:
        """Whether this failed apply may have changed resources
        (state.md: Applies that ended without telling)."""
        if self.result is not None:
            return self.result.has_step(wire.APPLY)
        return not (self.nothing_changed or never_started(self.pod))

    @property
    def may_have_restored(self) -> bool:
        """Whether this restore may have put another state in place: one that failed may have, too,
        unless it tells that it did not get that far."""
        if self.op is not Op.RESTORE or self.succeeded:
            return self.op is Op.RESTORE
        if self.result is not None:
            return self.result.has_step(wire.STATE_PUSH)
        return not never_started(self.pod)

    @property
    def crashed(self) -> bool:
        """An apply that ended without telling, and may have applied."""
        return (
            self.op is Op.APPLY
            and not self.succeeded
            and not self.stopped
            and self.result is None
            and self.may_have_applied
        )

    def marks(self) -> dict[str, str]:
        """The annotations that keep its outcome once its pod is not read any more
        (metadata.md: Annotations of Jobs)."""
        flags = {
            keys.BOOKKEPT: True,
            keys.INTERRUPTED: self.interrupted,
            keys.DESTRUCTIVE_PLAN_BLOCKED: self.blocked,
            keys.PLAN_CHANGED: self.plan_changed,
            keys.PLAN_UNREADABLE: self.plan_unreadable,
            keys.IMAGE_INVALID: self.image_invalid,
        }
        marks = {key: keys.TRUE for key, holds in flags.items() if holds}
        if self.result is not None and self.result.plan is not None and self.result.plan.hash:
            marks[keys.PLAN_HASH] = self.result.plan.hash[:_HASH_MAX]
        if self.detail:
            marks[keys.ERROR] = self.detail
        return marks


_HASH_MAX = 128


def op_of(job: Job) -> Op | None:
    """The operation in the Job's label; None when it names none of the six."""
    try:
        return Op(job.metadata.labels.get(keys.OP, ""))
    except ValueError:
        return None


def read_finished(
    door: Door, job: Job, op: Op, *, lock: Callable[[], LockTrace | None]
) -> FinishedRun:
    """Read one finished Job.

    No request is made for one that is bookkept. `lock` reads the state lock, and gives None when it
    could not be read.
    """
    if is_bookkept(job):
        return _from_annotations(job, op)
    pod = newest_pod(door, job)
    result, problem = read_result(pod)
    if problem:
        log.info("Job %s/%s: no result: %s", job.metadata.namespace, job.metadata.name, problem)
    succeeded = outcome(job) is Outcome.SUCCEEDED
    kind = result.error_kind if result and not succeeded else ""
    told = result is not None and result.plan is not None and bool(result.plan.hash)
    unreadable = op is Op.PLAN and succeeded and not told
    silent_apply = op is Op.APPLY and not succeeded and result is None
    return FinishedRun(
        job=job,
        op=op,
        finished_at=finish_time(job),
        succeeded=succeeded,
        deadline=deadline_exceeded(job),
        interrupted=kind == wire.INTERRUPTED,
        blocked=op is Op.APPLY and kind == wire.BLOCKED,
        plan_changed=op is Op.APPLY and kind == wire.PLAN_CHANGED,
        plan_unreadable=unreadable,
        image_invalid=kind == wire.LAYOUT,
        nothing_changed=silent_apply and _nothing_changed(job, pod, lock),
        pod=pod,
        result=result,
    )


def read_vanished(name: str, op: Op, pod: Pod | None, now: datetime) -> FinishedRun:
    """What the pod of a Job that was deleted while it ran says about it
    (runs.md: A Job that is deleted while it runs)."""
    result, _ = read_result(pod)
    return FinishedRun(
        job=Job(metadata=ObjectMeta(name=name)),
        op=op,
        finished_at=now,
        succeeded=result is not None and result.error is None,
        interrupted=result is not None and result.error_kind == wire.INTERRUPTED,
        pod=pod,
        result=result,
    )


def _nothing_changed(job: Job, pod: Pod | None, lock: Callable[[], LockTrace | None]) -> bool:
    """A pod that still runs may take the lock yet, which proves nothing then."""
    if pod is not None and not pod_ended(pod):
        return False
    trace, meta = lock(), job.metadata
    before = meta.annotations.get(keys.STATE_LOCK_VERSION, "")
    return trace is not None and trace.nothing_changed_by(meta.name, before)


def _from_annotations(job: Job, op: Op) -> FinishedRun:
    def marked(key: str) -> bool:
        return job.metadata.annotations.get(key) == keys.TRUE

    succeeded = outcome(job) is Outcome.SUCCEEDED
    return FinishedRun(
        job=job,
        op=op,
        finished_at=finish_time(job),
        succeeded=succeeded,
        deadline=deadline_exceeded(job),
        bookkept=True,
        interrupted=marked(keys.INTERRUPTED) and not succeeded,
        blocked=marked(keys.DESTRUCTIVE_PLAN_BLOCKED) and not succeeded,
        plan_changed=marked(keys.PLAN_CHANGED) and not succeeded,
        plan_unreadable=marked(keys.PLAN_UNREADABLE),
        image_invalid=marked(keys.IMAGE_INVALID),
        detail=job.metadata.annotations.get(keys.ERROR, ""),
    )
