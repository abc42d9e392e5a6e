"""What refresh and drift Jobs say (reconcile.md: Drift)."""

from dataclasses import dataclass
from datetime import datetime

from captfctl.model.conditions import TRUE, UNKNOWN, ConditionValue
from captfctl.model.core import Job
from captfctl.model.meta import Condition
from captfctl.model.ops import Op
from captfctl.model.reasons import DriftDetected, DriftJobSucceeded
from captfctl.model.terraform import DriftAction
from captfctl.terraform.books.apply_condition import failure_detail, names_job, pull_failure
from captfctl.terraform.books.results import FinishedRun, op_of
from captfctl.terraform.books.runs import Runs

_SEPARATOR = "; remediation Job "


@dataclass(frozen=True, slots=True)
class Stamps:
    """When state and infrastructure were last compared. They only move forward, so that pruning
    loses nothing. A drift Job refreshes first: it moves both."""

    refresh: datetime | None
    drift_check: datetime | None


def stamps(runs: Runs, refresh: datetime | None, drift_check: datetime | None) -> Stamps:
    """The times after these runs, from the times before them."""
    checked = runs.newest_success(Op.DRIFT)
    refreshed = runs.newest_success(Op.REFRESH, Op.DRIFT)
    return Stamps(
        _later(refresh, refreshed.finished_at if refreshed else None),
        _later(drift_check, checked.finished_at if checked else None),
    )


def _later(left: datetime | None, right: datetime | None) -> datetime | None:
    return max((moment for moment in (left, right) if moment), default=None)


def drift_job_condition(
    runs: Runs, active: Job | None, previous: Condition | None
) -> ConditionValue:
    """`DriftJobSucceeded`: the running drift Job, else the newest refresh or drift that ended."""
    if active is not None and op_of(active) is Op.DRIFT:
        return DriftJobSucceeded.DRIFT_JOB_RUNNING.says(f"Job {active.metadata.name}")
    run = runs.newest(Op.REFRESH, Op.DRIFT)
    if run is None:
        if previous is not None and _is_outcome(previous):
            return ConditionValue.of(previous)
        return DriftJobSucceeded.DRIFT_NOT_CHECKED.says("no check has finished yet")
    if run.ok:
        return DriftJobSucceeded.DRIFT_CHECKED.says(f"Job {run.name}")
    if pull := pull_failure(run, previous):
        return pull
    if run.deadline:
        return DriftJobSucceeded.DRIFT_JOB_DEADLINE_EXCEEDED.says(f"Job {run.name}")
    if run.bookkept and previous is not None and names_job(previous.message, run.name):
        return ConditionValue.of(previous)
    return DriftJobSucceeded.DRIFT_JOB_FAILED.says(f"Job {run.name}{failure_detail(run)}")


def _is_outcome(condition: Condition) -> bool:
    """Whether it tells what became of a check, and not that one runs, waits or is missing."""
    return condition.status != UNKNOWN


def drift_condition(
    runs: Runs,
    active: Job | None,
    previous: Condition | None,
    *,
    action: DriftAction,
    drift_check: datetime | None,
) -> ConditionValue | None:
    """`DriftDetected`, None to leave it. `drift_check` is the stamp after this pass's runs."""
    value = _checked(runs, action)
    if value is None and previous is not None:
        value = ConditionValue.of(previous)
    if value is None or value.status != TRUE or action is not DriftAction.REMEDIATE:
        return value
    newest = runs.newest(Op.APPLY)
    after = newest if newest and drift_check and newest.finished_at > drift_check else None
    summary = value.message.split(_SEPARATOR, 1)[0]
    if active is not None and op_of(active) is Op.APPLY:
        note = f"{_SEPARATOR}{active.metadata.name} applies the inputs again"
        return DriftDetected.DRIFT_REMEDIATING.says(summary + note)
    if after is not None and after.ok:
        return DriftDetected.NO_DRIFT.says(f"Job {after.name} applied the inputs again")
    if value.reason == DriftDetected.DRIFT_REMEDIATING:
        return DriftDetected.DRIFT_PENDING.says(summary + _remediation_note(after))
    return value


def _remediation_note(run: FinishedRun | None) -> str:
    if run is None:
        return ""
    outcome = "was blocked" if run.blocked else "was stopped" if run.plan_changed else "failed"
    return f"{_SEPARATOR}{run.name} {outcome}"


def _checked(runs: Runs, action: DriftAction) -> ConditionValue | None:
    """What the newest successful check found, when this pass reads it."""
    run = runs.newest_success(Op.DRIFT)
    if run is None or run.bookkept or run.result is None or run.result.drift is None:
        return None
    drift = run.result.drift
    if not drift.detected:
        return DriftDetected.NO_DRIFT.says(f"Job {run.name}")
    remediates = action is DriftAction.REMEDIATE
    reason = DriftDetected.DRIFT_PENDING if remediates else DriftDetected.DRIFT_REPORTED
    return reason.says(f"Job {run.name}: {drift.counts}")
