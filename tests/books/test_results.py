"""Reading finished Jobs and the runner's untrusted result (runs.md: Reading a finished Job)."""

import json

import pytest

from captfctl.model import core, keys
from captfctl.model.ops import Op
from captfctl.model.resources import JOBS
from captfctl.runs import finished
from captfctl.runs.finished import newest_first
from captfctl.terraform.books.result_document import (
    read_result,
    status_drift,
    status_error,
    status_steps,
)
from captfctl.terraform.books.results import op_of, read_finished
from captfctl.terraform.state.lock import LockTrace
from runner import wire
from tests.support.runs import World, run_result


def never() -> LockTrace | None:
    raise AssertionError("the lock is read only to judge a silent apply")


def read(world: World, job: core.Job, lock: object = never):
    return read_finished(world.door, job, op_of(job), lock=lock)


class NoRequests:
    def __getattr__(self, name: str) -> object:
        raise AssertionError(f"{name} was called")


def test_result_cut_at_the_kubelets_limit_is_no_result():
    world = World()
    job = world.finished(ok=False, pod=False)
    whole = json.dumps(run_result(Op.APPLY, padding="x" * 5000))
    pod = world.add_pod(job, message=whole[:4096], phase="Failed")
    assert read_result(pod).problem == "truncated"
    run = read(world, job, lambda: None)
    assert run.result is None
    assert run.failed


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        ("", "missing"),
        (" \n", "missing"),
        ("Killed", "invalid"),
        ("[]", "invalid"),
        ('{"version": 2}', "invalid"),
        ("{}", "invalid"),
        ('{"version": "1"}', "invalid"),
        ('{"version": 1, "steps": "all"}', "invalid"),
    ],
)
def test_anything_else_than_a_result_is_no_result(message, problem):
    world = World()
    job = world.finished(pod=False)
    assert read_result(world.add_pod(job, message=message)).problem == problem


def test_running_container_and_missing_pod_have_no_result():
    world = World()
    job = world.finished(pod=False)
    running = core.ContainerState(running=core.ContainerStateRunning())
    assert read_result(world.add_pod(job, state=running)).problem == "missing"
    assert read_result(None).problem == "missing"


def test_unknown_keys_are_ignored_and_missing_ones_are_zero():
    world = World()
    job = world.finished(pod=False)
    pod = world.add_pod(job, message={"version": 1, "new": {"a": 1}, "plan": {"hash": "p2:x"}})
    result = read_result(pod).result
    assert result.steps == ()
    assert result.plan.hash == "p2:x"
    assert result.error_kind == ""


def test_newest_pod_of_the_job_itself_is_read():
    world = World()
    job = world.finished(pod=False)
    world.add_pod(job, message=run_result(Op.APPLY, ok=False), age=60, name="old")
    world.add_pod(job, message=run_result(Op.APPLY), age=10, name="new")
    other = world.add_job(world.run(attempt=9))
    forged = world.add_pod(other, message=run_result(Op.APPLY, kind="blocked", ok=False), age=0)
    world.door.patch(
        core_pods(),
        forged.metadata.name,
        "team-a",
        {"metadata": {"labels": {keys.JOB_NAME: job.metadata.name}}},
    )
    run = read(world, job)
    assert run.pod.metadata.name == "new"
    assert run.ok


def core_pods():
    from captfctl.model.resources import PODS

    return PODS


def test_a_run_that_its_deadline_interrupted_is_tried_again_at_once_now_and_later():
    world = World()
    job = world.finished(
        ok=False,
        reason="DeadlineExceeded",
        result=run_result(Op.APPLY, ok=False, kind="interrupted"),
    )
    run = read(world, job)
    assert run.deadline
    assert run.label == "deadline"
    assert finished.mark(world.door, [run]) == []
    for seen in (run, read(world, marked(world, job))):
        assert seen.interrupted
        assert not seen.failed


def test_a_deadline_that_no_runner_tells_of_counts_as_a_failure():
    world = World()
    silent = world.finished(ok=False, reason="DeadlineExceeded", result="")
    assert read(world, silent, lambda: None).failed
    own = run_result(Op.APPLY, ok=False, kind="step")
    late = world.finished(attempt=2, ok=False, reason="DeadlineExceeded", result=own)
    assert read(world, late).failed


def test_eviction_that_the_runner_reported_is_not_counted_now_or_later():
    world = World()
    job = world.finished(ok=False, result=run_result(Op.APPLY, ok=False, kind="interrupted"))
    run = read(world, job)
    assert run.interrupted
    assert not run.failed
    assert finished.mark(world.door, [run]) == []
    later = read_finished(NoRequests(), marked(world, job), Op.APPLY, lock=never)
    assert later.bookkept
    assert later.interrupted
    assert not later.failed


def marked(world: World, job: core.Job) -> core.Job:
    return world.door.get(JOBS, job.metadata.name, "team-a")


@pytest.mark.parametrize("kind", ["blocked", "plan-changed"])
def test_guard_outcomes_of_an_apply_are_no_failures_and_survive_on_the_job(kind):
    world = World()
    job = world.finished(ok=False, result=run_result(Op.APPLY, ok=False, kind=kind))
    run = read(world, job)
    assert run.stopped
    assert not run.failed
    assert run.label == kind
    assert finished.mark(world.door, [run]) == []
    later = read(world, marked(world, job))
    assert (later.blocked, later.plan_changed) == (kind == "blocked", kind == "plan-changed")


@pytest.mark.parametrize("kind", ["blocked", "plan-changed"])
def test_only_an_apply_can_be_blocked(kind):
    world = World()
    job = world.finished(Op.DESTROY, ok=False, result=run_result(Op.DESTROY, ok=False, kind=kind))
    assert read(world, job).failed


@pytest.mark.parametrize("result", ["", run_result(Op.PLAN)])
def test_plan_job_that_completed_without_a_plan_is_a_failure(result):
    world = World()
    job = world.finished(Op.PLAN, result=result)
    run = read(world, job)
    assert run.plan_unreadable
    assert not run.ok
    assert run.failed
    assert finished.mark(world.door, [run]) == []
    assert not read(world, marked(world, job)).ok


def test_plan_hash_is_kept_on_the_job():
    world = World()
    job = world.finished(Op.PLAN, result=run_result(Op.PLAN, plan={"hash": "p2:x"}))
    assert read(world, job).marks() == {keys.BOOKKEPT: "true", keys.PLAN_HASH: "p2:x"}


def test_finish_time_decides_the_order_and_the_name_on_a_tie():
    world = World()
    jobs = [
        world.finished(attempt=1, at=-10),
        world.finished(attempt=2, at=-5),
        world.finished(Op.DRIFT, attempt=1, at=-5),
    ]
    runs = newest_first(read(world, job) for job in jobs)
    assert [run.op for run in runs] == [Op.DRIFT, Op.APPLY, Op.APPLY]


@pytest.mark.parametrize(
    ("recorded", "present", "unconfirmed"),
    [
        ("17", "17", False),
        ("none", "none", False),
        ("17", "18", True),
        ("none", "18", True),
        ("17", None, True),
        ("", "17", True),
    ],
)
def test_silent_apply_is_unconfirmed_unless_it_never_took_the_state_lock(
    recorded, present, unconfirmed
):
    world = World()
    job = world.finished(ok=False, pod=False, state_lock_version=recorded)
    run = read(world, job, lambda: present and LockTrace(version=present))
    assert run.crashed is unconfirmed
    assert run.may_have_applied is unconfirmed


@pytest.mark.parametrize(
    ("state", "applied"),
    [
        (core.ContainerState(waiting=core.ContainerStateWaiting(reason="ErrImagePull")), False),
        (
            core.ContainerState(waiting=core.ContainerStateWaiting(reason="ContainerCreating")),
            False,
        ),
        (core.ContainerState(running=core.ContainerStateRunning()), True),
        (
            core.ContainerState(
                terminated=core.ContainerStateTerminated(exit_code=137, message="oom")
            ),
            True,
        ),
        (None, True),
    ],
)
def test_apply_without_a_result_may_have_applied_unless_its_container_is_known_not_to_have_run(
    state, applied
):
    world = World()
    job = world.finished(ok=False, pod=False, state_lock_version="none")
    world.add_pod(job, phase="Failed", state=state)
    assert read(world, job, lambda: None).may_have_applied is applied


KILLED = core.ContainerState(terminated=core.ContainerStateTerminated(exit_code=137))


@pytest.mark.parametrize(
    ("phase", "trace", "applied"),
    [
        ("Failed", LockTrace(version="none"), False),
        ("Failed", LockTrace(version="18"), True),
        ("Running", LockTrace(version="none"), True),  # it may take the lock yet
    ],
)
def test_a_silent_apply_that_has_ended_and_never_took_the_lock_changed_nothing(
    phase, trace, applied
):
    world = World()
    job = world.finished(ok=False, pod=False, state_lock_version="none")
    world.add_pod(job, phase=phase, state=KILLED)
    run = read(world, job, lambda: trace)
    assert (run.may_have_applied, run.crashed) == (applied, applied)


@pytest.mark.parametrize(
    ("operation", "own", "applied"),
    [
        ("init", True, False),
        ("OperationTypePlan", True, False),
        ("OperationTypeApply", True, True),
        ("OperationTypePlan", False, True),  # the lock of another run tells nothing of this one
        ("", True, True),
    ],
)
def test_an_apply_that_died_with_the_lock_it_took_to_read_changed_nothing(operation, own, applied):
    world = World()
    job = world.finished(ok=False, pod=False, state_lock_version="none")
    world.add_pod(job, phase="Failed", state=KILLED)
    pod = f"{job.metadata.name}{'' if own else 'f'}-abcde"
    trace = LockTrace(version="18", pod=pod, operation=operation)
    assert read(world, job, lambda: trace).may_have_applied is applied


def test_apply_with_a_result_may_have_applied_when_the_step_began():
    world = World()
    early = world.finished(
        attempt=1, ok=False, result=run_result(Op.APPLY, ok=False, steps=("init",))
    )
    late = world.finished(attempt=2, ok=False)
    assert not read(world, early).may_have_applied
    assert read(world, late).may_have_applied
    assert not read(world, late).crashed


def test_error_kinds_that_nobody_knows_become_unknown():
    world = World()
    job = world.finished(ok=False, result=run_result(Op.APPLY, ok=False, kind="<script>"))
    assert read(world, job).error_kind == "unknown"
    silent = world.finished(attempt=2, ok=False, result="")
    assert read(world, silent, lambda: None).error_kind == "unknown"
    late = world.finished(attempt=3, ok=False, result="", reason="DeadlineExceeded")
    assert read(world, late, lambda: None).error_kind == "deadline"


def test_texts_of_a_result_are_bounded_before_they_reach_the_status():
    world = World()
    job = world.finished(pod=False, ok=False)
    error = {"kind": "odd", "step": "s" * 100, "tail": "ä" * 400, "resources": ["r" * 600] * 12}
    steps = [{"name": "n" * 100, "exit": 1, "seconds": 1e300}] * 20
    drift = {"detected": True, "create": -3, "resources": ["x" * 600, "ok"] + ["y"] * 30}
    pod = world.add_pod(job, message={"version": 1, "error": error, "steps": steps, "drift": drift})
    result = read_result(pod).result
    shown = status_error(result)
    assert shown.kind == ""
    assert len(shown.step) == 64
    assert len(shown.summary.encode()) <= 512
    assert len(shown.resources) == 10
    assert max(len(r.encode()) for r in shown.resources) == 512
    assert len(status_steps(result)) == 16
    found = status_drift(result)
    assert found.create == 0
    assert found.resources[0] == "ok"
    assert len(found.resources) == 20


def test_counts_name_the_rare_kinds_only_when_there_are_any():
    assert wire.Plan(create=1).counts == ("1 to create, 0 to update, 0 to replace, 0 to delete")
    full = wire.Plan(imported=1, move=2, forget=3, output_changes=4).counts
    assert full.endswith("1 to import, 2 to move, 3 to forget, 4 outputs changed")
