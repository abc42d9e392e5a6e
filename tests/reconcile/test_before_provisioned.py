"""What `Ready` says before an object is provisioned: what is the case, in each of its states."""

from dataclasses import replace

import pytest

from captfctl.cluster.errors import Forbidden
from captfctl.model import keys
from captfctl.model.core import (
    ContainerState,
    ContainerStateWaiting,
    ContainerStatus,
    Job,
    JobStatus,
    PodCondition,
    PodStatus,
)
from captfctl.model.meta import ObjectMeta
from captfctl.model.resources import JOBS, PODS, TERRAFORM_CLUSTER_IDENTITIES
from captfctl.model.terraform import JobPolicy, NameRef, VariablesSource
from tests.support.cluster_world import NAMESPACE, World, annotated, variables
from tests.support.doors import Overridden


def said(world: World) -> str:
    """The line of `Ready` about the health."""
    start = "* InfrastructureHealthy: "
    lines = world.condition("Ready").message.splitlines()
    (line,) = (line.removeprefix(start) for line in lines if line.startswith(start))
    return line


@pytest.fixture
def begun(world: World) -> World:
    """The Job of the first apply exists for a while, and nobody looked at it yet."""
    world.settle(2)
    world.advance(seconds=10)
    return world


@pytest.fixture
def failed(begun: World) -> World:
    """The first apply failed and was read; the next one is not due yet."""
    begun.runner.fail(begun.active_job())
    begun.settle(2)
    assert begun.running() == []
    return begun


def unread(*_, **__):
    raise AssertionError("pods are read")


def pending(world: World, status: PodStatus) -> Job:
    """The Job has a pod that does not run."""
    job = world.active_job()
    pod = world.runner.start(job)
    pod.status = status
    world.door.update(PODS, pod, subresource="status")
    return job


def waiting(reason: str, message: str = "") -> PodStatus:
    state = ContainerState(waiting=ContainerStateWaiting(reason=reason, message=message))
    status = ContainerStatus(name="source", image="registry.example.com/m:v1", state=state)
    return PodStatus(phase="Pending", container_statuses=[status])


def refuse(world: World) -> None:
    """The identity may not be used any more."""
    identity = world.door.get(TERRAFORM_CLUSTER_IDENTITIES, "cloud")
    identity.spec.allowed_namespaces = None
    world.door.update(TERRAFORM_CLUSTER_IDENTITIES, identity)


# While its Job is there.


def test_a_job_without_a_pod(begun: World):
    job = begun.active_job().metadata.name
    begun.run()
    assert said(begun) == f"the first apply has not begun: Job {job} has no pod yet"


def test_a_job_that_was_started_just_now_costs_no_look_at_its_pods(world: World):
    world.settle(2)
    job = world.active_job().metadata.name
    assert said(world) == f"the first apply is starting: Job {job}"
    world.run(world.env(Overridden(world.writes, list={"pods": unread})))
    assert said(world) == f"the first apply is starting: Job {job}"


def test_a_pod_that_runs(begun: World):
    job = begun.active_job()
    begun.runner.start(job)
    begun.run()
    assert said(begun) == f"the first apply is running: Job {job.metadata.name}"


def test_a_job_that_says_its_pod_is_ready_costs_no_look_at_it(begun: World):
    job = begun.active_job()
    begun.runner.start(job)
    live = begun.door.get(JOBS, job.metadata.name, NAMESPACE)
    live.status.ready = 1
    begun.door.update(JOBS, live, subresource="status")
    begun.run(begun.env(Overridden(begun.writes, list={"pods": unread})))
    assert said(begun) == f"the first apply is running: Job {job.metadata.name}"


@pytest.mark.parametrize("reason", ["ErrImagePull", "ImagePullBackOff", "InvalidImageName"])
def test_an_image_that_is_not_there(begun: World, reason: str):
    job = pending(begun, waiting(reason, "manifest unknown")).metadata.name
    begun.run()
    assert said(begun) == (
        f"the first apply has not begun: Job {job} cannot pull image registry.example.com/m:v1: "
        f"{reason}: manifest unknown"
    )


def test_a_pod_that_is_set_up(begun: World):
    job = pending(begun, waiting("ContainerCreating")).metadata.name
    begun.run()
    assert said(begun) == f"the first apply has not begun: Job {job} waits until its pod is set up"


def test_a_pod_that_lacks_something_to_mount(begun: World):
    job = pending(begun, waiting("CreateContainerConfigError", "secret x not found")).metadata.name
    begun.run()
    assert said(begun).endswith(f"Job {job} waits: CreateContainerConfigError: secret x not found")


def test_a_pod_without_a_node(begun: World):
    unscheduled = PodCondition(
        type="PodScheduled", status="False", reason="Unschedulable", message="0/3 nodes fit"
    )
    job = pending(begun, PodStatus(phase="Pending", conditions=[unscheduled])).metadata.name
    begun.run()
    assert said(begun) == f"the first apply has not begun: Job {job} has no node: 0/3 nodes fit"


def test_a_job_that_is_suspended(begun: World):
    job = begun.active_job()
    job.spec.suspend = True
    begun.door.update(JOBS, job)
    begun.run()
    assert said(begun) == f"the first apply has not begun: Job {job.metadata.name} is suspended"


def test_a_pause_does_not_hide_what_runs(begun: World):
    job = begun.active_job()
    begun.runner.start(job)
    begun.edit(annotated({keys.PAUSED: ""}))
    begun.settle(2)
    assert said(begun) == f"the first apply is running: Job {job.metadata.name}"


# While nothing runs.

NONE = "the first apply has not succeeded, and none is running: "


def test_after_a_failure(failed: World):
    assert said(failed) == f"{NONE}ApplyFailed, and it is tried again"


def test_after_a_failure_while_paused(failed: World):
    failed.edit(annotated({keys.PAUSED: ""}))
    failed.settle(2)
    assert said(failed) == f"{NONE}the object carries the annotation {keys.PAUSED}"


def test_after_a_failure_that_is_read_while_paused(begun: World):
    begun.edit(annotated({keys.PAUSED: ""}))
    begun.settle(2)
    begun.runner.fail(begun.active_job())
    begun.run()
    assert said(begun) == f"{NONE}the object carries the annotation {keys.PAUSED}"


def test_while_the_pause_of_the_cluster_lasts(failed: World):
    def pause(cluster):
        cluster.spec.paused = True

    failed.edit_cluster(pause)
    failed.settle(2)
    assert said(failed).startswith(f"{NONE}spec.paused of Cluster")


def test_while_it_waits_for_a_slot(failed: World):
    failed.settings = replace(failed.settings, max_active_jobs=1)
    other = failed.jobs()[0]
    labels = {**other.metadata.labels, keys.OWNER_NAME: "another"}
    other.metadata = ObjectMeta(name="captf-c-another-apply", namespace=NAMESPACE, labels=labels)
    other.status, other.spec.selector = JobStatus(), None
    other.spec.template.metadata.labels = dict(labels)
    failed.create(JOBS, other)
    failed.edit(variables('{"region":"eu-2"}'))
    failed.run()
    assert failed.reason("ApplyJobSucceeded") == "Unknown/WaitingForJobSlot"
    assert said(failed) == NONE + failed.condition("ApplyJobSucceeded").message


def test_while_its_identity_may_not_be_used(failed: World):
    refuse(failed)
    failed.edit(variables('{"region":"eu-2"}'))
    failed.run()
    assert said(failed) == f"{NONE}IdentityAllowed is False, NamespaceNotAllowed"


def test_while_a_dependency_is_missing(failed: World):
    source = VariablesSource(config_map_ref=NameRef(name="missing"))
    failed.edit(lambda obj: setattr(obj.spec, "variables_from", [source]))
    failed.run()
    assert said(failed) == f"{NONE}DependenciesReady is False, VariablesSourceNotFound"


def test_while_a_person_has_to_act(failed: World):
    def locked_for_ever(obj):
        obj.spec.jobs = JobPolicy(lock_timeout_seconds=600, active_deadline_seconds=600)

    failed.edit(locked_for_ever)
    failed.advance(minutes=10)
    failed.run()
    assert said(failed) == f"{NONE}JobPolicyInvalid, which waits for a person"


def test_while_its_outcome_is_unknown(begun: World):
    begun.runner.take_lock(begun.active_job())
    begun.runner.end(begun.active_job(), ok=False, result=None)
    begun.settle(2)
    assert begun.reason("StateReadable") == "False/ApplyOutcomeUnknown"
    assert said(begun) == f"{NONE}StateReadable is False, ApplyOutcomeUnknown"


def test_while_it_is_being_deleted(failed: World):
    failed.runner.write_state(failed.jobs()[0], {})
    failed.delete()
    failed.run()
    assert failed.job_ops() == ["apply", "destroy"]
    assert said(failed) == f"{NONE}the object is being deleted"


def test_a_pass_that_fails_to_start_the_next_one_says_so_too(begun: World):
    begun.runner.fail(begun.active_job())
    begun.edit(variables('{"region":"eu-2"}'))

    def refused(*_, **__):
        raise Forbidden("exceeded quota")

    with pytest.raises(Forbidden):
        begun.run(begun.env(Overridden(begun.writes, create={"jobs": refused})))
    assert said(begun) == f"{NONE}ApplyFailed, and it is tried again"


def test_before_the_first_apply_began(world: World):
    refuse(world)
    world.settle(2)
    assert said(world) == "WaitingForProvisioning"


def test_a_provisioned_object_says_nothing_of_a_first_apply(ready: World):
    ready.edit(variables('{"region":"eu-2"}'))
    ready.run()
    ready.runner.fail(ready.active_job())
    ready.settle(2)
    assert ready.reason("InfrastructureHealthy") == "True/Healthy"
