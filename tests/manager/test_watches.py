"""Which change is urgent, and what a Job's end leads to (manager.md: Watches)."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from captfctl.controller import WorkQueue
from captfctl.manager.caches import Caches, InformerReader
from captfctl.manager.watches import connect, connect_slots
from captfctl.model import keys
from captfctl.model.kinds import CLUSTER, MACHINE_POOL, Kind
from captfctl.model.resources import JOBS, TERRAFORM_CLUSTERS
from captfctl.runs.slots import SlotOwner, Slots
from captfctl.settings import ManagerSettings
from tests.support.clock import FakeClock, eventually
from tests.support.cluster_world import KEY, NAME, NAMESPACE, RUNNER_IMAGE, World, variables
from tests.support.fake_runner import OUTPUTS
from tests.support.machine_world import MachineWorld, PoolWorld, WorkerWorld
from tests.support.runs import World as Runs

OTHER = ("team-z", "other")


@pytest.fixture
def world() -> World:
    return World().populate()


@contextmanager
def listening(world: World, kind: Kind) -> Iterator[WorkQueue[tuple[str, str]]]:
    """A queue that hears of everything that concerns a kind."""
    caches = Caches(world.door, ManagerSettings(runner_image=RUNNER_IMAGE), FakeClock())
    queue: WorkQueue[tuple[str, str]] = WorkQueue(FakeClock())
    caches.start()
    eventually(lambda: caches.synced, "the caches")
    queue.add(OTHER)
    connect(caches, kind, queue)
    yield queue
    queue.shut_down()
    caches.stop(5)


@pytest.fixture
def queue(world: World) -> Iterator[WorkQueue[tuple[str, str]]]:
    """What was there before is done."""
    with listening(world, CLUSTER) as queue:
        yield queue


def urgent(queue: WorkQueue[tuple[str, str]]) -> bool:
    """Whether the object comes before what was there already."""
    queue.add(OTHER)
    eventually(lambda: len(queue) == 2, "a pass of the object")
    return queue.try_get() == KEY


def drain(queue: WorkQueue[tuple[str, str]]) -> None:
    while (key := queue.try_get()) is not None:
        queue.done(key)


def test_objects_that_a_manager_finds_at_its_start_are_not_urgent(queue):
    assert not urgent(queue)


@pytest.mark.parametrize("what", ["a changed spec", "a deletion", "a request in an annotation"])
def test_what_people_do_to_an_object_is_urgent(world: World, queue, what):
    drain(queue)
    if what == "a changed spec":
        world.edit(variables('{"region":"eu-2"}'))
    elif what == "a deletion":
        world.edit(lambda obj: obj.metadata.finalizers.append("example.com/keep"))
        eventually(lambda: len(queue) == 1, "a pass")
        drain(queue)
        world.delete()
    else:
        request = {keys.RESTORE_STATE: "latest"}
        world.edit(lambda obj: obj.metadata.annotations.update(request))
    assert urgent(queue)


def test_what_a_pass_writes_is_not_urgent(world: World, queue):
    drain(queue)
    world.edit(lambda obj: obj.metadata.annotations.update({keys.BLOCK_MOVE: keys.TRUE}))
    assert not urgent(queue)


@pytest.mark.parametrize("how", ["finishes", "is deleted"])
def test_a_job_that_ends_wakes_who_waits_for_its_slot(how):
    world, woken = Runs(), []
    caches = Caches(world.door, ManagerSettings(runner_image=RUNNER_IMAGE), world.clock)
    slots = Slots(world.door, InformerReader(caches), world.clock, 1, woken.append)
    job = world.add_job(world.run())
    caches.start()
    eventually(lambda: caches.synced, "the caches")
    connect_slots(caches, slots)
    waiting = world.run(owner=world.machine("m1"))
    assert slots.take(waiting.run, 0, world.clock.now()) is not None
    if how == "finishes":
        world.finish(job)
    else:
        world.door.delete(JOBS, job.metadata.name, NAMESPACE)
    eventually(lambda: woken == [SlotOwner("TerraformMachine", NAMESPACE, "m1")], "the call")
    caches.stop(5)


# The operation gate.

WORKERS = pytest.mark.parametrize("workers", [MachineWorld, PoolWorld])


def change_cluster(world: WorkerWorld) -> None:
    """Its next pass is about to apply."""
    change = {"spec": {"variables": {"region": "eu-2"}}}
    world.door.patch(TERRAFORM_CLUSTERS, NAME, NAMESPACE, change)
    world.run_cluster()


def cluster_reason(world: WorkerWorld) -> str:
    obj = world.door.get(TERRAFORM_CLUSTERS, NAME, NAMESPACE)
    return next(c.reason for c in obj.status.conditions if c.type == "ApplyJobSucceeded")


def is_woken(queue: WorkQueue[tuple[str, str]], key: tuple[str, str]) -> bool:
    found = queue.try_get()
    if found is not None:
        queue.done(found)
    return found == key


@WORKERS
def test_what_waits_for_its_clusters_job_goes_on_when_that_was_read(workers):
    world = workers().populate()
    change_cluster(world)
    world.settle(2)
    assert world.reason("ApplyJobSucceeded") == "Unknown/WaitingForClusterOperation"
    with listening(world, world.kind) as queue:
        drain(queue)
        world.runner.fail(world.active_job())  # of a success, the serial of the state tells, too
        world.run_cluster()
        eventually(lambda: is_woken(queue, world.key), "a pass of what waits")
    world.run()
    assert [job.metadata.labels[keys.OWNER_KIND] for job in world.running()] == [world.kind.name]


@WORKERS
def test_a_cluster_that_waits_for_its_machines_goes_on_when_their_jobs_were_read(workers):
    world = workers().populate()
    world.settle(2)
    change_cluster(world)
    assert cluster_reason(world) == "WaitingForMachineOperations"
    with listening(world, CLUSTER) as queue:
        drain(queue)
        world.runner.fail(world.active_job())
        world.run()
        eventually(lambda: is_woken(queue, KEY), "a pass of the cluster")
    world.run_cluster()
    assert [job.metadata.labels[keys.OWNER_KIND] for job in world.running()] == [CLUSTER.name]


def test_a_pool_is_looked_at_when_the_state_of_its_cluster_changed():
    """Its exports are in there, and pools look for themselves only once a day if told so."""
    world = PoolWorld().populate()
    world.apply()
    change_cluster(world)
    with listening(world, MACHINE_POOL) as queue:
        drain(queue)
        world.runner.succeed(world.active_job(), {**OUTPUTS, "exports": {"network_id": "net-2"}})
        world.run_cluster()
        eventually(lambda: is_woken(queue, world.key), "a pass of the pool")
