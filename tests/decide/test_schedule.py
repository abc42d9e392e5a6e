"""What is due by the calendar (decision.md: The schedule)."""

from datetime import timedelta

import pytest

from captfctl.decide import Action, Reason, decide_op, jitter, pending_delay
from captfctl.decide.duration import Nanoseconds, of
from captfctl.model.ops import Op
from tests.decide.snapshots import ago, applied, failed, minutes, snapshot

HALF_HOUR = minutes(30)


@pytest.mark.parametrize(
    "more",
    [{}, {"converging": True}, {"drift_interval": HALF_HOUR}, {"state": applied(pending=True)}],
)
def test_an_apply_is_followed_by_a_refresh_before_anything_else(more):
    decision = decide_op(
        snapshot(
            refresh_after_apply=True,
            last_apply_succeeded=ago(minutes=1),
            last_refresh=ago(minutes=2),
            **more,
        )
    )
    assert (decision.op, decision.reason) == (Op.REFRESH, Reason.REFRESH_AFTER_APPLY)


def test_a_cluster_is_not_refreshed_after_its_apply():
    assert decide_op(snapshot(last_apply_succeeded=ago(minutes=1))).reason is Reason.UP_TO_DATE


def test_pending_health_is_read_again_soon():
    never = snapshot(state=applied(pending=True))
    assert decide_op(never).reason is Reason.HEALTH_PENDING
    once = snapshot(state=applied(pending=True), last_refresh=ago(seconds=10), pending_refreshes=1)
    assert decide_op(once).requeue_seconds == 20


def test_the_pending_delay_doubles_up_to_five_minutes():
    assert [pending_delay(n).total_seconds() for n in range(8)] == [
        30, 30, 60, 120, 240, 300, 300, 300,
    ]  # fmt: skip
    assert pending_delay(1000) == timedelta(minutes=5)


def test_a_converging_pool_is_read_every_thirty_seconds_however_long_it_takes():
    decision = decide_op(
        snapshot(
            state=applied(pending=True),
            converging=True,
            pending_refreshes=5,
            last_refresh=ago(seconds=31),
        )
    )
    assert (decision.op, decision.reason) == (Op.REFRESH, Reason.MEMBERSHIP_CONVERGING)


def test_a_due_check_in_backoff_ends_the_schedule():
    decision = decide_op(
        snapshot(
            converging=True,
            last_refresh=ago(minutes=5),
            drift_interval=HALF_HOUR,
            jobs=failed(Op.REFRESH, 1, ago(seconds=20)),
        )
    )
    assert (decision.action, decision.reason) == (
        Action.NONE,
        Reason.MEMBERSHIP_CONVERGING_BACKOFF,
    )
    assert decision.requeue_seconds == 40


def test_membership_counts_from_the_apply_and_else_from_the_creation():
    since_apply = snapshot(membership_interval=minutes(1), last_apply_succeeded=ago(seconds=20))
    assert decide_op(since_apply).requeue_seconds == 40
    since_creation = snapshot(membership_interval=minutes(1), created=ago(minutes=2))
    assert decide_op(since_creation).reason is Reason.MEMBERSHIP_REFRESH_DUE


def test_a_health_check_is_due_without_any_drift_check():
    decision = decide_op(snapshot(health_interval=minutes(5), last_refresh=ago(minutes=6)))
    assert (decision.op, decision.reason) == (Op.REFRESH, Reason.HEALTH_CHECK_DUE)


def test_the_first_drift_check_counts_from_the_apply():
    decision = decide_op(snapshot(drift_interval=HALF_HOUR, last_apply_succeeded=ago(minutes=10)))
    assert (decision.action, decision.requeue_seconds) == (Action.NONE, 20 * 60)


def test_a_check_without_any_time_to_count_from_is_due():
    assert decide_op(snapshot(drift_interval=HALF_HOUR)).reason is Reason.DRIFT_DUE


def test_an_apply_that_failed_after_a_success_lets_the_interval_count_from_the_creation():
    decision = decide_op(snapshot(drift_interval=HALF_HOUR, created=ago(minutes=25)))
    assert decision.requeue_seconds == 5 * 60


def test_nothing_scheduled_means_no_requeue():
    decision = decide_op(snapshot())
    assert (decision.action, decision.reason) == (Action.NONE, Reason.UP_TO_DATE)
    assert decision.requeue_after == 0


def test_the_soonest_check_decides_when_to_come_back():
    decision = decide_op(
        snapshot(
            health_interval=minutes(5),
            last_refresh=ago(minutes=1),
            drift_interval=HALF_HOUR,
            last_drift_check=ago(minutes=27),
        )
    )
    assert decision.requeue_seconds == 180


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        (timedelta(seconds=30), 401_775_683),
        (timedelta(seconds=60), 3_401_775_683),
        (timedelta(seconds=300), 21_401_775_683),
        (HALF_HOUR, 51_401_775_683),
        (Nanoseconds(5), 0),
    ],
)
def test_jitter_is_a_fixed_share_of_the_interval(interval, expected):
    assert jitter("uid-1", interval) == expected


def test_jitter_needs_a_uid():
    assert jitter("", HALF_HOUR) == 0


def test_jitter_puts_off_the_next_check_to_the_nanosecond():
    decision = decide_op(
        snapshot(uid="uid-1", drift_interval=HALF_HOUR, last_drift_check=ago(minutes=10))
    )
    assert decision.requeue_after == of(minutes(20)) + 51_401_775_683


def test_jitter_of_a_pending_object_grows_with_its_delay():
    decision = decide_op(
        snapshot(
            uid="uid-1",
            state=applied(pending=True),
            pending_refreshes=2,
            last_refresh=ago(seconds=10),
        )
    )
    assert decision.requeue_after == of(timedelta(seconds=50)) + jitter("uid-1", minutes(1))
