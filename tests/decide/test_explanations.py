"""Words for reasons, and durations as people read them (decision.md: Reasons of decisions)."""

import pytest

from captfctl.decide import Action, Decision, Reason, duration, explain
from captfctl.decide.explain import EXPLANATIONS, explain_reason
from captfctl.model.ops import Op


def test_every_reason_is_explained():
    assert {reason for reason in Reason if not reason.backing_off} == set(EXPLANATIONS)
    for reason in Reason:
        assert explain_reason(reason) not in ("", reason.value)


def test_reasons_that_start_a_job_can_back_off():
    backing_off = {reason for reason in Reason if reason.backing_off}
    assert backing_off == {
        reason.backoff()
        for reason in Reason
        if not reason.backing_off and f"{reason.value}Backoff" in set(Reason)
    }
    assert len(backing_off) == 12
    with pytest.raises(ValueError, match="RestoreRequested never backs off"):
        Reason.RESTORE_REQUESTED.backoff()


def test_an_unknown_reason_is_shown_as_it_is():
    assert explain_reason("FromTheFuture") == "FromTheFuture"


def test_a_plan_job_says_that_it_is_for_approval():
    decision = Decision(action=Action.JOB, op=Op.PLAN, reason=Reason.INPUTS_CHANGED)
    assert explain(decision).startswith("planning for approval (applyPolicy Manual): ")


def test_an_approved_apply_names_its_plan():
    decision = Decision(
        action=Action.JOB, op=Op.APPLY, reason=Reason.INPUTS_CHANGED, plan="demo-fd4af3ae3e"
    )
    assert "TerraformPlan demo-fd4af3ae3e" in explain(decision)


@pytest.mark.parametrize(
    ("nanoseconds", "expected"),
    [
        (0, "0s"),
        (1, "0.000000001s"),
        (40_000_000_000, "40s"),
        (60_000_000_000, "1m0s"),
        (3_600_000_000_000, "1h0m0s"),
        (1_251_401_775_683, "20m51.401775683s"),
        (-90_500_000_000, "-1m30.5s"),
    ],
)
def test_durations_are_written_as_kubectl_writes_them(nanoseconds, expected):
    assert duration.text(duration.Nanoseconds(nanoseconds)) == expected
