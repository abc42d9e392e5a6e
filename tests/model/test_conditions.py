"""Conditions and the summary of them (conditions-and-events.md: Types of conditions)."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from captfctl.model.conditions import (
    BEFORE_PROVISIONED,
    MESSAGE_MAX,
    Conditions,
    Type,
    cut,
    find,
)
from captfctl.model.meta import Condition
from captfctl.model.reasons import Deleting, Paused, Ready, StateReadable

NOW = datetime(2026, 9, 25, 12, 0, 0, 123456, tzinfo=UTC)
EARLIER = datetime(2026, 9, 25, 11, 0, 0, tzinfo=UTC)


def existing(kind, status="True", reason="Fine"):
    return Condition(type=kind, status=status, reason=reason, last_transition_time=EARLIER)


def conditions(*found, now=NOW):
    return Conditions(found, now, generation=3)


def test_the_transition_time_moves_only_with_the_status():
    current = conditions(existing(Type.STATE_READABLE))
    same = current.set(Type.STATE_READABLE, "True", "Other", "message")
    assert same.last_transition_time == EARLIER
    moved = current.set(Type.STATE_READABLE, "False", "Broken")
    assert moved.last_transition_time == NOW.replace(microsecond=0)


def test_a_status_that_is_set_back_within_a_pass_has_not_changed():
    current = conditions(existing(Type.STATE_READABLE))
    current.set(Type.STATE_READABLE, "False", "Broken")
    assert current.set(Type.STATE_READABLE, "True", "Fine").last_transition_time == EARLIER


def test_a_condition_carries_the_generation_it_was_made_for():
    assert conditions().set(Type.PAUSED, "False", "NotPaused").observed_generation == 3


@pytest.mark.parametrize(
    ("reason", "message"),
    [(StateReadable.STATE_LOST, "StateLost"), (StateReadable.STATE_READ, ""), (Ready.READY, "")],
)
def test_an_empty_message_is_the_reason_with_few_exceptions(reason, message):
    assert conditions().set_reason(reason).message == message


def test_a_default_does_not_overwrite():
    current = conditions(existing(Type.PAUSED, "True", "Paused"))
    current.set_default(Paused.NOT_PAUSED)
    current.set_default(Deleting.NOT_DELETING)
    assert [c.status for c in current.list()] == ["True", "False"]


def test_what_was_not_touched_keeps_its_value_and_strangers_come_last():
    stranger = existing("Zebra")
    current = conditions(stranger, existing(Type.DELETING, "False"))
    current.set(Type.READY, "True", "Ready")
    assert [c.type for c in current.list()] == ["Ready", "Deleting", "Zebra"]
    assert current.list()[2] is stranger


def test_a_removed_condition_is_gone():
    current = conditions(existing(Type.RESTORE_JOB_SUCCEEDED))
    current.remove(Type.RESTORE_JOB_SUCCEEDED)
    current.remove(Type.RESTORE_JOB_SUCCEEDED)
    assert current.list() == []


def test_a_long_message_is_cut():
    message = conditions().set(Type.STATE_READABLE, "False", "X", "ä" * MESSAGE_MAX).message
    assert len(message.encode()) == MESSAGE_MAX


@given(st.text(), st.integers(0, 40))
def test_a_cut_is_a_prefix_within_the_limit(text, limit):
    short = cut(text, limit)
    assert text.startswith(short)
    assert len(short.encode()) <= limit
    assert short == text or len(text[: len(short) + 1].encode()) > limit


def test_conditions_are_found_by_type():
    found = [existing(Type.READY, "False")]
    assert find(found, Type.READY) is found[0]
    assert find(found, Type.PAUSED) is None


def all_good():
    good = [existing(kind) for kind in BEFORE_PROVISIONED if kind is not Type.DELETING]
    return [*good, existing(Type.DELETING, "False")]


def ready(*found, provisioned=False):
    current = conditions(*found)
    current.summarize_ready(provisioned)
    value = current[Type.READY]
    assert value is not None
    return value.status, value.reason, value.message


def test_ready_when_everything_is_good():
    assert ready(*all_good()) == ("True", "Ready", "")


@pytest.mark.parametrize("kind", [kind for kind in BEFORE_PROVISIONED if kind is not Type.DELETING])
def test_one_false_input_makes_it_not_ready_before_it_is_provisioned(kind):
    found = [c for c in all_good() if c.type != kind]
    status, reason, message = ready(*found, existing(kind, "False", "Broken"))
    assert (status, reason) == ("False", "NotReady")
    assert message == f"* {kind}: Broken"


@pytest.mark.parametrize("kind", [kind for kind in BEFORE_PROVISIONED if kind is not Type.DELETING])
def test_one_unknown_or_missing_input_makes_it_unknown(kind):
    found = [c for c in all_good() if c.type != kind]
    assert ready(*found, existing(kind, "Unknown"))[:2] == ("Unknown", "ReadyUnknown")
    assert ready(*found)[:2] == ("Unknown", "ReadyUnknown")


def test_false_comes_before_unknown_and_both_are_told_in_order():
    found = [
        existing(Type.DEPENDENCIES_READY, "Unknown", "Waits"),
        existing(Type.STATE_READABLE, "False", "Lost"),
    ]
    good = [c for c in all_good() if c.type not in {f.type for f in found}]
    assert ready(*found, *good)[2] == "* StateReadable: Lost\n* DependenciesReady: Waits"


def test_a_deletion_is_not_ready_and_a_missing_one_is_ignored():
    found = [c for c in all_good() if c.type != Type.DELETING]
    assert ready(*found)[0] == "True"
    assert ready(*found, existing(Type.DELETING, "True", "Deleting"))[0] == "False"


def test_a_failed_apply_does_not_turn_a_provisioned_cluster_not_ready():
    found = [c for c in all_good() if c.type != Type.APPLY_JOB_SUCCEEDED]
    failed = existing(Type.APPLY_JOB_SUCCEEDED, "False", "ApplyFailed")
    assert ready(*found, failed, provisioned=True)[0] == "True"
    assert ready(*found, failed, provisioned=False)[0] == "False"


def test_unhealthy_infrastructure_turns_a_provisioned_cluster_not_ready():
    unhealthy = existing(Type.INFRASTRUCTURE_HEALTHY, "False", "InstanceDegraded")
    assert ready(unhealthy, provisioned=True)[0] == "False"


def test_ready_keeps_its_time_while_it_stays_the_same():
    current = conditions(*all_good(), existing(Type.READY))
    current.summarize_ready(provisioned=False)
    assert current[Type.READY].last_transition_time == EARLIER  # type: ignore[union-attr]
    later = Conditions(current.list(), NOW + timedelta(hours=1), 3)
    later.set(Type.DELETING, "True", "Deleting")
    later.summarize_ready(provisioned=False)
    assert later[Type.READY].last_transition_time > NOW  # type: ignore[union-attr, operator]
