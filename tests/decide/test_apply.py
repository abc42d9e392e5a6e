"""When an apply is due, and when it backs off (decision.md: Order of the rules;
decision.md: Retries and backoff)."""

import pytest

from captfctl.decide import Action, Jobs, Reason, State, decide_op
from captfctl.model.ops import Op
from tests.decide.snapshots import B, ago, applied, failed, machine, minutes, snapshot


@pytest.mark.parametrize("manual", [False, True])
def test_without_a_state_it_applies_also_under_manual(manual):
    decision = decide_op(snapshot(state=State(current_hash=B), manual_apply=manual))
    assert (decision.action, decision.op) == (Action.JOB, Op.APPLY)
    assert decision.reason is Reason.NO_STATE
    assert not decision.plan_flow


def test_a_state_without_inputs_hash_is_applied_again_also_for_a_machine():
    decision = decide_op(machine(state=State(exists=True)))
    assert (decision.op, decision.reason) == (Op.APPLY, Reason.STATE_WITHOUT_INPUTS_HASH)


@pytest.mark.parametrize(
    ("last", "expected"), [(ago(seconds=30), (Action.NONE, 90)), (ago(minutes=3), (Action.JOB, 0))]
)
def test_two_failures_are_followed_by_two_minutes_of_waiting(last, expected):
    jobs = failed(Op.APPLY, 2, last)
    decision = decide_op(machine(state=State(exists=True), jobs=jobs))
    assert (decision.action, decision.requeue_seconds) == expected
    if decision.action is Action.NONE:
        assert decision.reason is Reason.STATE_WITHOUT_INPUTS_HASH_BACKOFF


def test_at_the_history_limit_the_longest_backoff_applies():
    jobs = failed(Op.APPLY, 3, ago(minutes=1), failed_limit=3)
    decision = decide_op(machine(state=State(exists=True), jobs=jobs))
    assert (decision.action, decision.requeue_seconds) == (Action.NONE, 9 * 60)


def test_changed_inputs_are_applied_to_a_mutable_object_only():
    assert decide_op(snapshot(state=applied(B))).reason is Reason.INPUTS_CHANGED
    assert decide_op(machine(state=applied(B))).reason is Reason.UP_TO_DATE


def test_inputs_that_could_not_be_built_are_no_change():
    assert decide_op(snapshot(state=applied(current=""))).action is Action.NONE


def test_a_failed_apply_is_due_again_at_equal_hashes_for_a_mutable_object_only():
    jobs = failed(Op.APPLY, 1, ago(minutes=2), last_apply_failed=True)
    decision = decide_op(snapshot(jobs=jobs))
    assert (decision.op, decision.reason) == (Op.APPLY, Reason.LAST_APPLY_FAILED)
    assert decide_op(machine(jobs=jobs)).reason is Reason.UP_TO_DATE


def test_drift_is_remediated_until_as_many_applies_failed_as_are_kept():
    two = snapshot(remediate=True, jobs=Jobs(remediation_failures=2))
    assert decide_op(two).reason is Reason.DRIFT_REMEDIATION
    three = snapshot(
        remediate=True,
        jobs=Jobs(remediation_failures=3),
        drift_interval=minutes(30),
        last_drift_check=ago(minutes=10),
    )
    decision = decide_op(three)
    assert (decision.reason, decision.requeue_seconds) == (Reason.UP_TO_DATE, 20 * 60)


def test_a_limit_of_zero_counts_as_one():
    none = snapshot(remediate=True, jobs=Jobs(failed_limit=0))
    assert decide_op(none).reason is Reason.DRIFT_REMEDIATION
    one = snapshot(remediate=True, jobs=Jobs(failed_limit=0, remediation_failures=1))
    assert decide_op(one).reason is Reason.UP_TO_DATE


def test_changed_inputs_win_over_a_remediation():
    decision = decide_op(snapshot(remediate=True, state=applied(B)))
    assert decision.reason is Reason.INPUTS_CHANGED


def test_failures_of_one_operation_do_not_delay_another():
    jobs = failed(Op.DRIFT, 3, ago(seconds=0))
    assert decide_op(snapshot(state=applied(B), jobs=jobs)).action is Action.JOB
