"""Which change is urgent, and what a Job's end leads to (manager.md: Watches)."""

from collections.abc import Iterator

import pytest

from captfctl.controller import WorkQueue
from captfctl.manager.caches import Caches, InformerReader
from captfctl.manager.watches import connect, connect_slots
from captfctl.model import keys
from captfctl.model.kinds import CLUSTER
from captfctl.model.resources import JOBS
from captfctl.runs.slots import SlotOwner, Slots
from captfctl.settings import ManagerSettings
from tests.support.clock import FakeClock, eventually
from tests.support.cluster_world import KEY, NAMESPACE, RUNNER_IMAGE, World, variables
from tests.support.runs import World as Runs

OTHER = ("team-z", "other")


@pytest.fixture
def world() -> World:
    return World().populate()


@pytest.fixture
def queue(world: World) -> Iterator[WorkQueue[tuple[str, str]]]:
    """A queue that hears of everything; what was there before is done."""
    caches = Caches(world.door, ManagerSettings(runner_image=RUNNER_IMAGE), FakeClock())
    queue: WorkQueue[tuple[str, str]] = WorkQueue(FakeClock())
    caches.start()
    eventually(lambda: caches.synced, "the caches")
    queue.add(OTHER)
    connect(caches, CLUSTER, queue)
    yield queue
    queue.shut_down()
    caches.stop(5)


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
