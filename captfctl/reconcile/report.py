"""What a written pass tells the world: transition events, counters, gauges
(conditions-and-events.md: Which changes become events)."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TypedDict

from captfctl.model.conditions import FALSE, TRUE, Type, find
from captfctl.model.core import Job
from captfctl.model.meta import Condition
from captfctl.model.ops import Op
from captfctl.model.reasons import OutputsValid, StateReadable, reason_named
from captfctl.model.status import Settled
from captfctl.model.terraform import TerraformObject
from captfctl.reconcile.context import Pass
from captfctl.reconcile.known import Known
from captfctl.reconcile.metrics import Gauges
from captfctl.reconcile.transitions import changed, notes
from captfctl.runs.jobs import Outcome, finish_time, outcome
from captfctl.terraform.books.results import op_of

_SCORES = {TRUE: 1, FALSE: 0}


class _Scores(TypedDict):
    ready: int
    healthy: int
    drift_detected: bool


def transitions(p: Pass) -> None:
    """Events and counters of the conditions that this pass changed."""
    after = p.conditions.list()
    p.record(*notes(p.before, after))
    old = {condition.type: condition for condition in p.before}
    for condition in after:
        if changed(old.get(condition.type), condition):
            _count(p, condition)


def _count(p: Pass, condition: Condition) -> None:
    match reason_named(condition.type, condition.reason):
        case StateReadable(metric=label) if label:
            p.env.metrics.state_unreadable(p.kind, label)
        case OutputsValid(metric=label) if label:
            p.env.metrics.outputs_invalid(p.kind, label)


def show(p: Pass, known: Known) -> None:
    """The object's gauges."""
    state = known.state.state if known.state is not None else None
    gauges = Gauges(
        **_scores(p.conditions.list()),
        state_resources=state.resources if state else None,
        state_bytes=state.bytes if state else None,
        inputs_bytes=known.inputs_bytes or None,
        last_success=_last_success(p, known),
    )
    p.env.metrics.show(p.kind, p.owner.namespace, p.owner.name, gauges)


def resting_gauges(obj: TerraformObject, jobs: Iterable[Job]) -> Gauges:
    """The same of an object that needs no pass: from what the last one left on it."""
    left = obj.status.settled or Settled()
    success: dict[Op, datetime] = {}
    for job in jobs:
        op = op_of(job)
        if op in (Op.APPLY, Op.DESTROY) and outcome(job) is Outcome.SUCCEEDED:
            success[op] = max(finish_time(job), success.get(op, finish_time(job)))
    if obj.status.last_drift_check is not None:
        success[Op.DRIFT] = obj.status.last_drift_check
    return Gauges(
        **_scores(obj.status.conditions),
        state_resources=left.state_resources,
        state_bytes=left.state_bytes,
        inputs_bytes=left.inputs_bytes or None,
        last_success=success,
    )


def _scores(conditions: Sequence[Condition]) -> _Scores:
    def score(kind: Type) -> int:
        found = find(conditions, kind)
        return _SCORES.get(found.status, -1) if found is not None else -1

    return {
        "ready": score(Type.READY),
        "healthy": score(Type.INFRASTRUCTURE_HEALTHY),
        "drift_detected": score(Type.DRIFT_DETECTED) == 1,
    }


def _last_success(p: Pass, known: Known) -> dict[Op, datetime]:
    """A series lasts while its op is scheduled: neither check is while deleting or paused."""
    found = {}
    for op in (Op.APPLY, Op.DESTROY):
        newest = known.books.finished.newest_success(op)
        if newest is not None:
            found[op] = newest.finished_at
    scheduled = p.config.drift_interval and not p.deleting and not p.paused
    checked = p.obj.status.last_drift_check
    if scheduled and checked is not None:
        found[Op.DRIFT] = checked
    return found
