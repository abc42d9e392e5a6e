"""A state the runtime could not store is pushed once more
(runner.md: A state that could not be stored)."""

import pytest

from tests.runner.harness import Job, wait_until


def _leaves_state(job: Job, then: str = "exit 1") -> str:
    return f"echo lost > {job.root}/errored.tfstate; {then}"


@pytest.mark.parametrize("op", ["apply", "destroy"])
def test_a_failed_change_that_left_its_state_is_followed_by_a_push(job: Job, op):
    job.play(op, script=_leaves_state(job))
    outcome = job.run(f"--op={op}", "--lock-timeout=7s")
    assert outcome.exit == 1
    file = f"{job.root}/errored.tfstate"
    assert outcome.calls[-1].arguments == ["state", "push", "-lock-timeout=7s", file]
    assert outcome.steps[-2:] == [op, "state-push"]
    assert outcome.document["steps"][-1]["exit"] == 0
    assert (outcome.error["kind"], outcome.error["step"]) == ("step", op)


def test_a_failed_push_leaves_the_error_as_it_is(job: Job):
    job.play("apply", err="Error: Failed to save state\n", script=_leaves_state(job))
    job.play("state-push", err="Error: Push refused\n", exit=5)
    outcome = job.run("--op=apply")
    assert outcome.exit == 1
    assert outcome.document["steps"][-1]["exit"] == 5
    assert outcome.error["step"] == "apply"
    assert outcome.error["tail"] == "Error: Failed to save state"


def test_without_such_a_state_nothing_is_pushed(job: Job):
    job.play("apply", exit=1)
    outcome = job.run("--op=apply")
    assert outcome.steps[-1] == "apply"


def test_a_state_left_by_a_successful_apply_is_not_pushed(job: Job):
    job.play("apply", script=_leaves_state(job, "exit 0"))
    assert job.run("--op=apply").steps[-1] == "apply"


def test_a_failed_refresh_pushes_nothing(job: Job):
    job.play("apply-refresh-only", script=_leaves_state(job))
    assert job.run("--op=refresh").steps == ["init", "apply-refresh-only"]


def test_the_push_runs_after_an_interruption_too(job: Job):
    there = job.marker("there")
    waiting = f": > {there}; while :; do sleep 0.02; done"
    job.play("apply", script=f"trap '{_leaves_state(job)}' TERM; {waiting}")
    started = job.start("--op=apply")
    wait_until(there.exists, "the apply")
    started.signal()
    outcome = started.end()
    assert (outcome.error["kind"], outcome.error["step"]) == ("interrupted", "apply")
    assert outcome.steps[-1] == "state-push"
    assert outcome.document["steps"][-1]["exit"] == 0


def test_a_push_that_does_not_end_is_stopped(job: Job):
    job.play("apply", script=_leaves_state(job))
    job.play("state-push", script="trap '' TERM; while :; do sleep 0.02; done")
    outcome = job.start("--op=apply", "--stop-timeout=200ms").end()
    assert outcome.document["steps"][-1] == {
        "name": "state-push",
        "exit": 1,
        "seconds": outcome.document["steps"][-1]["seconds"],
    }
    assert outcome.document["steps"][-1]["seconds"] < 30
