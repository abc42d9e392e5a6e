"""A first apply that does not get through: its retries replace what it left, and nothing else."""

import pytest

from captfctl.model import keys, names
from captfctl.model.core import Job
from captfctl.model.meta import ObjectMeta
from captfctl.model.resources import JOBS, SECRETS, TERRAFORM_CLUSTERS
from tests.support.cluster_world import NAMESPACE, World, variables
from tests.support.fake_runner import OUTPUTS


def guarded(job: Job) -> bool:
    (container,) = job.spec.template.spec.containers
    return "--guard-deletes" in container.args


def fail_half_way(world: World, kind: str = "step") -> None:
    world.runner.fail(world.active_job(), "apply", kind=kind, applied=True)


def retry(world: World) -> Job:
    """The apply that comes once the backoff is over."""
    world.run()
    world.advance(minutes=11)
    world.settle(2)
    job = world.active_job()
    assert job.metadata.labels[keys.OP] == "apply"
    return job


def first_apply(world: World) -> Job:
    world.settle(2)
    return world.active_job()


@pytest.mark.parametrize("kind", ["step", "interrupted"])
def test_the_retries_of_a_first_apply_are_not_guarded(world: World, kind: str):
    assert guarded(first_apply(world))
    for _ in range(3):
        fail_half_way(world, kind)
        assert not guarded(retry(world))
    world.runner.succeed(world.active_job())
    world.settle()

    assert world.reason("Ready") == "True/Ready"


def test_a_first_apply_whose_runner_was_killed_is_retried_without_the_guard(world: World):
    job = first_apply(world)
    world.runner.write_state(job, {})
    world.runner.end(job, ok=False, result=None)
    world.run()
    assert "will stop at" not in world.condition("ApplyJobSucceeded").message
    assert not guarded(retry(world))


def test_other_inputs_than_the_first_ones_replace_what_those_left(world: World):
    first_apply(world)
    fail_half_way(world)
    world.run()
    world.edit(variables('{"region":"eu-2"}'))
    world.run()
    assert not guarded(world.active_job())


def test_after_its_first_success_every_apply_is_guarded(ready: World):
    ready.edit(variables('{"region":"eu-2"}'))
    ready.run()
    assert guarded(ready.active_job())
    fail_half_way(ready)
    assert guarded(retry(ready))


def test_under_manual_a_first_apply_is_retried_unasked_and_a_later_one_is_not(world: World):
    world.edit(lambda obj: setattr(obj.spec, "apply_policy", "Manual"))
    first_apply(world)
    fail_half_way(world)
    world.runner.succeed(retry(world))
    world.settle()
    assert world.reason("Ready") == "True/Ready"
    world.edit(variables('{"region":"eu-2"}'))
    world.settle(2)
    assert world.active_job().metadata.labels[keys.OP] == "plan"


def test_a_block_from_before_does_not_hold_the_retry_back(world: World):
    first_apply(world)
    fail_half_way(world)
    job = retry(world)
    world.runner.fail(job, "plan", kind="blocked")
    world.settle(2)
    assert not guarded(world.active_job())


def test_a_state_that_was_there_before_the_first_apply_is_guarded_for_good(world: World):
    """As a person leaves it who imports what exists already."""
    job = first_apply(world)
    world.runner.write_state(job, OUTPUTS)
    begin_again(world, job)
    world.settle(2)
    assert guarded(world.active_job())
    fail_half_way(world)
    assert guarded(retry(world))


def begin_again(world: World, job: Job) -> None:
    """Only the state is left of what was."""
    nothing_runs = {"status": {"activeJob": None}}
    world.door.patch(
        TERRAFORM_CLUSTERS, world.key[1], NAMESPACE, nothing_runs, subresource="status"
    )
    record = names.attempt_record("TerraformCluster", world.key[1])
    world.door.patch(SECRETS, record, NAMESPACE, {"metadata": {"finalizers": None}})
    world.door.delete(SECRETS, record, NAMESPACE)
    world.door.delete(JOBS, job.metadata.name, NAMESPACE)
    world.advance(minutes=2)


def test_a_state_that_was_adopted_is_guarded(world: World):
    first_apply(world)
    fail_half_way(world)
    world.run()
    label = {"metadata": {"labels": {keys.RETAINED_FROM_UID: "an-earlier-object"}}}
    for name in (names.state_secret(world.owner.suffix), attempt(world).name):
        world.door.patch(SECRETS, name, NAMESPACE, label)
    world.edit(lambda obj: setattr(obj.spec, "adopt_retained_state", True))
    assert guarded(retry(world))
    assert keys.FIRST_APPLY not in attempt(world).annotations


def test_a_state_that_was_restored_is_guarded(world: World):
    first_apply(world)
    fail_half_way(world)
    world.run()
    marks = {"metadata": {"annotations": {keys.APPLIED: "true"}}}
    world.door.patch(SECRETS, attempt(world).name, NAMESPACE, marks)
    assert guarded(retry(world))


def test_a_success_ends_what_the_first_apply_may_do(world: World):
    first_apply(world)
    assert attempt(world).annotations[keys.FIRST_APPLY] == "true"
    world.runner.succeed(world.active_job())
    world.settle()
    assert keys.FIRST_APPLY not in attempt(world).annotations


def attempt(world: World) -> ObjectMeta:
    secret = world.secret(names.attempt_record("TerraformCluster", world.key[1]))
    assert secret is not None
    return secret.metadata
