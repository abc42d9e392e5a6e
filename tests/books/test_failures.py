"""Counting failures (11 §8.4, 10 §14.3.5)."""

from datetime import timedelta

from captfctl.model.ops import Op
from captfctl.terraform.books.failures import (
    failures,
    failures_of_inputs,
    remediation_failures,
    retry_number,
)
from captfctl.terraform.books.results import FinishedRun, newest_first, read_finished
from tests.support.clock import START
from tests.support.runs import World, run_result

OK, FAIL, BLOCKED, CHANGED, EVICTED = "ok", "step", "blocked", "plan-changed", "interrupted"


def history(*newest: str, op: Op = Op.APPLY) -> list[FinishedRun]:
    """Finished runs as told, newest first, one second apart."""
    world = World()
    runs = []
    for age, kind in enumerate(newest):
        ok = kind == OK
        job = world.finished(op, 100 - age, ok=ok, at=-age, result=run_result(op, ok=ok, kind=kind))
        runs.append(read_finished(world.door, job, op, lock_version=lambda: None))
    return newest_first(runs)


def test_blocked_runs_are_passed_over_and_a_success_ends_the_count():
    found = failures(history(FAIL, BLOCKED, FAIL, OK, FAIL), Op.APPLY)
    assert found.count == 2
    assert found.last == START


def test_interrupted_runs_are_no_failures():
    found = failures(history(EVICTED, FAIL), Op.APPLY)
    assert found.count == 1
    assert found.last == START - timedelta(seconds=1)


def test_failed_drift_checks_do_not_delay_an_apply():
    assert failures(history(FAIL, FAIL, op=Op.DRIFT), Op.APPLY).count == 0


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


def of_inputs(*newest: str) -> list[FinishedRun]:
    """Failed applies of these inputs, newest first."""
    world = World()
    runs = []
    for age, inputs in enumerate(newest):
        job = world.finished(Op.APPLY, 100 - age, ok=False, at=-age, inputs_hash=inputs)
        runs.append(read_finished(world.door, job, Op.APPLY, lock_version=lambda: None))
    return newest_first(runs)


def test_changed_inputs_start_without_failures():
    assert failures_of_inputs(of_inputs("h2:old", "h2:old"), Op.APPLY, "h2:new").count == 0


def test_failures_of_the_same_inputs_count_up_to_the_first_of_others():
    runs = of_inputs("h2:new", "h2:new", "h2:old", "h2:new")

    assert failures_of_inputs(runs, Op.APPLY, "h2:new").count == 2


def test_inputs_that_cannot_be_built_count_every_failure():
    assert failures_of_inputs(of_inputs("h2:new", "h2:old"), Op.APPLY, "").count == 2
