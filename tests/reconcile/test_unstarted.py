"""A Job whose pod cannot start: looked at soon and told at once, and it stands in nobody's way."""

import pytest

from captfctl.decide.constants import UNSTARTED_JOB_REQUEUE
from captfctl.model import keys
from captfctl.model.core import (
    ContainerState,
    ContainerStateRunning,
    ContainerStateWaiting,
    ContainerStatus,
    Job,
    PodCondition,
    PodStatus,
)
from captfctl.model.events import EventReason
from captfctl.model.resources import EVENTS, JOBS, PODS
from captfctl.reconcile.events import DoorRecorder
from captfctl.reconcile.kept_pods import release_pods
from tests.support.cluster_world import NAMESPACE, World, annotated, variables
from tests.support.faults import HookedDoor

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


def image(reference: str):
    def change(obj) -> None:
        obj.spec.source.image = reference

    return change


def waits(reason: str, message: str = "") -> PodStatus:
    state = ContainerState(waiting=ContainerStateWaiting(reason=reason, message=message))
    return PodStatus(
        phase="Pending",
        container_statuses=[ContainerStatus(name="source", image="m:v1", state=state)],
    )


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
    assert pauses == [3, 3, 6, *[10] * 29, 60]
    live = ready.door.get(JOBS, job.metadata.name, NAMESPACE)
    live.status.ready = 1
    ready.door.update(JOBS, live, subresource="status")
    assert ready.run().requeue_after == 60


def test_a_job_whose_pod_runs_is_not_said_to_be_stuck(ready: World):
    ready.runner.start(changed(ready))
    ready.advance(seconds=30)
    ready.run()
    assert told(ready) == []


def test_an_apply_without_its_image_says_so_in_its_condition_within_seconds_and_stays(
    ready: World,
):
    job = changed(ready)
    ready.runner.wait_for_image(job, "ErrImagePull", "not found")
    ready.advance(seconds=3)
    ready.run()
    assert ready.reason("ApplyJobSucceeded") == "False/ImagePullFailed"
    assert "not found" in ready.condition("ApplyJobSucceeded").message
    ready.advance(seconds=600)
    ready.run()
    assert ready.active_job().metadata.name == job.metadata.name
    ready.runner.succeed(job)
    ready.settle(2)
    assert ready.reason("ApplyJobSucceeded") == "True/ApplySucceeded"


def test_a_pull_that_works_after_all_is_not_said_to_fail_any_more(ready: World):
    job = changed(ready)
    pod = ready.runner.wait_for_image(job, "ErrImagePull", "not found")
    ready.advance(seconds=3)
    ready.run()
    pod.status.phase = "Running"
    running = ContainerState(running=ContainerStateRunning(started_at=ready.clock.now()))
    pod.status.container_statuses[0].state = running
    ready.door.update(PODS, pod, subresource="status")
    ready.run()
    assert ready.reason("ApplyJobSucceeded") == "True/ApplySucceeded"


def test_the_condition_stays_as_it_is_while_the_node_backs_off(ready: World):
    pod = ready.runner.wait_for_image(changed(ready), "ErrImagePull", "not found")
    ready.advance(seconds=3)
    ready.run()
    before = ready.obj.metadata.resource_version
    waiting = pod.status.container_statuses[0].state.waiting
    waiting.reason = "ImagePullBackOff"
    waiting.message = 'Back-off pulling image "m:v1": ErrImagePull: not found'
    ready.door.update(PODS, pod, subresource="status")
    ready.advance(seconds=5)
    ready.run()
    assert ready.obj.metadata.resource_version == before


# It stands in nobody's way.

HINDERED = {
    "an image that cannot be pulled": waits("ErrImagePull", "not found"),
    "an image name that is none": waits("InvalidImageName"),
    "a Secret that is not there": waits("CreateContainerConfigError", 'secret "x" not found'),
    "no node for its pod": PodStatus(
        phase="Pending",
        conditions=[PodCondition(type="PodScheduled", status="False", message="no memory")],
    ),
}


def hindered(world: World, job: Job, status: PodStatus) -> None:
    pod = world.runner.start(job)
    pod.status = status
    world.door.update(PODS, pod, subresource="status")
    world.advance(seconds=3)
    world.run()


def collect(world: World) -> None:
    """The pods of Jobs that are gone end and go, as a cluster and its node see to it."""
    jobs = {job.metadata.uid for job in world.jobs()}
    for pod in world.pods():
        if pod.metadata.controller.uid not in jobs:
            world.door.delete(PODS, pod.metadata.name, NAMESPACE)
            ended = {"status": {"phase": "Failed"}}
            world.door.patch(PODS, pod.metadata.name, NAMESPACE, ended, subresource="status")
            key = (NAMESPACE, pod.metadata.controller.name)
            release_pods(world.door, key, world.clock.now())


@pytest.mark.parametrize("why", HINDERED)
def test_a_corrected_spec_replaces_a_job_that_has_not_begun(ready: World, why: str):
    old = changed(ready)
    hindered(ready, old, HINDERED[why])
    ready.edit(image("registry.example.com/right:v1"))
    assert ready.run().requeue_after == 1
    assert old.metadata.name not in [job.metadata.name for job in ready.running()]
    assert "UnstartedJobReplaced" in ready.events.reasons
    collect(ready)
    ready.advance(seconds=1)
    ready.run()
    new = ready.active_job()
    assert new.spec.template.spec.containers[0].image == "registry.example.com/right:v1"
    ready.runner.succeed(new)
    ready.settle(2)
    assert ready.reason("ApplyJobSucceeded") == "True/ApplySucceeded"
    assert ready.leases() == []


def test_the_first_apply_is_corrected_like_any_other(world: World):
    world.settle(2)
    hindered(world, world.active_job(), HINDERED["an image that cannot be pulled"])
    world.edit(image("registry.example.com/right:v1"))
    world.run()
    collect(world)
    world.advance(seconds=1)
    world.run()
    world.runner.succeed(world.active_job())
    world.settle(2)
    assert world.reason("Ready").startswith("True")


def test_the_pod_of_a_replaced_job_is_waited_for(ready: World):
    hindered(ready, changed(ready), HINDERED["an image that cannot be pulled"])
    ready.edit(image("registry.example.com/right:v1"))
    ready.run()
    ready.advance(seconds=1)
    result = ready.run()
    assert ready.running() == []
    assert ready.reason("ApplyJobSucceeded") == "Unknown/WaitingForRunLease"
    assert result.requeue_after <= 3
    collect(ready)
    ready.run()
    assert len(ready.running()) == 1


def test_a_job_that_has_begun_is_not_replaced(ready: World):
    job = changed(ready)
    ready.runner.start(job)
    ready.edit(image("registry.example.com/right:v1"))
    ready.advance(seconds=600)
    ready.run()
    assert ready.active_job().metadata.name == job.metadata.name


def test_a_job_that_begins_while_it_is_looked_at_is_not_deleted(ready: World):
    job = changed(ready)
    hindered(ready, job, HINDERED["an image that cannot be pulled"])
    ready.edit(image("registry.example.com/right:v1"))
    (pod,) = [pod for pod in ready.pods() if pod.metadata.controller.name == job.metadata.name]
    looks = []

    def begins(method: str, resource: object) -> None:
        if method == "list" and resource is PODS:
            looks.append(method)
            if len(looks) == 2:
                pod.status.phase = "Running"
                ready.door.update(PODS, pod, subresource="status")

    ready.run(ready.env(HookedDoor(ready.writes, before=begins)))
    assert ready.active_job().metadata.name == job.metadata.name


@pytest.mark.parametrize("why", HINDERED)
def test_a_deletion_does_not_wait_for_a_job_that_has_not_begun(ready: World, why: str):
    hindered(ready, changed(ready), HINDERED[why])
    ready.delete()
    ready.run()
    collect(ready)
    ready.advance(seconds=1)
    ready.run()
    assert ready.active_job().metadata.labels[keys.OP] == "destroy"


def test_an_object_that_never_had_its_image_goes_at_once(world: World):
    world.settle(2)
    hindered(world, world.active_job(), HINDERED["an image that cannot be pulled"])
    world.delete()
    world.run()
    collect(world)
    world.advance(seconds=61)
    world.settle(3)
    assert world.gone


def test_a_destroy_that_cannot_pull_runs_the_image_that_is_named_for_it(ready: World):
    ready.delete()
    ready.run()
    hindered(ready, ready.active_job(), HINDERED["an image that cannot be pulled"])
    ready.edit(annotated({"captf.io/destroy-image": "registry.example.com/right:v1"}))
    ready.run()
    collect(ready)
    ready.advance(seconds=1)
    ready.run()
    assert ready.active_job().metadata.labels[keys.OP] == "destroy"


@pytest.mark.parametrize("pod", ["kept", "gone"])
def test_at_the_deadline_the_reason_is_still_the_image(ready: World, pod: str):
    job = changed(ready)
    hindered(ready, job, HINDERED["an image that cannot be pulled"])
    ready.advance(seconds=3600)
    (left,) = [pod for pod in ready.pods() if pod.metadata.controller.name == job.metadata.name]
    ready.runner.end(job, ok=False, result=None, reason="DeadlineExceeded", pod=False)
    if pod == "kept":
        left.metadata.resource_version, left.metadata.uid = "", ""
        kept = ready.door.create(PODS, left)
        kept.status = HINDERED["an image that cannot be pulled"]
        ready.door.update(PODS, kept, subresource="status")
    ready.settle(2)
    assert ready.reason("ApplyJobSucceeded") == "False/ImagePullFailed"
    assert "not found" in ready.condition("ApplyJobSucceeded").message
