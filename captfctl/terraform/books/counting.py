"""Each finished Job once: what is measured and told about it (runs.md: Reading a finished Job)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from captfctl.decide import backoff
from captfctl.model import keys
from captfctl.model.events import EventReason, Note
from captfctl.model.ops import Op
from captfctl.runs.jobs import created_at
from captfctl.terraform.books.apply_condition import (
    NOTHING_TO_APPROVE,
    failure_detail,
    found_changed,
)
from captfctl.terraform.books.failures import FailureCounts, retry_number
from captfctl.terraform.books.result_document import source_state
from captfctl.terraform.books.results import FinishedRun
from captfctl.terraform.plans.drafts import Draft, plan_hash
from captfctl.terraform.plans.wording import how_to_approve
from runner import wire


@dataclass(frozen=True, slots=True)
class CountedRun:
    """A finished Job whose per-run Secret this pass deleted, which happens once.

    `result` is the metrics' label. `duration` and `queue_time` are in seconds; the latter is None
    when the module's container never started. `retry` is 1 for the first try.
    """

    run: FinishedRun
    result: str
    duration: float
    queue_time: float | None
    retry: int


@dataclass(frozen=True, slots=True)
class Retries:
    """What the note of a failure tells about the next try."""

    failures: FailureCounts
    failed_limit: int
    remediation_failures: int


def count(runs: Sequence[FinishedRun], run: FinishedRun) -> CountedRun:
    """`runs` are all finished ones, newest first."""
    created = created_at(run.job)
    begun = run.job.status.start_time or created
    source = _source_started(run)
    return CountedRun(
        run=run,
        result=run.label,
        duration=max((run.finished_at - begun).total_seconds(), 0.0),
        queue_time=max((source - created).total_seconds(), 0.0) if source else None,
        retry=retry_number(runs, run),
    )


def _source_started(run: FinishedRun) -> datetime | None:
    state = source_state(run.pod)
    if state is None:
        return None
    if state.running:
        return state.running.started_at
    return state.terminated.started_at if state.terminated else None


def outcome_note(
    counted: CountedRun, retries: Retries, drafts: Sequence[Draft], namespace: str
) -> Note:
    """The one Event about the Job. `drafts` are the plans that can be approved."""
    run, name = counted.run, counted.run.name
    if run.op is Op.RESTORE:
        return _restore_note(run)
    made = next((draft for draft in drafts if draft.job == name), None)
    planned = _plan_note(counted, made, namespace)
    if planned is not None:
        return planned
    if run.ok:
        text = f"{run.op} Job {name} succeeded after {counted.duration:.0f} s{_changes(run)}"
        return EventReason.JOB_SUCCEEDED.says(text, job=name)
    if run.deadline:
        seconds = run.job.spec.active_deadline_seconds
        text = f"{run.op} Job {name} was ended by its deadline of {seconds} s"
        again = " and is tried again at once" if run.interrupted else _next(run, retries)
        return EventReason.JOB_DEADLINE_EXCEEDED.says(text + again, job=name)
    if run.interrupted:
        text = f"{run.op} Job {name} was stopped from outside and is tried again at once"
        return EventReason.JOB_INTERRUPTED.says(text, job=name)
    text = f"{run.op} Job {name}{failure_detail(run)}"
    return EventReason.JOB_FAILED.says(text + _next(run, retries), job=name)


def _plan_note(counted: CountedRun, made: Draft | None, namespace: str) -> Note | None:
    """The Event of a run that was to find out what would be done, or stopped when it had; None of
    any other. How to approve the plan comes last, and fits."""
    run, name = counted.run, counted.run.name
    how = f"{made.summary.counts}; {how_to_approve(made.name, namespace)}" if made else ""
    if run.op is Op.PLAN and run.ok and made:
        return EventReason.PLAN_READY.says(f"plan Job {name}: {how}", job=name)
    if run.op is Op.PLAN and run.ok and plan_hash(run) == wire.EMPTY_PLAN:
        text = f"plan Job {name} found nothing to change: that is applied without an approval"
        return EventReason.PLAN_READY.says(text, job=name)
    if run.plan_changed:
        text = f"Job {name}: {found_changed(run)}; {how or 'it is planned again'}"
        return EventReason.PLAN_CHANGED.says(text, job=name)
    if run.blocked:
        text = f"Job {name} stopped before it deletes or replaces: {how or NOTHING_TO_APPROVE}"
        return EventReason.DESTRUCTIVE_PLAN_BLOCKED.says(text, job=name)
    return None


def _restore_note(run: FinishedRun) -> Note:
    serial = run.job.metadata.annotations.get(keys.RESTORE_SERIAL, "")
    if run.ok:
        text = (
            f"Job {run.name} restored the state of serial {serial}; resources created after it "
            "are not managed any more"
        )
        return EventReason.STATE_RESTORED.says(text, job=run.name)
    text = f"Job {run.name} did not restore serial {serial}{failure_detail(run)}"
    return EventReason.STATE_RESTORE_FAILED.says(text, job=run.name)


def _changes(run: FinishedRun) -> str:
    changes = run.result.changes if run.result else None
    if changes is None:
        return ""
    text = f"; resources: {changes.add} added, {changes.change} changed"
    text += f", {changes.destroy} destroyed"
    return text + (f", {changes.imported} imported" if changes.imported > 0 else "")


def _next(run: FinishedRun, retries: Retries) -> str:
    """When the op may be tried again. The newest failure's end is what the delay counts from."""
    remediation = run.job.metadata.annotations.get(keys.DRIFT_REMEDIATION) == keys.TRUE
    if remediation and retries.remediation_failures >= retries.failed_limit:
        return "; drift is not remediated again before the next successful drift check"
    found = retries.failures.of_run(run)
    if found.last is None or run.finished_at != found.last:
        return ""
    delay = backoff(found.count, retries.failed_limit)
    at = (found.last + delay).strftime("%Y-%m-%dT%H:%M:%SZ")
    times = f"{found.count} failure{'s' if found.count != 1 else ''} in a row"
    same = " with the same inputs" if run.op in (Op.APPLY, Op.PLAN) else ""
    return f"; next attempt{same} not before {at} ({_words(delay)}, {times})"


def _words(delay: timedelta) -> str:
    return f"{delay.total_seconds():.0f} s"
