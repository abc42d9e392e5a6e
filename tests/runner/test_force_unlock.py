"""Clearing a stale lock (runner.md: Stale locks)."""

import pytest

from tests.runner.harness import Job


@pytest.mark.parametrize(
    "text", ["state is already unlocked", 'lock ID "x" does not match existing lock ("y")']
)
def test_a_lock_that_somebody_else_cleared_or_took_is_no_failure(job: Job, text):
    job.play("force-unlock", err=f"Failed to unlock state: {text}\n", exit=1)
    outcome = job.run("--op=destroy", "--force-unlock=x")
    assert outcome.exit == 0
    assert outcome.document["steps"][1]["exit"] == 1
    assert outcome.called == ["init", "force-unlock", "destroy"]


def test_any_other_failure_stops_the_run(job: Job):
    job.play("force-unlock", err="Error: forbidden\n", exit=4)
    outcome = job.run("--op=destroy", "--force-unlock=x")
    assert outcome.exit == 4
    assert outcome.error["step"] == "force-unlock"
    assert outcome.called == ["init", "force-unlock"]


def test_a_killed_command_is_never_excused(job: Job):
    job.play("force-unlock", err="state is already unlocked\n", script="kill -KILL $$")
    outcome = job.run("--op=destroy", "--force-unlock=x")
    assert (outcome.exit, outcome.error["step"]) == (1, "force-unlock")


def test_an_empty_lock_id_means_no_such_step(job: Job):
    assert job.run("--op=destroy", "--force-unlock=").steps == ["init", "destroy"]
