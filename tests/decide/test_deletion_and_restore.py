"""What a deletion and a restore come to (decision.md: Order of the rules)."""

import pytest

from captfctl.decide import Action, Jobs, Reason, State, decide_op
from captfctl.model.ops import Op
from tests.decide.snapshots import ago, applied, failed, machine, snapshot


def test_nothing_is_decided_while_a_job_runs_not_even_for_a_deletion():
    decision = decide_op(snapshot(deleting=True, retain=True, jobs=Jobs(active=True)))
    assert (decision.action, decision.reason) == (Action.NONE, Reason.JOB_ACTIVE)
    assert decision.requeue_seconds == 60


def test_retain_wins_over_a_restore_and_over_a_held_state():
    decision = decide_op(snapshot(deleting=True, retain=True, restore=True, state_held=True))
    assert (decision.action, decision.reason) == (Action.RETAIN, Reason.DELETION_RETAINED)


def test_deleting_without_state_drops_the_finalizer():
    decision = decide_op(snapshot(deleting=True, state=State()))
    assert decision.action is Action.DROP_FINALIZER
    assert decision.reason is Reason.DELETING_WITHOUT_STATE


@pytest.mark.parametrize("make", [snapshot, machine])
def test_deleting_a_state_without_resources_drops_the_finalizer_whatever_failed(make):
    jobs = failed(Op.DESTROY, 5, ago(seconds=0), last_apply_failed=True)
    decision = decide_op(make(deleting=True, state=applied(empty=True), jobs=jobs))
    assert decision.action is Action.DROP_FINALIZER
    assert decision.reason is Reason.DELETING_WITHOUT_RESOURCES


def test_a_state_without_resources_is_kept_or_held_or_restored_as_any_other():
    state = applied(empty=True)
    assert decide_op(snapshot(deleting=True, state=state, retain=True)).action is Action.RETAIN
    held = snapshot(deleting=True, state=state, state_held=True)
    assert decide_op(held).reason is Reason.DELETION_HELD
    restore = snapshot(deleting=True, state=state, state_held=True, restore=True)
    assert decide_op(restore).op is Op.RESTORE


def test_a_live_object_whose_state_has_no_resources_goes_on():
    assert decide_op(snapshot(state=applied(empty=True))).reason is Reason.UP_TO_DATE


@pytest.mark.parametrize("make", [snapshot, machine])
def test_deleting_an_applied_object_destroys_it(make):
    decision = decide_op(make(deleting=True))
    assert (decision.action, decision.op) == (Action.JOB, Op.DESTROY)
    assert decision.reason is Reason.DELETING


def test_a_held_deletion_waits_a_minute_whatever_the_backoff_of_destroy():
    jobs = failed(Op.DESTROY, 5, ago(seconds=0))
    decision = decide_op(snapshot(deleting=True, state_held=True, jobs=jobs))
    assert (decision.action, decision.reason) == (Action.NONE, Reason.DELETION_HELD)
    assert decision.requeue_seconds == 60


def test_a_held_deletion_can_be_freed_by_a_restore():
    decision = decide_op(snapshot(deleting=True, state_held=True, restore=True))
    assert (decision.action, decision.op) == (Action.JOB, Op.RESTORE)


def test_a_restore_does_not_stop_a_deletion_whose_state_is_readable():
    decision = decide_op(snapshot(deleting=True, restore=True))
    assert (decision.action, decision.op) == (Action.JOB, Op.DESTROY)


def test_a_restore_does_not_back_off():
    jobs = failed(Op.RESTORE, 2, ago(seconds=0))
    decision = decide_op(snapshot(restore=True, jobs=jobs))
    assert (decision.action, decision.op) == (Action.JOB, Op.RESTORE)
    assert decision.reason is Reason.RESTORE_REQUESTED


def test_a_restore_comes_before_a_due_apply():
    decision = decide_op(snapshot(restore=True, state=applied(current="h1:b")))
    assert decision.op is Op.RESTORE


def test_a_failed_destroy_is_retried_after_its_backoff():
    jobs = failed(Op.DESTROY, 1, ago(seconds=20))
    decision = decide_op(snapshot(deleting=True, jobs=jobs))
    assert (decision.action, decision.reason) == (Action.NONE, Reason.DELETING_BACKOFF)
    assert decision.requeue_seconds == 40
