"""Leases and the operation gate (leases.md: Run lease and cluster lease)."""

from datetime import timedelta
from typing import Any

import pytest

from captfctl.cluster.errors import Conflict, Forbidden, NotFound, TooManyRequests, Unavailable
from captfctl.model import core, keys, names
from captfctl.model.ops import Op
from captfctl.model.reasons import WaitReason
from captfctl.model.resources import JOBS, LEASES, PODS
from captfctl.model.terraform import JobPolicy
from captfctl.runs.lease_store import LeaseStore
from captfctl.runs.leases import Leases
from tests.support.faults import HookedDoor
from tests.support.runs import NAMESPACE, World, run_spec


def held(world: World) -> core.Lease:
    return world.lease(world.owner.run_lease)


def free(world: World) -> bool:
    return world.leases.is_free(held(world))


def test_run_lease_names_the_job_that_is_about_to_be_created():
    world = World(gate=False)
    run = world.run()
    assert world.acquire(run) is None
    lease = held(world)
    assert lease.spec.holder_identity == run.name
    assert lease.spec.lease_duration_seconds == 4500
    assert lease.spec.acquire_time == "2026-09-25T12:00:00.000000Z"
    assert lease.metadata.labels == {**world.owner.run_labels, keys.LEASE: "run"}
    assert lease.metadata.annotations == {
        keys.LEASE_OP: "apply",
        keys.LEASE_ACQUIRED_AT: "2026-09-25T12:00:00.000000000Z",
    }


def test_lease_outlives_a_longer_deadline():
    world = World()
    world.acquire(world.run(policy=JobPolicy(active_deadline_seconds=7200)))
    assert held(world).spec.lease_duration_seconds == 8100


def test_gate_off_leaves_only_the_run_lease():
    world = World(gate=False)
    world.acquire(world.run())
    assert world.lease_names() == [world.owner.run_lease]


@pytest.mark.parametrize("op", [Op.PLAN, Op.REFRESH, Op.DRIFT])
def test_runs_that_change_nothing_take_only_the_run_lease(op):
    world = World()
    world.acquire(world.run(op))
    assert world.lease_names() == [world.owner.run_lease]


def test_same_job_takes_its_own_lease_again():
    world = World()
    run = world.run()
    world.acquire(run)
    world.clock.advance(20)
    assert world.acquire(run) is None
    assert held(world).spec.acquire_time == "2026-09-25T12:00:20.000000Z"


@pytest.mark.parametrize(("age", "is_freed"), [(60, False), (61, True)])
def test_missing_holder_keeps_its_lease_for_a_minute(age, is_freed):
    world = World()
    world.acquire(world.run())
    world.clock.advance(age)
    assert free(world) is is_freed
    other = world.run(attempt=2)
    assert (world.acquire(other) is None) is is_freed


@pytest.mark.parametrize("phase", ["Pending", "", "Failed"])
def test_lease_of_a_removed_job_is_held_by_its_pods_only(phase):
    world = World()
    run = world.run()
    world.acquire(run)
    if phase:
        job = world.add_job(run)
        world.add_pod(job, phase=phase)
        world.door.delete(JOBS, run.name, NAMESPACE)
    assert not free(world)
    world.leases.job_removed(world.owner, run.name)
    assert free(world) is (phase != "Pending")
    if phase == "Pending":
        wait = world.acquire(world.run(attempt=2))
        assert wait.short
    else:
        assert world.acquire(world.run(attempt=2)) is None
        assert keys.LEASE_JOB_REMOVED not in held(world).metadata.annotations


def test_lease_of_another_job_is_not_noted_as_one_of_a_removed_job():
    world = World()
    world.acquire(world.run())
    world.leases.job_removed(world.owner, "captf-c-prod-apply-a9-000000")
    assert not free(world)


def test_finished_holder_keeps_its_lease_while_a_pod_of_it_is_ending():
    world = World()
    run = world.run()
    world.acquire(run)
    job = world.finish(world.add_job(run), ok=False)
    pod = world.add_pod(job, phase="Running")
    assert not free(world)
    world.door.patch(
        PODS, pod.metadata.name, "team-a", {"status": {"phase": "Failed"}}, subresource="status"
    )
    assert free(world)


def test_missing_holder_with_a_running_pod_still_holds():
    world = World()
    run = world.run()
    world.acquire(run)
    job = world.add_job(run)
    world.add_pod(job, phase="Running")
    world.door.delete(JOBS, job.metadata.name, "team-a")
    world.clock.advance(120)
    assert not free(world)


def test_running_holder_loses_its_lease_only_at_the_backstop():
    world = World()
    run = world.run()
    world.acquire(run)
    world.add_job(run)
    world.clock.advance(4500)
    assert not free(world)
    world.clock.advance(1)
    assert free(world)


def test_age_is_read_from_acquire_time_and_creation_without_the_annotation():
    world = World()
    world.acquire(world.run())
    store = LeaseStore(world.door, world.clock)
    lease = held(world)
    world.clock.advance(7)
    lease.metadata.annotations.clear()
    assert store.age(lease) == timedelta(seconds=7)
    lease.spec.acquire_time = "nonsense"
    assert store.age(lease) == timedelta(seconds=7)


def test_wait_names_the_holding_job():
    world = World()
    first = world.run()
    world.acquire(first)
    world.add_job(first)
    wait = world.acquire(world.run(attempt=2))
    assert wait.reason is WaitReason.RUN_LEASE
    assert first.name in wait.message


@pytest.mark.parametrize("error", [Conflict("stale"), NotFound("gone")])
def test_lost_race_waits_without_naming_a_job_and_without_a_second_try(error):
    world = World(gate=False)
    world.acquire(world.run())
    world.clock.advance(61)
    updates = []

    def refuse(method: str, resource: Any) -> None:
        if method == "update":
            updates.append(resource)
            raise error

    leases = Leases(HookedDoor(world.door, before=refuse), world.reader, world.clock)
    wait = leases.acquire(world.run(attempt=2).run)
    assert wait.reason is WaitReason.RUN_LEASE
    assert "another manager" in wait.message
    assert "captf-c-" not in wait.message
    assert len(updates) == 1


def machine_run(world: World, name: str = "md-0", op: Op = Op.APPLY):
    return run_spec(world.machine(name), op)


def test_cluster_waits_for_machines_and_new_machine_operations_queue_behind_it():
    world = World()
    machine = machine_run(world)
    assert world.acquire(machine) is None
    world.add_job(machine)
    wait = world.acquire(world.run())
    assert wait.reason is WaitReason.MACHINE_OPERATIONS
    assert machine.name in wait.message
    cluster_lease = names.cluster_lease("team-a", "prod")
    assert {world.owner.run_lease, cluster_lease} <= set(world.lease_names())

    late = machine_run(world, "md-1")
    wait = world.acquire(late)
    assert wait.reason is WaitReason.CLUSTER_OPERATION
    assert late.owner.run_lease not in world.lease_names()


def test_machine_refresh_starts_while_the_cluster_applies():
    world = World()
    run = world.run()
    world.acquire(run)
    world.add_job(run)
    assert world.acquire(machine_run(world, op=Op.REFRESH)) is None


def test_machines_do_not_exclude_each_other():
    world = World()
    first = machine_run(world)
    world.acquire(first)
    world.add_job(first)
    assert world.acquire(machine_run(world, "md-1")) is None


def test_cluster_does_not_wait_for_refreshing_machines():
    world = World()
    refresh = machine_run(world, op=Op.REFRESH)
    world.acquire(refresh)
    world.add_job(refresh)
    assert world.acquire(world.run()) is None


def test_five_of_seven_machine_jobs_are_named_with_their_number():
    world = World()
    runs = [machine_run(world, f"md-{index}") for index in range(7)]
    for run in runs:
        world.acquire(run)
        world.add_job(run)
    message = world.acquire(world.run()).message
    assert sum(run.name in message for run in runs) == 5
    assert "7 machine and pool Jobs" in message


def test_machine_waits_for_the_clusters_job_whatever_became_of_the_lease():
    world = World()
    run = world.run()
    world.acquire(run)
    world.add_job(run)
    world.door.delete(LEASES, names.cluster_lease("team-a", "prod"), "team-a")
    machine = machine_run(world)
    wait = world.acquire(machine)
    assert wait.reason is WaitReason.CLUSTER_OPERATION
    assert run.name in wait.message
    assert machine.owner.run_lease not in world.lease_names()


def test_cluster_waits_for_a_machines_job_whatever_became_of_the_lease():
    world = World()
    machine = machine_run(world)
    world.acquire(machine)
    world.add_job(machine)
    world.door.delete(LEASES, machine.owner.run_lease, "team-a")
    assert world.acquire(world.run()).reason is WaitReason.MACHINE_OPERATIONS


def test_other_holder_of_the_cluster_lease_makes_the_run_lease_go_back():
    world = World()
    earlier = world.run(attempt=7)
    world.acquire(earlier)
    world.door.delete(LEASES, world.owner.run_lease, "team-a")
    wait = world.acquire(world.run(attempt=8))
    assert wait.reason is WaitReason.RUN_LEASE
    assert earlier.name in wait.message
    assert world.owner.run_lease not in world.lease_names()


def test_error_of_the_gate_gives_everything_back():
    world = World()

    def fail(method: str, resource: Any) -> None:
        if method == "list" and resource is LEASES:
            raise Unavailable("no answer")

    leases = Leases(HookedDoor(world.door, before=fail), world.reader, world.clock)
    with pytest.raises(Unavailable):
        leases.acquire(world.run().run)
    assert world.lease_names() == []


def test_what_another_manager_took_for_the_same_job_is_not_given_up():
    world = World()
    run = world.run()
    world.acquire(run)  # one manager, which is about to create the Job
    world.acquire(run)  # another one, whose start comes to nothing
    world.leases.give_up(run.run)
    assert world.lease_names() == [names.cluster_lease("team-a", "prod"), world.owner.run_lease]
    assert world.acquire(machine_run(world)).reason is WaitReason.CLUSTER_OPERATION
    world.clock.advance(61)  # no Job came
    assert free(world)


def test_a_cluster_lease_that_could_not_be_taken_stays_with_the_job_that_relies_on_it():
    world = World()
    run = world.run()
    world.acquire(run)  # one manager, which created the Job
    seen = []

    def fail(method: str, resource: Any) -> None:
        if method == "create" and resource is LEASES:
            seen.append(method)
            if len(seen) == 2:
                raise TooManyRequests("slow down")

    leases = Leases(HookedDoor(world.door, before=fail), world.reader, world.clock)
    with pytest.raises(TooManyRequests):  # another one, which has not seen the Job
        leases.acquire(run.run)
    assert world.lease_names() == [names.cluster_lease("team-a", "prod"), world.owner.run_lease]


def test_what_nobody_else_took_is_given_up():
    world = World()
    run = world.run()
    world.acquire(run)
    world.leases.give_up(run.run)
    assert world.lease_names() == []


def test_a_machine_that_waits_does_not_keep_a_lease_alive_that_its_cluster_waits_for():
    world = World()
    machine = machine_run(world)
    world.acquire(machine)  # its manager is killed before it creates the Job
    assert world.acquire(world.run()).reason is WaitReason.MACHINE_OPERATIONS
    world.clock.advance(40)
    world.acquire(world.run())
    taken = world.lease(machine.owner.run_lease)
    assert world.acquire(machine).reason is WaitReason.CLUSTER_OPERATION
    assert world.lease(machine.owner.run_lease) == taken
    world.clock.advance(21)
    assert world.acquire(world.run()) is None


def test_release_gives_back_both_leases_and_only_ones_own():
    world = World()
    run = world.run()
    world.acquire(run)
    world.leases.release(world.owner, "another-job")
    assert len(world.lease_names()) == 2
    world.leases.release(world.owner, run.name)
    assert world.lease_names() == []
    world.leases.release(world.owner, run.name)


@pytest.mark.parametrize("error", [Forbidden("no"), Unavailable("no answer")])
def test_release_that_fails_is_no_error(error, caplog):
    world = World()
    run = world.run()
    world.acquire(run)

    def fail(method: str, resource: Any) -> None:
        if method == "delete":
            raise error

    Leases(HookedDoor(world.door, before=fail), world.reader, world.clock).release(
        world.owner, run.name
    )
    assert "was not given back" in caplog.text
    assert len(world.lease_names()) == 2


@pytest.mark.parametrize(("age", "retaken"), [(29, False), (31, True)])
def test_old_lease_is_taken_again_before_the_create(age, retaken):
    world = World()
    run = world.run()
    world.acquire(run)
    world.clock.advance(age)
    assert world.leases.freshen(run.run)
    renewed = held(world).spec.acquire_time != "2026-09-25T12:00:00.000000Z"
    assert renewed is retaken


def test_missing_lease_is_taken_again_before_the_create():
    world = World()
    assert world.leases.freshen(world.run().run)
    assert world.owner.run_lease in world.lease_names()


def test_lease_of_another_job_defers_the_create_and_stays():
    world = World()
    other = world.run(attempt=2)
    world.acquire(other)
    assert not world.leases.freshen(world.run().run)
    assert held(world).spec.holder_identity == other.name


def test_retake_that_itself_took_long_defers_the_create():
    world = World(gate=False)
    slow = Leases(
        HookedDoor(world.door, before=lambda *_: world.clock.advance(15)), world.reader, world.clock
    )
    assert not slow.freshen(world.run().run)
