"""A Job whose pod cannot start: looked at soon, told once, and its condition after two minutes."""

import pytest

from captfctl.decide.constants import UNSTARTED_JOB_REQUEUE
from captfctl.model.core import Job
from captfctl.model.events import EventReason
from captfctl.model.resources import EVENTS, JOBS, PODS
from captfctl.reconcile import DoorRecorder
from tests.support.cluster_world import NAMESPACE, World, variables

WAITS = {
    "ErrImagePull": "image registry.example.com/m:v1: not found",
    "InvalidImageName": "'two words' is no image reference",
    "CreateContainerError": "image registry.example.com/m:v1: no runtime: terraform or tofu",
    "CreateContainerConfigError": 'secret "cloud" not found',
}


def changed(world: World) -> Job:
    """The Job of a later apply, not started."""
    world.edit(variables('{"region":"eu-2"}'))
    world.run()
    return world.active_job()


def told(world: World) -> list[str]:
    return [n.note for n in world.events.notes if n.reason == EventReason.JOB_CANNOT_START]


@pytest.mark.parametrize("reason", WAITS)
@pytest.mark.parametrize("job", ["of the first apply", "of a later apply"])
def test_what_the_node_lacks_is_an_event_of_the_object_within_seconds(
    world: World, reason: str, job: str
):
    if job == "of a later apply":
        world.apply()
        name = changed(world).metadata.name
    else:
        world.settle(2)
        name = world.active_job().metadata.name
    world.runner.wait_for_image(world.active_job(), reason, WAITS[reason])
    world.advance(seconds=UNSTARTED_JOB_REQUEUE.total_seconds())
    world.run()
    (note,) = told(world)
    assert note == f"Job {name} cannot start: container source: {WAITS[reason]}"


def test_passes_and_managers_that_say_the_same_post_it_once(ready: World):
    job = changed(ready)
    pod = ready.runner.wait_for_image(job, "ErrImagePull", "not found")
    recorder = DoorRecorder(ready.door, ready.clock, "captf")
    for message in ("not found", 'Back-off pulling image "m:v1": ErrImagePull: not found', "gone"):
        waiting = pod.status.container_statuses[0].state.waiting
        waiting.reason, waiting.message = "ImagePullBackOff", message
        pod = ready.door.update(PODS, pod, subresource="status")
        ready.advance(seconds=5)
        ready.run()
    for note in ready.events.notes:
        if note.reason == EventReason.JOB_CANNOT_START:
            recorder.record(ready.obj, note)
    assert len(told(ready)) == 3
    posted = [event.note for event in ready.door.list(EVENTS, NAMESPACE).items]
    assert len(posted) == 2


def test_a_job_that_has_not_started_is_looked_at_again_soon_and_then_less_often(ready: World):
    job = changed(ready)
    pauses = []
    while not pauses or pauses[-1] < 60:
        pauses.append(ready.run().requeue_after)
        ready.advance(seconds=pauses[-1])
    assert pauses == [3, 3, 6, 12, 24, 48, 60]
    live = ready.door.get(JOBS, job.metadata.name, NAMESPACE)
    live.status.ready = 1
    ready.door.update(JOBS, live, subresource="status")
    assert ready.run().requeue_after == 60


def test_a_job_whose_pod_runs_is_not_said_to_be_stuck(ready: World):
    ready.runner.start(changed(ready))
    ready.advance(seconds=30)
    ready.run()
    assert told(ready) == []


def test_an_apply_without_its_image_says_so_in_its_condition_and_stays(ready: World):
    job = changed(ready)
    ready.runner.wait_for_image(job, "ErrImagePull", "not found")
    ready.advance(seconds=121)
    ready.run()
    assert ready.reason("ApplyJobSucceeded") == "False/ImagePullFailed"
    assert "not found" in ready.condition("ApplyJobSucceeded").message
    assert ready.active_job().metadata.name == job.metadata.name
    ready.runner.succeed(job)
    ready.settle(2)
    assert ready.reason("ApplyJobSucceeded") == "True/ApplySucceeded"
