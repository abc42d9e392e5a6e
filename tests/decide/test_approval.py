"""Plans that wait for a person (decision.md: Manual and guarded applies)."""

import pytest

from captfctl.decide import Action, Jobs, Reason, decide_op
from captfctl.model.ops import Op
from captfctl.model.plan import PlanReason
from runner.wire import EMPTY_PLAN
from tests.decide.snapshots import T0, A, B, C, ago, applied, failed, minutes, plan, snapshot

MANUAL = PlanReason.MANUAL
EXPORTS = PlanReason.EXPORTS_CHANGE


def test_a_waiting_input_change_pauses_the_schedule():
    decision = decide_op(snapshot(state=applied(B), plan=plan(), drift_interval=minutes(30)))
    assert (decision.action, decision.reason) == (Action.NONE, Reason.DESTRUCTIVE_PLAN_BLOCKED)
    assert decision.requeue_seconds == 600
    assert decision.plan == plan().name
    assert decision.waiting is Reason.DESTRUCTIVE_PLAN_BLOCKED
    assert not decision.plan_flow


def test_a_waiting_remediation_keeps_the_schedule_and_names_its_plan():
    decision = decide_op(
        snapshot(remediate=True, plan=plan(inputs_hash=A), drift_interval=minutes(30))
    )
    assert (decision.action, decision.op) == (Action.JOB, Op.DRIFT)
    assert decision.reason is Reason.DRIFT_DUE
    assert decision.plan == plan().name
    assert decision.waiting is Reason.DESTRUCTIVE_PLAN_BLOCKED


@pytest.mark.parametrize(("checked", "expected"), [(ago(minutes=25), 300), (ago(minutes=1), 600)])
def test_a_waiting_remediation_comes_back_for_the_next_check_or_after_ten_minutes(
    checked, expected
):
    decision = decide_op(
        snapshot(
            remediate=True,
            plan=plan(inputs_hash=A),
            drift_interval=minutes(30),
            last_drift_check=checked,
        )
    )
    assert (decision.action, decision.reason) == (Action.NONE, Reason.DESTRUCTIVE_PLAN_BLOCKED)
    assert decision.requeue_seconds == expected


def test_a_waiting_remediation_comes_back_in_ten_minutes_when_nothing_is_scheduled():
    decision = decide_op(snapshot(remediate=True, plan=plan(inputs_hash=A)))
    assert (decision.action, decision.requeue_seconds) == (Action.NONE, 600)


def test_an_approved_destructive_plan_is_applied_as_it_was_planned():
    decision = decide_op(snapshot(state=applied(B), plan=plan(approved=True)))
    assert (decision.action, decision.op) == (Action.JOB, Op.APPLY)
    assert (decision.expect_plan, decision.plan) == ("p2:plan", plan().name)
    assert decision.allow_deletes == ""
    assert decision.waiting is None


def test_an_approval_of_other_inputs_allows_nothing():
    decision = decide_op(snapshot(state=applied(C), plan=plan(approved=True)))
    assert (decision.op, decision.expect_plan, decision.plan) == (Op.APPLY, "", "")


@pytest.mark.parametrize(("elapsed", "expected"), [(4, 360), (10, 0), (11, 0)])
def test_a_blocked_apply_without_a_plan_is_tried_again_after_ten_minutes(elapsed, expected):
    jobs = Jobs(blocked_hash=B, blocked_at=ago(minutes=elapsed))
    decision = decide_op(snapshot(state=applied(B), jobs=jobs))
    assert decision.requeue_seconds == expected
    if expected:
        assert decision.reason is Reason.DESTRUCTIVE_PLAN_BLOCKED
    else:
        assert decision.op is Op.APPLY


def test_a_block_of_other_inputs_stops_nothing():
    jobs = Jobs(blocked_hash=B, blocked_at=T0)
    assert decide_op(snapshot(state=applied(C), jobs=jobs)).op is Op.APPLY


def test_an_approved_apply_in_backoff_names_its_plan_and_expects_nothing_yet():
    jobs = failed(Op.APPLY, 1, ago(seconds=10))
    decision = decide_op(snapshot(state=applied(B), plan=plan(approved=True), jobs=jobs))
    assert (decision.action, decision.reason) == (Action.NONE, Reason.INPUTS_CHANGED_BACKOFF)
    assert (decision.plan, decision.expect_plan) == (plan().name, "")


def test_an_approved_exports_change_allows_the_deletes_it_was_approved_for():
    decision = decide_op(
        snapshot(
            state=applied(B),
            approval_hash="h2:approval",
            plan=plan(EXPORTS, "h2:approval", approved=True),
        )
    )
    assert (decision.op, decision.allow_deletes) == (Op.APPLY, "h2:approval")
    assert decision.expect_plan == ""


@pytest.mark.parametrize("current", [B, C])
def test_an_exports_change_keeps_waiting_when_only_bootstrap_data_rotates(current):
    decision = decide_op(
        snapshot(
            state=applied(current),
            unheld=True,
            approval_hash="h2:approval",
            plan=plan(EXPORTS, "h2:approval"),
            jobs=Jobs(blocked_hash=B, blocked_approval="h2:approval", blocked_at=ago(minutes=1)),
        )
    )
    assert (decision.action, decision.reason) == (Action.NONE, Reason.DESTRUCTIVE_PLAN_BLOCKED)
    assert decision.plan == plan().name


def test_a_blocked_exports_change_is_remembered_across_a_rotation_without_its_plan():
    jobs = Jobs(blocked_hash=B, blocked_approval="h2:approval", blocked_at=ago(minutes=1))
    waiting = snapshot(state=applied(C), unheld=True, approval_hash="h2:approval", jobs=jobs)
    assert decide_op(waiting).requeue_seconds == 540
    other = snapshot(state=applied(B), unheld=True, approval_hash="h2:other", jobs=jobs)
    assert decide_op(other).op is Op.APPLY


def test_a_held_exports_change_does_not_stop_the_apply_of_everything_else():
    decision = decide_op(snapshot(state=applied(C), plan=plan(EXPORTS, "h2:approval")))
    assert (decision.action, decision.op) == (Action.JOB, Op.APPLY)


def test_manual_plans_first():
    decision = decide_op(snapshot(state=applied(B), manual_apply=True))
    assert (decision.action, decision.op) == (Action.JOB, Op.PLAN)
    assert decision.reason is Reason.INPUTS_CHANGED
    assert decision.plan_flow


def test_manual_waits_for_the_approval_of_its_plan():
    decision = decide_op(snapshot(state=applied(B), manual_apply=True, plan=plan(MANUAL)))
    assert (decision.action, decision.reason) == (Action.NONE, Reason.PLAN_AWAITING_APPROVAL)
    assert (decision.plan, decision.requeue_seconds) == (plan().name, 600)
    assert decision.plan_flow


def test_manual_applies_what_was_approved():
    approved = plan(MANUAL, approved=True)
    decision = decide_op(snapshot(state=applied(B), manual_apply=True, plan=approved))
    assert (decision.op, decision.expect_plan, decision.plan) == (
        Op.APPLY,
        "p2:plan",
        approved.name,
    )
    assert decision.plan_flow


@pytest.mark.parametrize(
    "other", [plan(MANUAL, C, approved=True), plan(PlanReason.DESTRUCTIVE, B, approved=True)]
)
def test_manual_plans_again_for_inputs_or_a_reason_that_the_plan_is_not_for(other):
    decision = decide_op(snapshot(state=applied(B), manual_apply=True, plan=other))
    assert (decision.op, decision.plan) == (Op.PLAN, "")


def test_automatic_does_not_wait_for_a_plan_that_manual_left():
    assert decide_op(snapshot(state=applied(B), plan=plan(MANUAL))).op is Op.APPLY


def test_a_plan_without_changes_needs_no_approval():
    decision = decide_op(snapshot(state=applied(B), manual_apply=True, jobs=Jobs(empty_plan=B)))
    assert (decision.op, decision.expect_plan, decision.plan) == (Op.APPLY, EMPTY_PLAN, "")
    assert decision.plan_flow


def test_a_failed_plan_job_backs_off():
    jobs = failed(Op.PLAN, 1, ago(seconds=10))
    decision = decide_op(snapshot(state=applied(B), manual_apply=True, jobs=jobs))
    assert (decision.action, decision.reason) == (Action.NONE, Reason.INPUTS_CHANGED_BACKOFF)
    assert decision.requeue_seconds == 50
    assert decision.plan_flow


def test_a_manual_remediation_that_waits_keeps_the_schedule():
    waiting = plan(MANUAL, A)
    due = snapshot(remediate=True, manual_apply=True, plan=waiting, drift_interval=minutes(30))
    decision = decide_op(due)
    assert (decision.op, decision.plan, decision.plan_flow) == (Op.DRIFT, waiting.name, True)
    assert decision.waiting is Reason.PLAN_AWAITING_APPROVAL
    idle = decide_op(
        snapshot(
            remediate=True,
            manual_apply=True,
            plan=waiting,
            health_interval=minutes(5),
            last_refresh=ago(minutes=3),
        )
    )
    assert (idle.reason, idle.requeue_seconds) == (Reason.PLAN_AWAITING_APPROVAL, 120)
    assert (idle.plan, idle.plan_flow) == (waiting.name, True)
