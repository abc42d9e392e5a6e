"""`decide_op`: the rules in their order of priority (decision.md: Order of the rules)."""

from msgspec.structs import replace

from captfctl.decide import duration
from captfctl.decide.constants import ACTIVE_JOB_REQUEUE, RETRY_MAX, STATE_REQUEUE
from captfctl.decide.job import job
from captfctl.decide.schedule import schedule
from captfctl.decide.types import Action, DecideInput, Decision, Reason
from captfctl.model.ops import Op
from captfctl.model.plan import PlanReason
from runner import wire

_OF_APPLIED_INPUTS = frozenset({Reason.LAST_APPLY_FAILED, Reason.DRIFT_REMEDIATION})


def decide_op(inp: DecideInput) -> Decision:
    """What to do now. Equal input gives an equal answer; the first rule that holds wins."""
    if inp.jobs.active:
        return _wait(Reason.JOB_ACTIVE, duration.of(ACTIVE_JOB_REQUEUE))
    if inp.deleting and inp.retain:
        return Decision(action=Action.RETAIN, reason=Reason.DELETION_RETAINED)
    if inp.restore and (not inp.deleting or inp.state_held):
        # No backoff: a person asked for it, and a failed serial is not asked for again.
        return Decision(action=Action.JOB, op=Op.RESTORE, reason=Reason.RESTORE_REQUESTED)
    if inp.deleting:
        return _delete(inp)
    reason = _apply_reason(inp)
    if reason is None:
        return schedule(inp)
    return _apply(inp, reason)


def _delete(inp: DecideInput) -> Decision:
    if inp.state_held:
        return _wait(Reason.DELETION_HELD, duration.of(STATE_REQUEUE))
    if not inp.state.exists:
        return Decision(action=Action.DROP_FINALIZER, reason=Reason.DELETING_WITHOUT_STATE)
    if inp.state.empty:
        # Its module may be what kept the first apply from creating anything: a destroy needs it.
        return Decision(action=Action.DROP_FINALIZER, reason=Reason.DELETING_WITHOUT_RESOURCES)
    return job(inp, Op.DESTROY, Reason.DELETING)


def _apply_reason(inp: DecideInput) -> Reason | None:
    state, jobs = inp.state, inp.jobs
    if not state.exists:
        return Reason.NO_STATE
    if not state.inputs_hash:
        return Reason.STATE_WITHOUT_INPUTS_HASH
    if inp.mutable and state.current_hash and state.current_hash != state.inputs_hash:
        return Reason.INPUTS_CHANGED
    if inp.mutable and jobs.last_apply_failed:
        return Reason.LAST_APPLY_FAILED
    if inp.remediate and jobs.remediation_failures < max(jobs.failed_limit, 1):
        return Reason.DRIFT_REMEDIATION
    return None


def _apply(inp: DecideInput, reason: Reason) -> Decision:
    """An apply is due: start it, or wait for its backoff or for the person who must approve it.

    A change of inputs that waits pauses refresh and drift: both would render the inputs that are
    not applied and report the wait as drift. An apply of what is applied already has nothing to
    hide: however long it waits, the schedule goes on. A first apply that did not get through cleans
    up after itself.
    """
    if inp.first_apply and reason is Reason.STATE_WITHOUT_INPUTS_HASH:
        return job(inp, Op.APPLY, reason)
    manual = inp.manual_apply and reason is not Reason.NO_STATE
    decision = _gated_apply(inp, reason) if manual else _approved_retry(inp, reason)
    if decision.action is Action.JOB or reason not in _OF_APPLIED_INPUTS:
        return decision
    return _with_schedule(inp, decision)


def _with_schedule(inp: DecideInput, waits: Decision) -> Decision:
    """What is due by the calendar while the apply waits, or the sooner of both times."""
    scheduled = schedule(inp, waits.waiting)
    if scheduled.action is Action.NONE:
        times = (waits.requeue_after, scheduled.requeue_after)
        soonest = min((time for time in times if time > 0), default=duration.ZERO)
        return replace(waits, requeue_after=soonest)
    return replace(scheduled, plan=waits.plan, plan_flow=waits.plan_flow)


def _gated_apply(inp: DecideInput, reason: Reason) -> Decision:
    """`applyPolicy: Manual`: only what was planned and approved is applied
    (decision.md: Manual and guarded applies)."""
    current, plan = inp.state.current_hash, inp.plan
    if current and inp.jobs.empty_plan == current:
        return replace(_expecting(job(inp, Op.APPLY, reason), wire.EMPTY_PLAN), plan_flow=True)
    ours = (
        plan is not None
        and bool(current)
        and plan.reason is PlanReason.MANUAL
        and plan.inputs_hash == current
    )
    if plan is None or not ours:
        return replace(job(inp, Op.PLAN, reason), plan_flow=True)
    if not plan.approved:
        return _wait_for_plan(Reason.PLAN_AWAITING_APPROVAL, plan.name)
    approved = _expecting(job(inp, Op.APPLY, reason), plan.plan_hash)
    return replace(approved, plan=plan.name, plan_flow=True)


def _approved_retry(inp: DecideInput, reason: Reason) -> Decision:
    """Apply without asking first, unless the runner stopped before destroying."""
    want, plan = inp.approval_hash or inp.state.current_hash, inp.plan
    if (
        plan is not None
        and want
        and plan.reason is not PlanReason.MANUAL
        and plan.inputs_hash == want
    ):
        if not plan.approved:
            return _wait_for_plan(Reason.DESTRUCTIVE_PLAN_BLOCKED, plan.name)
        decision = replace(job(inp, Op.APPLY, reason), plan=plan.name)
        if plan.reason is PlanReason.DESTRUCTIVE:
            return _expecting(decision, plan.plan_hash)
        if decision.action is Action.JOB:
            return replace(decision, allow_deletes=plan.inputs_hash)
        return decision
    if inp.jobs.blocked_at is not None and _apply_blocked(inp):
        # A blocked apply that left no plan to approve is tried again after a while.
        remaining = inp.jobs.blocked_at + RETRY_MAX - inp.now
        if remaining.total_seconds() > 0:
            waits = _wait(Reason.DESTRUCTIVE_PLAN_BLOCKED, duration.of(remaining))
            return replace(waits, waiting=waits.reason)
    return job(inp, Op.APPLY, reason)


def _apply_blocked(inp: DecideInput) -> bool:
    jobs = inp.jobs
    if inp.unheld and jobs.blocked_approval and inp.approval_hash:
        return jobs.blocked_approval == inp.approval_hash
    return bool(jobs.blocked_hash) and jobs.blocked_hash == inp.state.current_hash


def _expecting(decision: Decision, plan_hash: str) -> Decision:
    if decision.action is not Action.JOB:
        return decision
    return replace(decision, expect_plan=plan_hash)


def _wait(reason: Reason, requeue: duration.Nanoseconds) -> Decision:
    return Decision(action=Action.NONE, reason=reason, requeue_after=requeue)


def _wait_for_plan(waiting: Reason, plan: str) -> Decision:
    return Decision(
        action=Action.NONE,
        reason=waiting,
        requeue_after=duration.of(RETRY_MAX),
        plan=plan,
        plan_flow=waiting is Reason.PLAN_AWAITING_APPROVAL,
        waiting=waiting,
    )
