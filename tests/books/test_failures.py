"""Counting failures (runs.md: Counting failures)."""

from dataclasses import replace
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from captfctl.decide import DecideInput, Jobs, Nanoseconds, State, decide_op
from captfctl.decide.duration import to_seconds
from captfctl.model import keys
from captfctl.model.ops import Op
from captfctl.runs.finished import newest_first
from captfctl.terraform.books.counting import Retries, count, outcome_note
from captfctl.terraform.books.failures import (
    FailureCounts,
    Failures,
    remediation_failures,
    retry_number,
)
from captfctl.terraform.books.results import FinishedRun, read_finished
from tests.support.clock import START
from tests.support.runs import World, run_result

OK, FAIL, BLOCKED, CHANGED, EVICTED = "ok", "step", "blocked", "plan-changed", "interrupted"


def counts(runs: list[FinishedRun]) -> FailureCounts:
    return FailureCounts(runs, keys.INPUTS_HASH)


def history(*newest: str, op: Op = Op.APPLY) -> list[FinishedRun]:
    """Finished runs as told, newest first, one second apart."""
    world = World()
    runs = []
    for age, kind in enumerate(newest):
        ok = kind == OK
        job = world.finished(op, 100 - age, ok=ok, at=-age, result=run_result(op, ok=ok, kind=kind))
        runs.append(read_finished(world.door, job, op, lock=lambda: None))
    return newest_first(runs)


def test_blocked_runs_are_passed_over_and_a_success_ends_the_count():
    found = counts(history(FAIL, BLOCKED, FAIL, OK, FAIL)).of(Op.APPLY)
    assert found.count == 2
    assert found.last == START


def test_interrupted_runs_are_no_failures():
    found = counts(history(EVICTED, FAIL)).of(Op.APPLY)
    assert found.count == 1
    assert found.last == START - timedelta(seconds=1)


def test_failed_drift_checks_do_not_delay_an_apply():
    assert counts(history(FAIL, FAIL, op=Op.DRIFT)).of(Op.APPLY).count == 0


def test_retry_number_counts_interrupted_but_not_guarded_runs():
    runs = history(OK, FAIL, EVICTED, BLOCKED, CHANGED, FAIL, OK, FAIL)
    assert retry_number(runs, runs[0]) == 4
    assert retry_number(runs, runs[5]) == 1
    assert retry_number(runs, runs[7]) == 1


def test_remediation_failures_count_since_the_last_check():
    runs = history(FAIL, EVICTED, BLOCKED, FAIL)
    assert remediation_failures(runs, START - timedelta(seconds=2)) == 2
    assert remediation_failures(runs, START - timedelta(seconds=10)) == 3
    assert remediation_failures(runs, START) == 0
    assert remediation_failures(runs, None) == 0


def test_a_successful_apply_ends_the_remediation_failures():
    runs = history(FAIL, OK, FAIL)
    assert remediation_failures(runs, START - timedelta(seconds=10)) == 1


def of_inputs(*newest: str, op: Op = Op.APPLY, key: str = keys.INPUTS_HASH) -> list[FinishedRun]:
    """Failed runs of these inputs, newest first."""
    world = World()
    runs = []
    for age, inputs in enumerate(newest):
        job = world.finished(op, 100 - age, ok=False, at=-age)
        job.metadata.annotations[key] = inputs
        runs.append(read_finished(world.door, job, op, lock=lambda: None))
    return newest_first(runs)


def test_changed_inputs_start_without_failures():
    assert counts(of_inputs("h2:old", "h2:old")).of(Op.APPLY, "h2:new").count == 0


def test_failures_of_the_same_inputs_count_up_to_the_first_of_others():
    runs = of_inputs("h2:new", "h2:new", "h2:old", "h2:new")

    assert counts(runs).of(Op.APPLY, "h2:new").count == 2


def test_inputs_that_are_not_known_now_count_as_those_of_the_newest_run():
    assert counts(of_inputs("h2:new", "h2:new", "h2:old")).of(Op.APPLY).count == 2


def test_a_run_that_does_not_tell_its_inputs_counts_with_any():
    assert counts(of_inputs("h2:new", "", "h2:new")).of(Op.APPLY, "h2:new").count == 3


def test_a_destroy_counts_every_failure_whatever_was_wanted_meanwhile():
    runs = of_inputs("h2:new", "h2:old", op=Op.DESTROY)

    assert counts(runs).of(Op.DESTROY, "h2:other").count == 2


def test_a_kind_whose_inputs_rotate_counts_by_what_it_names_instead():
    runs = of_inputs("h2:same", "h2:same", key=keys.APPROVAL_HASH)
    for age, run in enumerate(runs):
        run.job.metadata.annotations[keys.INPUTS_HASH] = f"h2:rotated-{age}"

    assert FailureCounts(runs, keys.APPROVAL_HASH).of(Op.APPLY, "h2:same").count == 2
    assert FailureCounts(runs, keys.INPUTS_HASH).of(Op.APPLY, "h2:rotated-0").count == 1


_RUNS = st.lists(
    st.tuples(st.sampled_from(["h2:a", "h2:b", ""]), st.sampled_from(["", "blocked", "step"])),
    min_size=1,
    max_size=6,
)


@given(_RUNS, st.sampled_from([Op.APPLY, Op.PLAN, Op.DESTROY, Op.DRIFT]), st.integers(1, 5))
def test_the_event_names_the_time_that_the_decision_waits_for(kinds, op, limit):
    runs = of_inputs(*(inputs for inputs, _ in kinds), op=op)
    runs = [
        replace(run, blocked=kind == BLOCKED) for run, (_, kind) in zip(runs, kinds, strict=True)
    ]
    found = counts(runs).of(op, runs[0].inputs_hash)
    note = outcome_note(count(runs, runs[0]), Retries(counts(runs), limit, 0), (), "team-a")

    if runs[0].blocked:
        assert "next attempt" not in note.note
        return
    at = START + timedelta(seconds=to_seconds(_waited(op, found, limit)))
    assert f"{at:%Y-%m-%dT%H:%M:%SZ} (" in note.note
    assert f", {found.count} failure" in note.note


def _waited(op: Op, found: Failures, limit: int) -> Nanoseconds:
    """What the decision waits right after the newest failure, before it starts the op again."""
    snapshot = DecideInput(
        now=START,
        deleting=op is Op.DESTROY,
        state=State(
            exists=True,
            inputs_hash="h2:applied",
            current_hash="h2:applied" if op is Op.DRIFT else "h2:wanted",
        ),
        manual_apply=op is Op.PLAN,
        drift_interval=timedelta(minutes=1 if op is Op.DRIFT else 0),
        jobs=Jobs(failures={op: found.count}, last_failure={op: found.last}, failed_limit=limit),
    )
    decision = decide_op(snapshot)
    assert decision.reason.backing_off
    return decision.requeue_after
