"""Keeping the books of finished Jobs (runs.md: Bookkeeping)."""

import json
from datetime import timedelta
from typing import Any

import pytest

from captfctl.cluster.errors import Unavailable
from captfctl.model import core, keys, names
from captfctl.model.conditions import FALSE, TRUE, UNKNOWN, ConditionValue, Type
from captfctl.model.meta import Condition
from captfctl.model.ops import Op
from captfctl.model.resources import JOBS, PODS, SECRETS
from captfctl.model.status import CommonStatus, LastRun
from captfctl.model.terraform import DriftAction, JobPolicy
from captfctl.runs import finished
from captfctl.runs.leases import Leases
from captfctl.runs.reader import own_jobs
from captfctl.terraform.books.bookkeeping import Bookkeeping, BooksInput, keep_books
from captfctl.terraform.state.lock import LockHolder
from captfctl.terraform.state.records import RunInputs, read_records, write_attempt
from runner.wire import EMPTY_PLAN
from tests.support.clock import START
from tests.support.faults import WRITES, HookedDoor, failing
from tests.support.runs import FILES, IMAGE, NAMESPACE, World, run_result


def keep(world: World, door: Any = None, **given: Any) -> Bookkeeping:
    door = door or world.door
    facts = {
        "owner": world.owner,
        "status": CommonStatus(),
        "records": read_records(world.door, world.owner),
        "policy": JobPolicy(),
        **given,
    }
    leases = Leases(door, world.reader, world.clock)
    jobs = own_jobs(world.reader, world.owner)
    return keep_books(door, jobs, leases, BooksInput(**facts))


def condition(kind: Type, value: ConditionValue) -> Condition:
    return Condition(type=kind, status=value.status, reason=value.reason, message=value.message)


def status(books: Bookkeeping, **more: Any) -> CommonStatus:
    """The status that a pass would have written after `books`."""
    conditions = [condition(Type.APPLY_JOB_SUCCEEDED, books.apply_condition)]
    if books.drift_condition:
        conditions.append(condition(Type.DRIFT_DETECTED, books.drift_condition))
    return CommonStatus(
        conditions=conditions,
        last_run=books.last_run,
        last_refresh=books.last_refresh,
        last_drift_check=books.last_drift_check,
        **more,
    )


def reasons(books: Bookkeeping) -> list[str]:
    return [note.reason for note in books.notes]


def test_finished_job_is_read_counted_and_cleared_away_once():
    world = World()
    run = world.run()
    world.acquire(run)
    job = world.finished(result=run_result(Op.APPLY, changes={"add": 2, "change": 0, "destroy": 1}))
    books = keep(world)
    (counted,) = books.counted
    assert (counted.run.name, counted.result, counted.retry) == (run.name, "succeeded", 1)
    assert not world.exists(SECRETS, names.run_secret(run.name))
    assert world.lease_names() == []
    assert books.apply_condition == ConditionValue(TRUE, "ApplySucceeded", f"Job {run.name}")
    succeeded = next(note for note in books.notes if note.reason == "JobSucceeded")
    assert "resources: 2 added, 0 changed, 1 destroyed" in succeeded.note
    assert succeeded.job == job.metadata.name

    assert finished.mark(world.door, books.unread) == []
    again = keep(world, status=status(books))
    assert again.counted == ()
    assert again.notes == ()
    assert again.unread == ()
    assert again.apply_condition == books.apply_condition
    assert again.last_run is None


def test_job_whose_mark_failed_is_read_again_but_not_counted_again():
    world = World()
    world.finished(ok=False)
    first = keep(world)
    door = failing(world.door, Unavailable("no answer"), "patch", JOBS)
    (problem,) = finished.mark(door, first.unread)
    assert "could not be marked" in problem
    second = keep(world, status=status(first))
    assert second.counted == ()
    assert second.notes == ()
    assert second.apply_condition == first.apply_condition
    assert second.failures.of(Op.APPLY) == first.failures.of(Op.APPLY)
    assert len(second.unread) == 1


def test_error_while_reading_leaves_nothing_marked_or_deleted():
    world = World()
    run = world.run()
    world.finished()
    with pytest.raises(Unavailable):
        keep(world, failing(world.door, Unavailable("no answer"), "list", core_pods()))
    assert world.exists(SECRETS, names.run_secret(run.name))


def core_pods():
    from captfctl.model.resources import PODS

    return PODS


def test_unchanged_object_costs_no_write_and_reads_no_pod():
    world = World()
    world.finished()
    books = keep(world)
    finished.mark(world.door, books.unread)
    calls: list[tuple[str, str]] = []
    door = HookedDoor(world.door, before=lambda name, kind: calls.append((name, kind.plural)))
    keep(world, door, status=status(books))
    assert not [call for call in calls if call[0] in WRITES]
    assert calls == [("get", "leases")]  # the state lock


def test_newest_outcome_is_reported_whatever_op_ran_since():
    world = World()
    world.finished(attempt=1, at=-20)
    world.finished(Op.DRIFT, at=-10, result=run_result(Op.DRIFT))
    books = keep(world)
    assert books.apply_condition.reason == "ApplySucceeded"
    assert books.last_run.operation is Op.DRIFT
    assert books.newest(Op.APPLY, Op.DRIFT).op is Op.DRIFT
    assert books.newest(Op.RESTORE) is None


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"ok": True}, (TRUE, "ApplySucceeded")),
        ({"ok": False}, (FALSE, "ApplyFailed")),
        ({"op": Op.DESTROY}, (TRUE, "DestroySucceeded")),
        ({"op": Op.DESTROY, "ok": False}, (FALSE, "DestroyFailed")),
        ({"ok": False, "reason": "DeadlineExceeded", "result": ""}, (FALSE, "JobDeadlineExceeded")),
        (
            {"ok": False, "result": run_result(Op.APPLY, ok=False, kind="image-layout", steps=())},
            (FALSE, "ImageInvalid"),
        ),
        (
            {"ok": False, "result": run_result(Op.APPLY, ok=False, kind="blocked")},
            (FALSE, "DestructivePlanBlocked"),
        ),
        (
            {"ok": False, "result": run_result(Op.APPLY, ok=False, kind="plan-changed")},
            (UNKNOWN, "PlanChanged"),
        ),
        ({"op": Op.PLAN, "ok": False}, (FALSE, "ApplyFailed")),
        ({"op": Op.PLAN, "ok": True, "result": ""}, (FALSE, "ApplyFailed")),
        (
            {"op": Op.PLAN, "result": run_result(Op.PLAN, plan={"hash": "p2:x"})},
            (UNKNOWN, "NoApplyYet"),
        ),
        ({"op": Op.DRIFT, "ok": False}, (UNKNOWN, "NoApplyYet")),
    ],
)
def test_apply_condition_tells_how_the_last_change_ended(facts, expected):
    world = World()
    job = world.finished(**facts)
    found = keep(world).apply_condition
    assert (found.status, found.reason) == expected
    if found.reason != "NoApplyYet":
        assert found.message.startswith(f"Job {job.metadata.name}")


@pytest.mark.parametrize(
    ("tail", "told"),
    [
        ("Error: No quota in x.y (module/main.tf:3): asked for 5\nError: Other", None),
        ("panic: runtime error: index out of range\nError: Plugin did not respond", None),
        ("\n  boom  \n", "boom"),
        ("", "terraform_data.a: No quota"),
        ("x" * 600, "x" * 512),
    ],
)
def test_failure_names_the_step_and_its_first_error(tail, told):
    world = World()
    result = run_result(Op.APPLY, ok=False)
    result["error"]["tail"] = tail
    result["error"]["resources"] = ["terraform_data.a: No quota", "terraform_data.b"]
    job = world.finished(ok=False, result=result)
    books = keep(world)
    first = tail.splitlines()[0].removeprefix("Error: ") if told is None else told
    expected = f"Job {job.metadata.name}: step apply failed: {first}"
    assert books.apply_condition.message == expected
    failed = next(note for note in books.notes if note.reason == "JobFailed")
    assert failed.warning
    assert "step apply failed" in failed.note
    assert "next attempt with the same inputs not before 2026-09-25T12:01:00Z" in failed.note
    assert failed.note.endswith("(60 s, 1 failure in a row)")


def test_pod_that_never_got_its_image_is_told_before_the_deadline():
    world = World()
    job = world.finished(ok=False, reason="DeadlineExceeded", pod=False)
    waiting = core.ContainerStateWaiting(reason="ImagePullBackOff", message="no such host")
    world.add_pod(job, phase="Failed", state=core.ContainerState(waiting=waiting))
    found = keep(world).apply_condition
    assert found.reason == "ImagePullFailed"
    assert IMAGE in found.message
    assert "no such host" in found.message


def test_read_job_that_the_condition_names_keeps_its_words():
    world = World()
    job = world.finished(ok=False, annotations={keys.BOOKKEPT: "true"})
    told = ConditionValue(FALSE, "ApplyFailed", f"Job {job.metadata.name}: step apply failed, x")
    before = CommonStatus(conditions=[condition(Type.APPLY_JOB_SUCCEEDED, told)])
    assert keep(world, status=before).apply_condition == told


def test_read_job_that_the_condition_does_not_name_is_told_from_its_marks():
    world = World()
    job = world.finished(
        ok=False, annotations={keys.BOOKKEPT: "true", keys.DESTRUCTIVE_PLAN_BLOCKED: "true"}
    )
    longer = ConditionValue(FALSE, "ApplyFailed", f"Job {job.metadata.name}0: other")
    before = CommonStatus(conditions=[condition(Type.APPLY_JOB_SUCCEEDED, longer)])
    assert keep(world, status=before).apply_condition.reason == "DestructivePlanBlocked"


def test_wait_for_a_lease_does_not_outlive_the_next_bookkeeping():
    world = World()
    wait = ConditionValue(UNKNOWN, "WaitingForRunLease", "Job x holds it")
    before = CommonStatus(conditions=[condition(Type.APPLY_JOB_SUCCEEDED, wait)])
    assert keep(world, status=before).apply_condition.reason == "NoApplyYet"
    kept = ConditionValue(FALSE, "JobPolicyInvalid", "lock timeout")
    before = CommonStatus(conditions=[condition(Type.APPLY_JOB_SUCCEEDED, kept)])
    assert keep(world, status=before).apply_condition == kept


def test_deleting_object_is_told_that_no_approval_is_needed():
    world = World()
    world.finished(ok=False, result=run_result(Op.APPLY, ok=False, kind="blocked"))
    assert "no approval" in keep(world, deleting=True).apply_condition.message
    assert "no approval" not in keep(world).apply_condition.message


def test_blocked_apply_shows_what_its_plan_would_do():
    world = World()
    plan = {"hash": "p2:x", "create": 1, "delete": 2, "replace": 3}
    world.finished(ok=False, result=run_result(Op.APPLY, ok=False, kind="blocked", plan=plan))
    books = keep(world)
    counts = "1 to create, 0 to update, 3 to replace, 2 to delete"
    assert counts in books.apply_condition.message
    assert reasons(books) == ["DestructivePlanBlocked"]
    assert books.failures.of(Op.APPLY).count == 0


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        (
            {"ok": False, "result": run_result(Op.APPLY, ok=False, kind="interrupted")},
            "JobInterrupted",
        ),
        ({"ok": False, "reason": "DeadlineExceeded", "result": ""}, "JobDeadlineExceeded"),
        ({"ok": False}, "JobFailed"),
        ({"op": Op.RESTORE, "ok": True, "secret": True}, "StateRestored"),
        ({"op": Op.RESTORE, "ok": False}, "StateRestoreFailed"),
    ],
)
def test_each_job_is_reported_by_one_event(facts, reason):
    world = World()
    world.finished(**facts)
    assert [r for r in reasons(keep(world)) if not r.startswith("Digest")] == [reason]


def test_last_run_shows_steps_error_and_versions():
    world = World()
    result = run_result(Op.APPLY, ok=False)
    result["error"]["tail"] = "ä" * 300
    job = world.finished(ok=False, result=result)
    books = keep(world)
    assert books.last_run.job == job.metadata.name
    assert books.last_run.operation is Op.APPLY
    assert [(s.name, s.exit_code, s.duration_milliseconds) for s in books.last_run.steps] == [
        ("init", 1, 1500),
        ("validate", 1, 1500),
        ("apply", 1, 1500),
    ]
    assert books.last_run.error.kind == "step"
    assert books.last_run.error.summary == "ä" * 256
    assert (books.source_image, books.runtime_version) == (IMAGE, "1.9.0")


def test_last_run_of_a_moved_object_names_its_newest_job():
    world = World()
    job = world.finished(annotations={keys.BOOKKEPT: "true"})
    shown = keep(world, status=CommonStatus(last_run=LastRun(job="older"))).last_run
    assert (shown.job, shown.steps) == (job.metadata.name, [])


def test_running_job_is_active_and_the_lock_is_not_read():
    world = World()
    job = world.add_job(world.run())
    calls: list[tuple[str, str]] = []
    door = HookedDoor(world.door, before=lambda name, kind: calls.append((name, kind.plural)))
    books = keep(world, door)
    assert books.active.metadata.name == job.metadata.name
    assert books.lock is None
    assert calls == []


def test_idle_object_reads_the_state_lock():
    assert keep(World()).lock.holder is LockHolder.FREE


def test_old_jobs_are_pruned_and_still_count_for_the_next_attempt():
    world = World()
    for attempt in range(1, 6):
        world.finished(attempt=attempt, at=-100 + attempt)
    books = keep(world)
    assert len(books.pruned) == 2
    assert len(world.job_names()) == 3
    assert len(books.jobs) == 5


def test_stamps_move_forward_only():
    world = World()
    world.finished(Op.DRIFT, at=-30, result=run_result(Op.DRIFT))
    world.finished(Op.REFRESH, at=-20, result=run_result(Op.REFRESH))
    world.finished(Op.DRIFT, attempt=2, at=-10, ok=False)
    books = keep(world)
    assert books.last_refresh == START - timedelta(seconds=20)
    assert books.last_drift_check == START - timedelta(seconds=30)
    later = CommonStatus(last_refresh=START, last_drift_check=START)
    books = keep(world, status=later)
    assert (books.last_refresh, books.last_drift_check) == (START, START)


def test_empty_plan_is_remembered_until_something_ends_after_it():
    world = World()
    plan = {"hash": EMPTY_PLAN}
    world.finished(Op.PLAN, at=-10, result=run_result(Op.PLAN, plan=plan))
    books = keep(world)
    assert books.empty_plan == "h2:abc"
    finished.mark(world.door, books.unread)
    assert keep(world).empty_plan == "h2:abc"
    world.finished(attempt=5, ok=False)
    assert keep(world).empty_plan == ""


def drift_result(**counts: Any) -> dict[str, Any]:
    return run_result(Op.DRIFT, drift={"detected": True, "update": 1, **counts})


@pytest.mark.parametrize(
    ("action", "reason"),
    [(DriftAction.REPORT, "DriftReported"), (DriftAction.REMEDIATE, "DriftPending")],
)
def test_drift_that_was_found_is_reported_or_waits_for_its_remediation(action, reason):
    world = World()
    result = drift_result(resources=["terraform_data.a", "x" * 600])
    job = world.finished(Op.DRIFT, result=result)
    books = keep(world, drift_action=action)
    text = f"Job {job.metadata.name}: 0 to create, 1 to update, 0 to replace, 0 to delete"
    assert books.drift_condition == ConditionValue(TRUE, reason, text)
    assert books.drift_job_condition.reason == "DriftChecked"
    assert books.last_run.drift.resources == ["terraform_data.a"]
    finished.mark(world.door, books.unread)
    assert keep(world, status=status(books)).drift_condition == books.drift_condition


def test_check_that_found_nothing_says_so():
    world = World()
    result = run_result(Op.DRIFT, drift={"detected": False})
    job = world.finished(Op.DRIFT, result=result)
    expected = ConditionValue(FALSE, "NoDrift", f"Job {job.metadata.name}")
    assert keep(world).drift_condition == expected


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"ok": False}, "DriftJobFailed"),
        ({"ok": False, "reason": "DeadlineExceeded"}, "DriftJobDeadlineExceeded"),
    ],
)
def test_failed_check_leaves_what_is_known_of_drift(facts, reason):
    world = World()
    world.finished(Op.DRIFT, **facts)
    books = keep(world)
    assert books.drift_condition is None
    assert books.drift_job_condition.reason == reason


def test_running_check_is_shown_and_a_running_refresh_is_not():
    world = World()
    world.add_job(world.run(Op.REFRESH))
    assert keep(world).drift_job_condition.reason == "DriftNotChecked"
    world = World()
    world.add_job(world.run(Op.DRIFT))
    assert keep(world).drift_job_condition.reason == "DriftJobRunning"


def remediating(world: World) -> CommonStatus:
    """Drift was found two minutes ago and its remediation was running since."""
    found = ConditionValue(
        TRUE, "DriftRemediating", "Job d: 1 to update; remediation Job old applies the inputs again"
    )
    return CommonStatus(
        conditions=[condition(Type.DRIFT_DETECTED, found)],
        last_drift_check=START - timedelta(seconds=120),
    )


def test_running_apply_remediates_the_drift():
    world = World()
    job = world.add_job(world.run())
    books = keep(world, status=remediating(world), drift_action=DriftAction.REMEDIATE)
    assert books.drift_condition.reason == "DriftRemediating"
    message = books.drift_condition.message
    assert message.startswith(f"Job d: 1 to update; remediation Job {job.metadata.name} ")
    assert message.count("; remediation Job ") == 1


@pytest.mark.parametrize(
    ("kind", "outcome"),
    [("step", "failed"), ("blocked", "was blocked"), ("plan-changed", "was stopped")],
)
def test_remediation_that_did_not_get_through_leaves_the_drift_pending(kind, outcome):
    world = World()
    result = run_result(Op.APPLY, ok=False, kind=kind)
    job = world.finished(ok=False, result=result, drift_remediation=True)
    given = {"drift_action": DriftAction.REMEDIATE}
    books = keep(world, status=remediating(world), **given)
    expected = f"Job d: 1 to update; remediation Job {job.metadata.name} {outcome}"
    assert books.drift_condition == ConditionValue(TRUE, "DriftPending", expected)
    after = CommonStatus(
        conditions=[condition(Type.DRIFT_DETECTED, books.drift_condition)],
        last_drift_check=START - timedelta(seconds=120),
    )
    assert keep(world, status=after, **given).drift_condition == books.drift_condition


def test_apply_after_the_check_ends_the_drift_without_another():
    world = World()
    job = world.finished()
    books = keep(world, status=remediating(world), drift_action=DriftAction.REMEDIATE)
    assert books.drift_condition.reason == "NoDrift"
    assert books.drift_condition.message.startswith(f"Job {job.metadata.name}")


def test_remediation_at_its_limit_says_so():
    world = World()
    world.finished(ok=False, drift_remediation=True)
    policy = JobPolicy(failed_jobs_history_limit=1)
    books = keep(world, status=remediating(world), policy=policy)
    assert books.remediation_failures == 1
    failed = next(note for note in books.notes if note.reason == "JobFailed")
    assert "before the next successful drift check" in failed.note


@pytest.mark.parametrize("ok", [True, False])
def test_restore_is_consumed_once_and_names_its_serial(ok):
    world = World()
    job = world.finished(Op.RESTORE, ok=ok, annotations={keys.RESTORE_SERIAL: "7"})
    books = keep(world)
    assert (books.restored.serial, books.restored.ok) == (7, ok)
    assert "serial 7" in books.restore_condition.message
    assert books.restore_condition.reason == ("StateRestored" if ok else "RestoreFailed")
    assert job.metadata.name in books.restore_condition.message
    finished.mark(world.door, books.unread)
    again = keep(world)
    assert again.restored is None
    assert again.restore_condition is None


def test_wait_of_a_restore_that_never_ran_is_dropped():
    wait = ConditionValue(UNKNOWN, "WaitingForRunLease", "Job x holds it")
    before = CommonStatus(conditions=[condition(Type.RESTORE_JOB_SUCCEEDED, wait)])
    assert keep(World(), status=before).drop_restore_condition
    world = World()
    world.finished(Op.RESTORE)
    assert not keep(world, status=before).drop_restore_condition


def test_lock_version_that_cannot_be_read_is_no_evidence():
    world = World()
    job = world.finished(ok=False, pod=False, state_lock_version="none")
    inputs = RunInputs(job=job.metadata.name, files=FILES, inputs_hash="h2:abc", image=IMAGE)
    write_attempt(world.door, world.owner, inputs)
    assert keep(world).records.marks.interrupted_apply == ""
    reads = []

    def broken(name: str, kind: Any) -> None:
        if kind.plural == "leases" and name == "get" and not reads:
            reads.append(name)
            raise Unavailable("no answer")

    books = keep(world, HookedDoor(world.door, before=broken))
    assert books.records.marks.interrupted_apply == job.metadata.name


def test_queue_time_is_from_the_jobs_creation_to_the_modules_start():
    world = World()
    job = world.add_job(world.run(), age=100)
    world.add_run_secret(world.run(), job)
    terminated = core.ContainerStateTerminated(
        exit_code=0, started_at=START - timedelta(seconds=60), message="{}"
    )
    world.add_pod(job, state=core.ContainerState(terminated=terminated))
    world.finish(job)
    patch = {"status": {"startTime": (START - timedelta(seconds=90)).isoformat()}}
    world.door.patch(JOBS, job.metadata.name, NAMESPACE, patch, subresource="status")
    (counted,) = keep(world).counted
    assert (counted.duration, counted.queue_time) == (90.0, 40.0)


@pytest.mark.parametrize("kind", [Type.APPLY_JOB_SUCCEEDED, Type.DRIFT_JOB_SUCCEEDED])
def test_pull_failure_of_a_job_deleted_in_a_pause_is_told_until_the_pause_is_over(kind):
    world = World()
    for op in (Op.APPLY, Op.DRIFT):
        world.finished(op, annotations={keys.BOOKKEPT: "true"})
    told = ConditionValue(FALSE, "ImagePullFailed", "Job j: image x cannot be pulled")
    before = CommonStatus(conditions=[condition(kind, told)])

    def found(*, paused: bool) -> ConditionValue:
        books = keep(world, status=before, paused=paused)
        apply = kind is Type.APPLY_JOB_SUCCEEDED
        return books.apply_condition if apply else books.drift_job_condition

    assert found(paused=True) == told
    assert found(paused=False).reason in ("ApplySucceeded", "DriftChecked")


def test_pod_that_outlives_its_job_keeps_the_leases():
    world = World()
    run = world.run()
    world.acquire(run)
    job = world.finished(ok=False, pod=False)
    world.add_pod(job, phase="Running")
    books = keep(world)
    assert len(books.counted) == 1
    assert len(world.lease_names()) == 2


def _out_of_memory(world: World, *, result: bool) -> core.Job:
    """The kernel ended the whole run, or, with a result, Terraform only."""
    job = world.finished(ok=False, pod=False)
    error = {"kind": "step", "step": "apply", "tail": "apply was killed by SIGKILL"}
    steps = [{"name": "apply", "exit": 1, "seconds": 1.0}]
    document = {"version": 1, "op": "apply", "steps": steps, "error": error}
    ended = core.ContainerStateTerminated(
        exit_code=1 if result else 137,
        reason="OOMKilled",
        message=json.dumps(document) if result else "",
    )
    state = core.ContainerState(terminated=ended)
    world.add_pod(job, phase="Failed", state=state)
    return job


@pytest.mark.parametrize("result", [False, True], ids=["the whole run", "Terraform only"])
def test_out_of_memory_is_said_in_condition_event_and_last_run(result):
    world = World()
    job = _out_of_memory(world, result=result)
    books = keep(world)
    said = "out of memory: the run was ended at its limit of 2Gi"
    assert said in books.apply_condition.message
    assert "ended without a result" not in books.apply_condition.message
    assert "spec.jobs.resources.limits.memory" in books.apply_condition.message
    (note,) = [note for note in books.notes if note.reason == "JobFailed"]
    assert said in note.note
    assert job.metadata.name in note.note
    assert books.last_run is not None
    assert books.last_run.error is not None
    assert books.last_run.error.summary.startswith(said)
    assert ("SIGKILL" in books.last_run.error.summary) is result
    assert books.last_run.error.step == ("apply" if result else "")


@pytest.mark.parametrize(
    ("status", "told"),
    [
        ({"reason": "Evicted", "message": "The node was low on memory."}, None),
        ({"reason": "UnsupportedPod"}, "UnsupportedPod"),
        ({"terminated": "ContainerCannotRun"}, "ContainerCannotRun, exit code 137"),
        ({"terminated": "Error"}, ""),
    ],
)
def test_a_run_without_a_result_is_told_by_what_the_node_says(status, told):
    world = World()
    job = world.finished(ok=False, pod=False)
    ended = core.ContainerStateTerminated(
        exit_code=137, reason=status.get("terminated", ""), message="Segmentation"
    )
    pod = world.add_pod(job, phase="Failed", state=core.ContainerState(terminated=ended))
    pod.status.reason, pod.status.message = status.get("reason", ""), status.get("message", "")
    world.door.update(PODS, pod, subresource="status")
    if told is None:
        told = "Evicted: The node was low on memory."
    expected = f"Job {job.metadata.name}: it ended without a result"
    assert keep(world).apply_condition.message == (f"{expected}: {told}" if told else expected)
