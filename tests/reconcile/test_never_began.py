"""An apply that can have changed nothing asks nobody
(state.md: Applies that ended without telling)."""

from collections.abc import Callable

import pytest

from captfctl.cluster.errors import Unavailable
from captfctl.model import keys, names
from captfctl.model.core import Job
from captfctl.model.resources import JOBS, PODS, SECRETS
from tests.support.cluster_world import NAMESPACE, World
from tests.support.doors import Overridden


@pytest.fixture
def begun(world: World) -> World:
    """The first apply's Job was created and nothing of it has run."""
    world.settle(2)
    return world


def died_in_init(world: World, job: Job) -> None:
    """Its runner was killed; the pod exists, its container ran."""
    world.runner.start(job)
    world.runner.end(job, ok=False, result=None)


def pod_gone_in_init(world: World, job: Job) -> None:
    world.runner.start(job)
    world.runner.end(job, ok=False, result=None, pod=False)


def died_creating_the_empty_state(world: World, job: Job) -> None:
    """`init` locks a state that does not exist, to write an empty one."""
    world.runner.start(job)
    world.runner.lock(job, operation="init")
    world.runner.end(job, ok=False, result=None)


def died_planning(world: World, job: Job) -> None:
    world.runner.start(job)
    world.runner.lock(job, operation="OperationTypePlan")
    world.runner.end(job, ok=False, result=None)


def never_scheduled(world: World, job: Job) -> None:
    world.runner.end(job, ok=False, result=None, reason="DeadlineExceeded", pod=False)


def image_never_pulled(world: World, job: Job) -> None:
    pod = world.runner.wait_for_image(job, "ImagePullBackOff", "not found")
    delete(world, job)
    pod.status.phase = "Failed"  # as a kubelet leaves a pod that is deleted
    world.door.update(PODS, pod, subresource="status")


def deleted_at_once(world: World, job: Job) -> None:
    delete(world, job)


def deleted_in_init(world: World, job: Job) -> None:
    world.runner.start(job)
    delete(world, job)
    remove_pod(world, job)


def delete(world: World, job: Job) -> None:
    world.door.delete(JOBS, job.metadata.name, NAMESPACE)


def remove_pod(world: World, job: Job) -> None:
    """By force, with its finalizer."""
    name = f"{job.metadata.name}-x7k2p"
    world.door.patch(PODS, name, NAMESPACE, {"metadata": {"finalizers": None}})
    world.door.delete(PODS, name, NAMESPACE, grace_period_seconds=0)


ENDINGS = [
    died_in_init,
    pod_gone_in_init,
    died_creating_the_empty_state,
    died_planning,
    never_scheduled,
    image_never_pulled,
    deleted_at_once,
    deleted_in_init,
]
BY_NAME = {"ids": [ending.__name__ for ending in ENDINGS]}


def free_leases(world: World) -> None:
    """Of a Job that vanished: nobody has given its lease back. And of a failure: its backoff."""
    world.advance(seconds=90)


@pytest.mark.parametrize("ending", ENDINGS, **BY_NAME)
def test_a_first_apply_that_changed_nothing_is_tried_again(
    begun: World, ending: Callable[[World, Job], None]
):
    ending(begun, begun.active_job())
    begun.settle(2)
    free_leases(begun)
    begun.settle(3)
    assert begun.reason("StateReadable") == "Unknown/StateNotFound"
    assert "StateLost" not in begun.events.warnings()
    begun.runner.succeed(begun.active_job())
    begun.settle(2)
    assert begun.reason("Ready") == "True/Ready"


@pytest.mark.parametrize("ending", ENDINGS, **BY_NAME)
def test_its_deletion_needs_no_word_of_anybody(begun: World, ending: Callable[[World, Job], None]):
    ending(begun, begun.active_job())
    begun.delete()
    begun.settle(2)
    free_leases(begun)
    begun.settle(2)
    assert begun.gone


def test_an_apply_that_died_with_the_lock_of_an_apply_is_unknown(begun: World):
    job = begun.active_job()
    begun.runner.lock(job)
    begun.runner.end(job, ok=False, result=None)
    begun.settle(2)
    assert begun.reason("StateReadable") == "False/ApplyOutcomeUnknown"


def test_a_pod_that_outlives_its_job_is_waited_for_before_anything_is_concluded(begun: World):
    job = begun.active_job()
    pod = begun.runner.start(job)
    delete(begun, job)
    assert begun.settle(2).requeue_after == 5
    assert begun.obj.status.active_job is not None
    begun.runner.take_lock(job)  # it went on
    pod = begun.door.get(PODS, pod.metadata.name, NAMESPACE)
    pod.status.phase = "Failed"
    begun.door.update(PODS, pod, subresource="status")
    begun.settle(2)
    assert begun.reason("StateReadable") == "False/ApplyOutcomeUnknown"


def test_proof_that_comes_later_settles_what_was_asked(begun: World):
    """The lock could not be read when the run was."""
    job = begun.active_job()
    begun.runner.end(job, ok=False, result=None, pod=False)

    def broken(_, name, *__):
        if name == names.state_lock(begun.owner.suffix):
            raise Unavailable("no answer")
        return begun.writes.get(_, name, *__)

    with pytest.raises(Unavailable):
        begun.run(begun.env(Overridden(begun.writes, get={"leases": broken})))
    record = names.attempt_record("TerraformCluster", begun.key[1])
    secret = begun.secret(record)
    assert secret is not None
    assert secret.metadata.annotations[keys.INTERRUPTED_APPLY] == job.metadata.name
    begun.run()
    assert begun.reason("StateReadable") == "Unknown/StateNotFound"


def test_a_lock_left_on_no_state_is_removed_before_the_next_job(begun: World):
    """Terraform can neither initialize nor unlock a state that does not exist and is locked."""
    died_creating_the_empty_state(begun, begun.active_job())
    begun.settle(2)
    begun.advance(seconds=61)
    begun.settle(2)
    job = begun.active_job()
    assert "--force-unlock" not in " ".join(job.spec.template.spec.containers[0].args)
    assert job.metadata.annotations[keys.STATE_LOCK_VERSION] == "none"
    assert begun.events.reasons.count("ForceUnlocked") == 1


def test_a_lock_of_a_living_pod_or_of_somebody_else_is_never_removed(begun: World):
    job = begun.active_job()
    begun.runner.lock(job, who="ann@laptop", operation="init")
    begun.runner.fail(job, "init")
    begun.settle(2)
    begun.advance(seconds=61)
    begun.settle(2)
    assert begun.active_job().metadata.annotations[keys.STATE_LOCK_VERSION] != "none"
    assert "ForceUnlocked" not in begun.events.reasons


def test_a_job_that_vanished_before_its_record_was_written_cannot_have_run(begun: World):
    """Its pod waits for a Secret that is made after the record."""
    job = begun.active_job()
    record = names.attempt_record("TerraformCluster", begun.key[1])
    begun.door.patch(
        SECRETS, record, NAMESPACE, {"metadata": {"annotations": {keys.JOB: "an-earlier-one"}}}
    )
    begun.runner.take_lock(job)  # somebody else's
    delete(begun, job)
    begun.settle(2)
    begun.advance(seconds=61)
    begun.settle(2)
    assert begun.reason("StateReadable") == "Unknown/StateNotFound"
    assert begun.job_ops() == ["apply"]
