"""Pods stay until their result was read (runs.md: Pods that are kept until they are read)."""

import pytest

from captfctl.cluster.door import Propagation
from captfctl.model import keys, names
from captfctl.model.core import Job, Pod
from captfctl.model.resources import JOBS, PODS, TERRAFORM_CLUSTERS
from captfctl.reconcile.kept_pods import kept_pods, release_pods
from tests.support.cluster_world import NAME, NAMESPACE, World
from tests.support.machine_world import MachineWorld, PoolWorld, WorkerWorld


def pod_of(world: World) -> Pod | None:
    return next(iter(world.door.list(PODS, NAMESPACE).items), None)


def delete_pod(world: World) -> None:
    pod = pod_of(world)
    assert pod is not None
    world.door.delete(PODS, pod.metadata.name, NAMESPACE, grace_period_seconds=0)


def delete_job(world: World, job: Job) -> None:
    """As a person does; the garbage collector then deletes the pod."""
    world.door.delete(JOBS, job.metadata.name, NAMESPACE, propagation=Propagation.BACKGROUND)
    delete_pod(world)


def release(world: World, job: Job) -> float:
    key = (NAMESPACE, job.metadata.name)
    return release_pods(world.door, key, world.clock.now()).requeue_after


@pytest.fixture
def running(world: World) -> tuple[World, Job]:
    """A first apply whose pod runs on a node."""
    world.settle(2)
    job = world.active_job()
    world.runner.start(job)
    return world, job


@pytest.mark.parametrize("reason", ["", "DeadlineExceeded"])
def test_a_pod_that_is_deleted_tells_its_result_first(running, reason):
    world, job = running
    delete_pod(world)
    error = {"kind": "interrupted", "step": "apply", "tail": ""}
    world.runner.write_state(job, {})
    world.runner.end(job, ok=False, result={"op": "apply", "error": error}, reason=reason)
    release(world, job)
    assert pod_of(world) is not None

    world.run()

    expected = "JobDeadlineExceeded" if reason else "ApplyFailed"
    told = "JobDeadlineExceeded" if reason else "JobInterrupted"
    assert told in world.events.reasons
    assert world.obj.status.last_run.error.kind == "interrupted"
    again = world.active_job()  # at once
    assert again.metadata.annotations.get(keys.AFTER_INTERRUPTED_APPLY) is None
    assert world.reason("ApplyJobSucceeded") == f"False/{expected}"
    assert release(world, job) == 0
    assert pod_of(world) is None
    assert kept_pods(world.door, "") == set()


def test_a_pod_that_is_not_deleted_stays_when_it_was_read(world: World):
    job = world.apply()
    release(world, job)
    pod = pod_of(world)
    assert pod is not None
    assert keys.UNREAD_RESULT not in pod.metadata.finalizers


def test_a_pod_that_still_runs_is_kept_whatever_became_of_its_job_and_object(running):
    world, job = running
    delete_job(world, job)
    body = {"metadata": {"finalizers": None}}
    world.door.patch(TERRAFORM_CLUSTERS, NAME, NAMESPACE, body)
    world.delete()
    assert world.gone
    assert release(world, job) > 0
    assert pod_of(world) is not None

    pod = pod_of(world)
    pod.status.phase = "Failed"
    world.door.update(PODS, pod, subresource="status")
    assert release(world, job) == 0
    assert pod_of(world) is None


def test_a_pod_that_never_had_a_node_goes_with_its_job(world: World):
    world.settle(2)
    job = world.active_job()
    world.runner.start(job, node="")
    delete_job(world, job)
    world.settle(2)
    release(world, job)
    assert pod_of(world) is None


def test_a_job_that_is_deleted_while_it_runs_is_read_from_its_pod(running):
    world, job = running
    world.door.delete(JOBS, job.metadata.name, NAMESPACE, propagation=Propagation.BACKGROUND)
    assert release(world, job) > 0  # also before the garbage collector deletes the pod
    delete_pod(world)
    assert world.run().requeue_after == 5  # the pod is being ended
    assert world.obj.status.active_job.name == job.metadata.name
    assert world.running() == []
    assert release(world, job) > 0

    pod = pod_of(world)
    world.runner.write_state(job, {})
    error = {"kind": "interrupted", "step": "apply", "tail": ""}
    world.runner._end_pod(job, ok=False, result={"op": "apply", "error": error})
    assert release(world, job) > 0  # nobody has read it yet
    world.run()
    assert release(world, job) == 0
    assert pod_of(world) is None
    again = world.active_job()  # without waiting for the lease of the Job that is gone
    assert again.metadata.annotations[keys.AFTER_INTERRUPTED_APPLY] == job.metadata.name
    assert world.obj.status.last_run.error.kind == "interrupted"
    assert pod.metadata.name.startswith(job.metadata.name)
    assert "deleted while it ran" in world.condition("ApplyJobSucceeded").message


def test_a_job_that_is_deleted_before_it_applied_leaves_nothing_to_confirm(running):
    world, job = running
    delete_job(world, job)
    error = {"kind": "interrupted", "step": "init", "tail": ""}
    steps = [{"name": "init", "exit": 1, "seconds": 0.1}]
    result = {"op": "apply", "error": error, "steps": steps}
    world.runner._end_pod(job, ok=False, result=result)
    world.run()
    attempt = world.secret(names.attempt_record("TerraformCluster", NAME))
    assert keys.INTERRUPTED_APPLY not in attempt.metadata.annotations
    assert world.active_job()


def test_a_finished_job_whose_pod_is_still_being_ended_is_not_read_yet(running):
    """Before Kubernetes 1.31 a Job has failed as soon as its pod is deleted."""
    world, job = running
    delete_pod(world)
    live = world.door.get(JOBS, job.metadata.name, NAMESPACE)
    condition = {"type": "Failed", "status": "True", "reason": "DeadlineExceeded"}
    status = {"status": {"conditions": [condition], "active": 0}}
    world.door.patch(JOBS, live.metadata.name, NAMESPACE, status, subresource="status")
    assert 0 < world.run().requeue_after <= 60
    assert keys.BOOKKEPT not in world.jobs()[0].metadata.annotations

    error = {"kind": "interrupted", "step": "apply", "tail": ""}
    world.runner._end_pod(job, ok=False, result={"op": "apply", "error": error})
    world.run()
    assert world.obj.status.last_run.error.kind == "interrupted"


def test_a_deleted_pod_that_nobody_reads_goes_after_an_hour(running):
    world, job = running
    delete_pod(world)
    world.runner.end(job, ok=False, result=None)
    assert release(world, job) > 0
    assert pod_of(world) is not None
    world.advance(hours=1, seconds=1)
    assert release(world, job) == 0
    assert pod_of(world) is None


def finished_and_deleted(kind: type[WorkerWorld], *, job_deleted: bool) -> tuple[WorkerWorld, Job]:
    """A first apply of a machine or pool that was stopped, and whose pod is deleted."""
    world = kind().populate()
    world.settle(2)
    job = world.active_job()
    pod = world.runner.start(job)
    error = {"kind": "interrupted", "step": "apply", "tail": ""}
    world.runner.end(job, ok=False, result={"op": "apply", "error": error})
    if job_deleted:
        world.door.delete(JOBS, job.metadata.name, NAMESPACE, propagation=Propagation.BACKGROUND)
    world.door.delete(PODS, pod.metadata.name, NAMESPACE, grace_period_seconds=0)
    return world, job


@pytest.mark.parametrize("job_deleted", [False, True])
@pytest.mark.parametrize("kind", [MachineWorld, PoolWorld])
def test_the_pod_of_a_machine_or_pool_waits_for_its_pass_too(kind, job_deleted: bool):
    world, job = finished_and_deleted(kind, job_deleted=job_deleted)
    release(world, job)
    assert any(job.metadata.name in pod.metadata.name for pod in world.pods())
    world.settle(2)
    release(world, job)
    assert not any(job.metadata.name in pod.metadata.name for pod in world.pods())
