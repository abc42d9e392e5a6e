"""What holds for every snapshot."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from captfctl.decide import (
    Action,
    DecideInput,
    Jobs,
    Reason,
    State,
    backoff,
    decide_op,
    jitter,
    pending_delay,
)
from captfctl.decide.duration import of
from captfctl.model.ops import Op
from captfctl.model.plan import PlanReason
from tests.decide.snapshots import T0, A, B, applied, plan

hashes = st.sampled_from(["", A, B])
moments = st.none() | st.integers(0, 7200).map(lambda s: T0 - timedelta(seconds=s))
intervals = st.sampled_from([0, 30, 60, 300, 1800]).map(lambda s: timedelta(seconds=s))
counts = st.dictionaries(st.sampled_from(list(Op)), st.integers(0, 5))
times = st.dictionaries(
    st.sampled_from(list(Op)), st.integers(0, 900).map(lambda s: T0 - timedelta(seconds=s))
)
plans = st.none() | st.builds(
    plan, st.sampled_from(list(PlanReason)), st.sampled_from([A, B]), approved=st.booleans()
)
snapshots = st.builds(
    DecideInput,
    now=st.just(T0),
    deleting=st.booleans(),
    mutable=st.booleans(),
    state=st.builds(
        State,
        exists=st.booleans(),
        inputs_hash=hashes,
        current_hash=hashes,
        pending=st.booleans(),
        empty=st.booleans(),
    ),
    jobs=st.builds(
        Jobs,
        active=st.booleans(),
        failures=counts,
        last_failure=times,
        failed_limit=st.integers(0, 4),
        remediation_failures=st.integers(0, 4),
        last_apply_failed=st.booleans(),
        blocked_hash=hashes,
        blocked_at=moments,
        blocked_approval=hashes,
        empty_plan=hashes,
    ),
    last_refresh=moments,
    last_drift_check=moments,
    drift_interval=intervals,
    refresh_after_apply=st.booleans(),
    last_apply_succeeded=moments,
    pending_refreshes=st.integers(0, 9),
    remediate=st.booleans(),
    health_interval=intervals,
    membership_interval=intervals,
    converging=st.booleans(),
    uid=st.sampled_from(["", "uid-1", "uid-2"]),
    created=moments,
    approval_hash=hashes,
    unheld=st.booleans(),
    restore=st.booleans(),
    state_held=st.booleans(),
    retain=st.booleans(),
    first_apply=st.booleans(),
    manual_apply=st.booleans(),
    plan=plans,
)


@given(snapshots)
def test_equal_snapshots_give_equal_decisions_and_stay_untouched(inp):
    before = repr(inp)
    twin = replace(inp)
    assert decide_op(inp) == decide_op(twin)
    assert repr(inp) == before


@given(snapshots)
def test_a_decision_is_consistent(inp):
    decision = decide_op(inp)
    assert (decision.op is not None) == (decision.action is Action.JOB)
    assert decision.requeue_after >= 0
    if decision.action is not Action.NONE:
        assert decision.requeue_after == 0
    if decision.expect_plan or decision.allow_deletes:
        assert (decision.action, decision.op) == (Action.JOB, Op.APPLY)
    if decision.reason.backing_off:
        assert (decision.action, decision.requeue_after > 0) == (Action.NONE, True)
    if decision.waiting is not None:
        assert not (inp.plan.approved if decision.plan else inp.plan)


@given(snapshots)
def test_rules_hold_in_their_order(inp):
    """Each rule's condition, tested from the top, decides alone which reason can come out."""
    reason = decide_op(inp).reason
    state = inp.state
    if inp.jobs.active:
        assert reason is Reason.JOB_ACTIVE
    elif inp.deleting and inp.retain:
        assert reason is Reason.DELETION_RETAINED
    elif inp.restore and (not inp.deleting or inp.state_held):
        assert reason is Reason.RESTORE_REQUESTED
    elif inp.deleting and inp.state_held:
        assert reason is Reason.DELETION_HELD
    elif inp.deleting:
        if not state.exists:
            assert reason is Reason.DELETING_WITHOUT_STATE
        elif state.empty:
            assert reason is Reason.DELETING_WITHOUT_RESOURCES
        else:
            assert reason in {Reason.DELETING, Reason.DELETING_BACKOFF}
    elif not state.exists:
        assert reason in _due(Reason.NO_STATE)
    elif not state.inputs_hash:
        assert reason in _due(Reason.STATE_WITHOUT_INPUTS_HASH) | _scheduled()
    elif inp.mutable and state.current_hash not in ("", state.inputs_hash):
        assert reason in _due(Reason.INPUTS_CHANGED)
    elif inp.mutable and inp.jobs.last_apply_failed:
        assert reason in _due(Reason.LAST_APPLY_FAILED) | _scheduled()


def _due(reason: Reason) -> set[Reason]:
    waits = {Reason.PLAN_AWAITING_APPROVAL, Reason.DESTRUCTIVE_PLAN_BLOCKED}
    return {reason, reason.backoff()} | waits


def _scheduled() -> set[Reason]:
    due = {
        Reason.REFRESH_AFTER_APPLY,
        Reason.MEMBERSHIP_CONVERGING,
        Reason.HEALTH_PENDING,
        Reason.MEMBERSHIP_REFRESH_DUE,
        Reason.HEALTH_CHECK_DUE,
        Reason.DRIFT_DUE,
    }
    return due | {reason.backoff() for reason in due}


@given(snapshots)
def test_an_apply_of_the_applied_inputs_never_holds_the_schedule_back(inp):
    """Whatever it waits for (a block, a person, its backoff), the checks come when they are due."""
    inp = replace(inp, state=applied(), mutable=True, deleting=False, restore=False)
    inp = replace(inp, jobs=replace(inp.jobs, active=False))
    decision = decide_op(inp)
    idle = replace(inp, remediate=False, jobs=replace(inp.jobs, last_apply_failed=False))
    scheduled = decide_op(idle)
    if decision.op in (Op.APPLY, Op.PLAN):
        return
    assert decision.op is scheduled.op
    if scheduled.requeue_after:
        assert 0 < decision.requeue_after <= scheduled.requeue_after


@given(snapshots)
def test_changed_inputs_that_wait_pause_every_check(inp):
    state = applied(B)
    inp = replace(inp, state=state, mutable=True, deleting=False, restore=False)
    decision = decide_op(replace(inp, jobs=replace(inp.jobs, active=False)))
    assert decision.op in (None, Op.APPLY, Op.PLAN)


@given(snapshots)
def test_nothing_is_destroyed_that_is_not_being_deleted(inp):
    if decide_op(inp).op is Op.DESTROY:
        assert inp.deleting
        assert not inp.retain


@given(snapshots)
def test_an_unapproved_plan_is_never_applied_under_manual(inp):
    decision = decide_op(inp)
    if inp.manual_apply and inp.state.exists and not inp.first_apply and decision.op is Op.APPLY:
        assert decision.expect_plan


@given(st.integers(0, 50), st.integers(0, 10))
def test_backoff_never_shrinks_and_never_exceeds_ten_minutes(failures, limit):
    now, then = backoff(failures, limit), backoff(failures + 1, limit)
    assert timedelta(0) <= now <= then <= timedelta(minutes=10)


@given(st.integers(0, 10_000))
def test_the_pending_delay_never_shrinks_and_never_exceeds_five_minutes(refreshes):
    now, then = pending_delay(refreshes), pending_delay(refreshes + 1)
    assert timedelta(seconds=30) <= now <= then <= timedelta(minutes=5)


@given(st.text(), st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=400)))
def test_jitter_is_less_than_a_tenth_of_the_interval(uid, interval):
    share = jitter(uid, interval)
    assert share == jitter(uid, interval)
    assert share >= 0
    assert share * 10 < of(interval) or share == 0
