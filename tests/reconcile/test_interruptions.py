"""Crashes, lost answers, stale caches, two managers: what one pass leaves for the next
(runs.md: After a crash)."""

import pytest

from captfctl.cluster.errors import Conflict, Unavailable
from captfctl.model import keys, names
from captfctl.model.core import Job
from captfctl.model.ops import Op
from captfctl.model.owner import Owner
from captfctl.model.resources import JOBS, SECRETS, TERRAFORM_CLUSTERS
from captfctl.model.status import ActiveJob
from captfctl.runs.run import Run
from captfctl.terraform.state.backups import read_backups
from tests.reconcile.test_backups import change_state
from tests.support.cluster_world import NAMESPACE, World, annotated, variables
from tests.support.doors import Failing, Overridden
from tests.support.stale import Stale


class Killed(BaseException):
    """The process is gone: nothing of the pass runs after it, not even its handlers."""


def play(world: World) -> None:
    """Passes until nothing is left to do, playing every Job that starts."""
    for _ in range(12):
        world.run()
        for job in world.running():
            world.runner.succeed(job)
        world.advance(seconds=61)


def scenarios():
    """A world about to do something, and what must be true when all is done."""

    def first_apply() -> World:
        world = World().populate()
        world.run()
        return world

    def end_of_apply() -> World:
        world = first_apply()
        world.run()
        world.runner.succeed(world.active_job())
        return world

    def change() -> World:
        world = World().populate()
        world.apply()
        world.edit(variables('{"region":"eu-2"}'))
        return world

    return [first_apply, end_of_apply, change]


@pytest.mark.parametrize("make", scenarios())
@pytest.mark.parametrize("after", [False, True], ids=["before the write", "after the write"])
def test_a_kill_at_any_write_leaves_one_job_and_nothing_behind(make, after: bool):
    at = 1
    while True:
        world = make()
        jobs_before = len(world.jobs())
        door = Failing(world.door, at, Killed(), after=after)
        try:
            world.run(world.env(door))
        except Killed:
            pass
        else:
            break
        play(world)
        assert world.reason("Ready") == "True/Ready", door.hit
        assert world.reason("InputsApplied") == "True/InputsApplied", door.hit
        assert len(world.jobs()) == max(jobs_before, 1) + (make.__name__ == "change"), door.hit
        assert world.leases() == [], door.hit
        assert keys.BLOCK_MOVE not in world.obj.metadata.annotations, door.hit
        assert not any(name.startswith("captf-run-") for name in world.secrets()), door.hit
        assert len(world.metrics.runs) == len(set(world.metrics.runs)), door.hit
        at += 1
    assert at > 3


@pytest.mark.parametrize("after", [False, True], ids=["before the write", "after the write"])
def test_a_kill_at_any_write_of_a_deletion_destroys_once_and_leaves_nothing(after: bool):
    at = 1
    while True:
        world = World().populate()
        world.apply()
        world.delete()
        world.run()
        world.runner.succeed(world.running()[0])
        door = Failing(world.door, at, Killed(), after=after)
        try:
            world.run(world.env(door))
        except Killed:
            pass
        else:
            break
        play(world) if not world.gone else None
        assert world.gone, door.hit
        assert world.job_ops().count("destroy") == 1, door.hit
        assert [s for s in world.secrets() if "tfstate" in s or "captf-inputs" in s] == []
        assert world.leases() == [], door.hit
        at += 1
    assert at > 5


@pytest.mark.parametrize("make", scenarios())
def test_an_answer_that_was_lost_is_no_reason_for_a_second_job(make):
    at = 1
    while True:
        world = make()
        jobs_before = len(world.jobs())
        lost = Unavailable("the connection was reset", outcome_unknown=True)
        door = Failing(world.door, at, lost, after=True)
        with_failure = False
        try:
            world.run(world.env(door))
        except Unavailable:
            with_failure = True
        if not door.hit:
            break
        play(world)
        assert world.reason("InputsApplied") == "True/InputsApplied", (door.hit, with_failure)
        assert len(world.jobs()) == max(jobs_before, 1) + (make.__name__ == "change"), door.hit
        assert world.leases() == [], door.hit
        at += 1
    assert at > 3


def test_a_failed_status_patch_marks_nothing_and_counts_nothing_twice(world: World):
    world.settle(2)
    job = world.active_job()
    world.runner.succeed(job)

    def refused(*_, **__):
        raise Unavailable("not now")

    door = Overridden(world.writes, patch={"terraformclusters": refused})
    with pytest.raises(Unavailable):
        world.run(world.env(door))
    found = world.door.get(JOBS, job.metadata.name, NAMESPACE)
    assert keys.BOOKKEPT not in found.metadata.annotations
    world.settle(2)
    assert world.metrics.runs == [job.metadata.name]
    assert world.events.reasons.count("JobSucceeded") == 1
    assert world.events.reasons.count("Provisioned") == 1
    found = world.door.get(JOBS, job.metadata.name, NAMESPACE)
    assert found.metadata.annotations[keys.BOOKKEPT] == "true"


def test_a_mark_that_failed_is_made_up_for_without_a_second_event(world: World):
    world.settle(2)
    job = world.active_job()
    world.runner.fail(job, "validate")

    def refused(*_, **__):
        raise Unavailable("not now")

    world.run(world.env(Overridden(world.writes, patch={"jobs": refused})))
    before = world.condition("ApplyJobSucceeded")
    world.run()
    assert world.condition("ApplyJobSucceeded") == before
    assert world.events.reasons.count("JobFailed") == 1
    assert world.metrics.runs == [job.metadata.name]
    found = world.door.get(JOBS, job.metadata.name, NAMESPACE)
    assert found.metadata.annotations[keys.BOOKKEPT] == "true"


def test_a_pass_on_an_outdated_object_writes_no_status(ready: World):
    cache = Stale(ready)
    ready.edit(annotated({"example.com/note": "x"}))
    ready.advance(hours=1)
    with pytest.raises(Conflict):
        ready.run(ready.env(cache=cache))
    assert ready.running() == []


def test_a_cache_that_misses_the_running_job_changes_nothing(world: World):
    world.run()
    cache = Stale(world)
    world.run()
    job = world.active_job()
    cache._obj = world.obj
    assert world.run(world.env(cache=cache)).requeue_after == 5
    assert world.active_job().metadata.name == job.metadata.name
    assert keys.BLOCK_MOVE in world.obj.metadata.annotations


def test_a_wholly_stale_cache_starts_no_second_job(world: World):
    world.run()
    cache = Stale(world)
    world.run()
    with pytest.raises(Conflict):
        world.run(world.env(cache=cache))
    assert len(world.jobs()) == 1


def test_a_pause_that_the_cache_has_not_seen_holds(world: World):
    world.run()
    cache = Stale(world)
    world.edit_cluster(lambda owner: setattr(owner.spec, "paused", True))
    assert world.run(world.env(cache=cache)).requeue_after == 5
    assert world.jobs() == []
    assert keys.BLOCK_MOVE not in world.obj.metadata.annotations
    assert world.leases() == []


def test_a_cache_that_has_not_seen_the_state_that_was_left_removes_no_emptied_one(world: World):
    world.settle(2)
    world.runner.succeed(world.active_job())
    world.delete()
    cache = Stale(world)

    def away(*_, **__):
        raise Unavailable("away")

    with pytest.raises(Unavailable):  # the state is remembered, and no destroy starts
        world.run(world.env(Overridden(world.writes, create={"leases": away})))
    change_state(world, 1, resources=[])
    with pytest.raises(Conflict):
        world.run(world.env(cache=cache))
    assert world.secret(names.state_secret(world.owner.suffix)) is not None
    world.run()
    assert world.reason("StateReadable") == "False/StateReplaced"


def test_a_cache_that_has_not_seen_the_state_that_was_left_backs_no_emptied_one_up(world: World):
    world.settle(2)
    world.runner.succeed(world.active_job())
    cache = Stale(world)
    world.settle(2)
    change_state(world, 1, resources=[])
    with pytest.raises(Conflict):
        world.run(world.env(cache=cache))
    assert len(read_backups(world.door, world.owner)) == 1
    world.run()
    assert world.reason("StateReadable") == "False/StateReplaced"


def test_a_word_that_the_cache_alone_still_shows_confirms_no_apply(world: World):
    world.settle(2)
    job = world.lose_job()
    world.settle(2)
    world.edit(annotated({keys.CONFIRM_NO_RESOURCES: job.metadata.name}))
    cache = Stale(world)
    world.edit(lambda obj: obj.metadata.annotations.pop(keys.CONFIRM_NO_RESOURCES))
    with pytest.raises(Conflict):
        world.run(world.env(cache=cache))
    world.settle(2)
    assert world.reason("StateReadable") == "False/ApplyOutcomeUnknown"


def test_a_mark_that_the_cache_alone_still_shows_disowns_no_state(ready: World):
    ready.edit(annotated({keys.MANAGED_BY: "somebody"}))
    ready.delete()
    cache = Stale(ready)
    ready.edit(lambda obj: obj.metadata.annotations.pop(keys.MANAGED_BY))
    assert ready.run(ready.env(cache=cache)).requeue_after == 1
    state = ready.secret(names.state_secret(ready.owner.suffix))
    assert state is not None
    assert keys.RETAINED_FROM_UID not in state.metadata.labels


def test_a_vanished_apply_is_due_again_at_equal_inputs(ready: World):
    ready.edit(variables('{"region":"eu-2"}'))
    ready.run()
    job = ready.active_job()
    ready.runner.write_state(job, {})
    ready.door.delete(JOBS, job.metadata.name, NAMESPACE)
    ready.edit(variables('{"region":"eu-1"}'))
    ready.run()
    assert ready.reason("ApplyJobSucceeded") == "Unknown/WaitingForRunLease"
    ready.advance(seconds=61)  # by then the lease of a Job that nobody has seen is free
    ready.run()
    again = ready.active_job()
    assert again.metadata.annotations[keys.AFTER_INTERRUPTED_APPLY] == job.metadata.name
    assert again.metadata.annotations[keys.AFTER_FAILED_APPLY] == "true"
    condition = ready.condition("ApplyJobSucceeded")
    assert (condition.status, condition.reason) == ("False", "ApplyFailed")
    assert condition.message.startswith(f"Job {job.metadata.name}: ")
    ready.runner.succeed(again)
    ready.settle()
    assert ready.reason("ApplyJobSucceeded") == "True/ApplySucceeded"
    assert ready.running() == []


def test_a_job_taken_off_the_status_on_purpose_is_no_vanished_apply(ready: World):
    ready.edit(variables('{"region":"eu-2"}'))
    ready.run()
    job = ready.active_job()
    cache = Stale(ready)
    cache._jobs = []
    ready.door.patch(
        TERRAFORM_CLUSTERS, "prod", NAMESPACE, {"status": {"activeJob": None}}, subresource="status"
    )
    ready.door.delete(JOBS, job.metadata.name, NAMESPACE)
    with pytest.raises(Conflict):
        ready.run(ready.env(cache=cache))
    attempt = ready.secret(names.attempt_record("TerraformCluster", "prod"))
    assert keys.INTERRUPTED_APPLY not in attempt.metadata.annotations


def test_a_job_without_its_secret_is_removed_and_started_anew(world: World):
    world.settle(2)
    job = world.active_job()
    world.door.delete(SECRETS, names.run_secret(job.metadata.name), NAMESPACE)
    world.advance(seconds=61)
    assert world.run().requeue_after == 1
    assert world.jobs() == []
    assert "StuckJobDeleted" in world.events.warnings()
    assert world.obj.status.active_job is None
    world.run()
    assert len(world.running()) == 1
    assert world.reason("StateReadable") == "Unknown/StateNotFound"


@pytest.mark.parametrize("paused", [False, True])
def test_a_job_that_was_removed_as_stuck_is_not_named_again_by_an_outdated_cache(
    world: World, paused: bool
):
    """Its watch may be slower than the object's: named again and gone, it would have vanished."""
    world.settle(2)
    job = world.active_job()
    world.door.delete(SECRETS, names.run_secret(job.metadata.name), NAMESPACE)
    cache = Stale(world)
    world.advance(seconds=61)
    world.run()  # removes it
    if paused:
        world.edit(annotated({keys.PAUSED: ""}))
        world.run()
    cache._obj = world.obj
    assert world.run(world.env(cache=cache)).requeue_after == 5
    assert world.obj.status.active_job is None
    if paused:
        world.edit(annotated({keys.PAUSED: None}))
        world.run()
    world.run()
    assert len(world.running()) == 1
    assert world.reason("StateReadable") == "Unknown/StateNotFound"


def hold_cluster_lease(world: World) -> None:
    """A machine's operation of the same cluster, as the gate sees it."""
    other = Owner("TerraformMachine", NAMESPACE, "m-1", "uid-of-m-1", "prod")
    name = "captf-m-m-1-apply-a1-abc123"
    run = Run(subject=other, operation="apply", name=name, deadline_seconds=3600)
    assert world.env().leases.acquire(run) is None


def test_a_wait_for_machines_is_said_and_counted_once(ready: World):
    hold_cluster_lease(ready)
    ready.edit(variables('{"region":"eu-2"}'))
    first = ready.run()
    assert first.requeue_after == 30
    assert ready.reason("ApplyJobSucceeded") == "Unknown/WaitingForMachineOperations"
    assert ready.running() == []
    before = ready.condition("ApplyJobSucceeded")
    for _ in range(3):
        ready.advance(seconds=1)
        ready.run()
    assert ready.condition("ApplyJobSucceeded").last_transition_time == (
        before.last_transition_time
    )
    assert ready.events.reasons.count("WaitingForMachineOperations") == 1
    assert ready.metrics.waits == ["machine_operations"]
    ready.advance(seconds=61)
    ready.run()
    assert len(ready.running()) == 1


def test_a_full_cluster_makes_a_job_wait_for_a_slot(ready: World):
    ready.edit(lambda obj: setattr(obj.spec, "max_active_jobs", 1))
    owner = Owner("TerraformMachine", NAMESPACE, "m-1", "uid-of-m-1", "prod")
    (job,) = ready.jobs()
    other = JOBS.copy(job)
    other.metadata = type(job.metadata)(
        name="captf-m-m-1-refresh-a1-abc123",
        namespace=NAMESPACE,
        labels={**owner.run_labels, keys.OP: "refresh"},
    )
    other.status = type(job.status)()
    other.spec.selector = None
    other.spec.template.metadata.labels = dict(other.metadata.labels)
    ready.create(JOBS, other)
    ready.edit(variables('{"region":"eu-2"}'))
    result = ready.run()
    assert 120 <= result.requeue_after < 133
    assert ready.reason("ApplyJobSucceeded") == "Unknown/WaitingForJobSlot"
    assert ready.events.reasons.count("WaitingForJobSlot") == 1
    ready.edit(lambda obj: setattr(obj.spec, "max_active_jobs", 2))
    ready.run()
    assert len(ready.running()) == 2


def test_a_job_of_the_status_that_exists_nowhere_is_forgotten(ready: World):
    obj = ready.obj
    obj.status.active_job = ActiveJob(name="captf-c-prod-drift-a1-000000", operation=Op.DRIFT)
    ready.door.update(TERRAFORM_CLUSTERS, obj, subresource="status")
    ready.settle(2)
    assert ready.obj.status.active_job is None
    assert ready.running() == []


def test_a_job_that_ended_is_never_removed_as_stuck_by_an_outdated_cache(world: World):
    world.settle(2)
    job = world.active_job()
    cache = Stale(world)
    world.runner.end(job, ok=True, result={"op": "apply"})
    world.runner.write_state(job, {})
    world.run()  # another manager reads it and deletes its Secret
    world.runner._remove_pod(job)
    world.advance(seconds=120)
    with pytest.raises(Conflict):
        world.run(world.env(cache=cache))
    assert [found.metadata.name for found in world.jobs()].count(job.metadata.name) == 1


def test_a_start_that_fails_before_its_job_gives_the_leases_back(ready: World):
    ready.edit(variables('{"region":"eu-2"}'))

    def stale(*_, **__):
        raise Conflict("changed meanwhile")

    with pytest.raises(Conflict):
        ready.run(ready.env(Overridden(ready.writes, patch={"terraformclusters": stale})))
    assert ready.leases() == []
    assert ready.running() == []


def stuck_on_its_image(world: World, message: str, *, op: Op = Op.DRIFT) -> Job:
    """A running Job whose image cannot be pulled for two minutes."""
    if op is Op.DRIFT:
        world.advance(hours=1)
    else:
        world.edit(variables('{"region":"eu-2"}'))
    world.run()
    job = world.active_job()
    world.runner.wait_for_image(job, "ErrImagePull", message)
    world.advance(seconds=121)
    return job


def test_a_check_whose_image_does_not_exist_runs_another_that_was_recorded(ready: World):
    job = stuck_on_its_image(ready, "manifest unknown")
    assert ready.run().requeue_after == 1
    assert job.metadata.name not in [left.metadata.name for left in ready.jobs()]
    assert ready.obj.status.active_job is None
    assert "ImagePullFallback" in ready.events.warnings()


@pytest.mark.parametrize("paused", [False, True])
def test_a_check_without_another_image_stays_unless_it_would_hold_a_move(
    ready: World, paused: bool
):
    job = stuck_on_its_image(ready, "denied")
    if paused:
        ready.edit(annotated({keys.PAUSED: ""}))
    ready.run()
    names_left = [left.metadata.name for left in ready.running()]
    assert (job.metadata.name in names_left) is not paused
    assert ready.reason("DriftJobSucceeded") == "False/ImagePullFailed"


def test_an_apply_is_never_removed_for_its_image(ready: World):
    job = stuck_on_its_image(ready, "not found", op=Op.APPLY)
    ready.run()
    assert ready.active_job().metadata.name == job.metadata.name


@pytest.mark.parametrize("paused", ["object", "cluster"])
def test_a_pause_that_the_cache_has_not_seen_keeps_the_job_from_starting(ready: World, paused: str):
    ready.edit(variables('{"region":"eu-2"}'))
    cache = Stale(ready)
    if paused == "object":
        ready.edit(annotated({keys.PAUSED: ""}))
        with pytest.raises(Conflict):
            ready.run(ready.env(cache=cache))
    else:
        ready.edit_cluster(lambda cluster: setattr(cluster.spec, "paused", True))
        assert ready.run(ready.env(cache=cache)).requeue_after == 5
    assert ready.running() == []
    assert ready.leases() == []
    assert keys.BLOCK_MOVE not in ready.obj.metadata.annotations


def test_a_start_says_what_runs_and_names_the_job_on_the_object(ready: World):
    ready.edit(variables('{"region":"eu-2"}'))
    ready.run()
    job = ready.active_job()
    (note,) = [note for note in ready.events.notes if note.reason == "JobCreated"][-1:]
    assert note.job == job.metadata.name
    assert "apply attempt 2" in note.note
    assert note.note.endswith("the inputs differ from the applied ones")
    shown = ready.obj.status.active_job
    assert (shown.name, shown.operation, shown.attempt) == (job.metadata.name, Op.APPLY, 2)
    assert shown.start_time == ready.clock.now()
    assert ready.obj.metadata.annotations[keys.BLOCK_MOVE] == "true"
