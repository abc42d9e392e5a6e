"""Changed exports of a cluster in its pools (plans.md: Changed exports of a pool)."""

import json
from typing import Any

import pytest

from captfctl.model import keys, names
from captfctl.model.core import Job
from captfctl.model.kinds import CLUSTER
from captfctl.model.plan import PlanReason
from captfctl.model.resources import JOBS, SECRETS, TERRAFORM_CLUSTERS
from captfctl.reconcile.passes import reconcile
from tests.support.cluster_world import KEY, NAME, NAMESPACE
from tests.support.fake_runner import OUTPUTS
from tests.support.machine_world import POOL_NAME, POOL_OUTPUTS, PoolWorld
from tests.support.planning import approve, block, live, phases, plans, the_plan

OLD, NEW, NEWER = ({"network_id": f"net-{number}"} for number in (1, 2, 3))


@pytest.fixture
def world() -> PoolWorld:
    """An applied pool."""
    pool = PoolWorld().populate()
    pool.apply()
    pool.advance(seconds=5)
    pool.events.clear()
    return pool


def export(world: PoolWorld, exports: dict[str, str]) -> None:
    """The cluster is applied again, and its module exports something else."""
    serial = len(world.jobs())
    change = {"spec": {"variables": {"change": f"{serial}"}}}
    world.door.patch(TERRAFORM_CLUSTERS, NAME, NAMESPACE, change)
    reconcile(CLUSTER, KEY, world.env())
    job = next(j for j in world.running() if j.metadata.labels[keys.OWNER_KIND] == CLUSTER.name)
    world.runner.succeed(job, OUTPUTS | {"exports": exports})
    for _ in range(2):
        reconcile(CLUSTER, KEY, world.env())


def rendered(world: PoolWorld) -> Any:
    record = world.secret(names.attempt_record(world.kind.name, POOL_NAME))
    assert record is not None
    return json.loads(record.data["terraform.tfvars.json"])["captf_cluster_outputs"]


def arguments(job: Job) -> list[str]:
    (container,) = job.spec.template.spec.containers
    return container.args


def applying(world: PoolWorld) -> Job:
    """The apply that runs now, after a pass."""
    world.settle(1)
    job = world.active_job()
    assert job.metadata.labels[keys.OP] == "apply"
    return job


def succeed(world: PoolWorld, job: Job) -> None:
    world.runner.succeed(job, POOL_OUTPUTS)
    world.settle(2)
    world.advance(seconds=5)


@pytest.fixture
def held(world: PoolWorld) -> PoolWorld:
    """The exports changed, and applying them would replace members."""
    export(world, NEW)
    block(world, applying(world))
    world.settle(2)
    world.advance(seconds=5)
    return world


def test_exports_that_replace_nothing_are_applied(world: PoolWorld):
    export(world, NEW)
    job = applying(world)
    assert "--guard-deletes" in arguments(job)
    approval = job.metadata.annotations[keys.APPROVAL_HASH]
    assert f"--inputs-hash={approval}" in arguments(job)
    assert rendered(world) == NEW
    succeed(world, job)
    assert plans(world) == []
    assert world.reason("InputsApplied") == "True/InputsApplied"
    world.rotate(b"other")
    assert "--guard-deletes" not in arguments(applying(world))


def test_what_would_replace_members_waits(held: PoolWorld):
    plan = live(held)
    job = next(j for j in held.jobs() if keys.CLUSTER_OUTPUTS_HASH in j.metadata.annotations)
    assert plan.spec.reason is PlanReason.EXPORTS_CHANGE
    assert plan.spec.inputs_hash == job.metadata.annotations[keys.APPROVAL_HASH]
    assert plan.spec.inputs_hash != job.metadata.annotations[keys.INPUTS_HASH]
    assert held.running() == []
    assert held.obj.status.pending_plan_ref.name == plan.metadata.name
    assert held.reason("ApplyJobSucceeded") == "False/DestructivePlanBlocked"
    assert held.reason("Ready") == "False/NotReady"
    assert held.reason("InputsApplied") == "False/AwaitingApproval"
    assert plan.metadata.name in held.condition("InputsApplied").message


def test_other_bootstrap_data_is_applied_meanwhile_with_the_applied_exports(held: PoolWorld):
    plan = live(held)
    held.rotate(b"other")
    job = applying(held)
    assert rendered(held) == OLD
    assert "--guard-deletes" not in arguments(job)
    assert keys.CLUSTER_OUTPUTS_HASH not in job.metadata.annotations
    succeed(held, job)
    assert live(held).metadata.name == plan.metadata.name
    assert held.reason("ApplyJobSucceeded") == "False/DestructivePlanBlocked"
    message = held.condition("ApplyJobSucceeded").message
    assert message.endswith(f"captfctl approve {plan.metadata.name} -n {NAMESPACE}")
    assert held.reason("Ready") == "False/NotReady"
    held.advance(seconds=67)
    held.settle(1)
    assert held.active_job().metadata.labels[keys.OP] == "refresh"
    assert held.reason("ApplyJobSucceeded") == "False/DestructivePlanBlocked"


def test_an_approval_holds_over_other_bootstrap_data(held: PoolWorld):
    plan = live(held)
    held.rotate(b"other")
    succeed(held, applying(held))
    held.rotate(b"yet another")
    approve(held)
    job = applying(held)
    assert rendered(held) == NEW
    assert f"--allow-deletes-hash={plan.spec.inputs_hash}" in arguments(job)
    assert f"--inputs-hash={plan.spec.inputs_hash}" in arguments(job)
    assert not any(argument.startswith("--expect-plan") for argument in arguments(job))
    assert job.metadata.annotations[keys.PLAN] == plan.metadata.name
    succeed(held, job)
    assert phases(held) == ["Applied"]
    assert held.reason("ApplyJobSucceeded") == "True/ApplySucceeded"
    assert held.reason("Ready") == "True/Ready"
    assert held.reason("InputsApplied") == "True/InputsApplied"


def test_another_change_meanwhile_is_guarded_with_a_plan_of_its_own(held: PoolWorld):
    first = live(held)
    held.edit_pool(lambda pool: setattr(pool.spec, "replicas", 5))
    job = applying(held)
    assert (rendered(held), "--guard-deletes" in arguments(job)) == (NEW, True)
    assert phases(held) == ["Superseded"]
    block(held, job)
    held.settle(2)
    second = live(held)
    assert second.spec.inputs_hash != first.spec.inputs_hash
    held.rotate(b"other")
    applying(held)
    assert rendered(held) == OLD


def test_exports_that_return_are_no_change(held: PoolWorld):
    export(held, OLD)
    held.settle(2)
    assert held.running() == []
    assert phases(held) == ["Superseded"]
    assert held.reason("ApplyJobSucceeded") == "True/ApplySucceeded"
    assert held.reason("InputsApplied") == "True/InputsApplied"
    assert held.reason("Ready") == "True/Ready"


def test_exports_that_move_on_are_guarded_again(held: PoolWorld):
    export(held, NEWER)
    job = applying(held)
    assert (rendered(held), "--guard-deletes" in arguments(job)) == (NEWER, True)
    assert phases(held) == ["Superseded"]


def test_after_a_part_of_it_may_be_applied_every_apply_is_guarded(world: PoolWorld):
    export(world, NEW)
    world.runner.fail(applying(world))
    world.settle(1)
    record = world.secret(names.attempt_record(world.kind.name, POOL_NAME))
    assert record is not None
    assert record.metadata.annotations[keys.PARTIAL_CLUSTER_OUTPUTS].startswith("captf-mp-")
    export(world, OLD)  # not even that is what is there
    world.advance(seconds=61)
    job = applying(world)
    assert (rendered(world), "--guard-deletes" in arguments(job)) == (OLD, True)
    block(world, job)
    world.rotate(b"other")
    world.settle(3)
    assert world.running() == []  # nothing can be held: it is not known what is applied
    approve(world)
    succeed(world, applying(world))
    record = world.secret(names.attempt_record(world.kind.name, POOL_NAME))
    assert record is not None
    assert keys.PARTIAL_CLUSTER_OUTPUTS not in record.metadata.annotations
    world.rotate(b"yet another")
    assert "--guard-deletes" not in arguments(applying(world))


def test_a_guarded_apply_that_vanished_may_have_applied_a_part(world: PoolWorld):
    export(world, NEW)
    job = applying(world)
    world.runner.start(job)
    world.runner.lock(job)
    world.runner.lock(job, held=False)
    world.runner.forget_pod(job)
    world.door.delete(JOBS, job.metadata.name, NAMESPACE)
    world.settle(3)
    record = world.secret(names.attempt_record(world.kind.name, POOL_NAME))
    assert record is not None
    assert record.metadata.annotations[keys.PARTIAL_CLUSTER_OUTPUTS] == job.metadata.name
    assert "--guard-deletes" in arguments(applying(world))


def test_a_guarded_apply_that_failed_before_it_applied_is_held_when_it_blocks(world: PoolWorld):
    export(world, NEW)
    world.runner.fail(applying(world), "plan")
    world.settle(1)
    world.advance(seconds=61)
    block(world, applying(world))
    world.settle(2)
    world.rotate(b"other")
    applying(world)
    assert rendered(world) == OLD


def test_without_a_record_of_what_was_applied_every_change_is_guarded(world: PoolWorld):
    name = names.applied_record(world.kind.name, POOL_NAME)
    finalizers = {"metadata": {"finalizers": None}}
    world.door.patch(SECRETS, name, NAMESPACE, finalizers)
    world.door.delete(SECRETS, name, NAMESPACE)
    world.settle(2)
    assert world.running() == []  # the inputs are the applied ones, and so are the exports
    world.rotate(b"other")
    job = applying(world)
    assert "--guard-deletes" in arguments(job)
    block(world, job)
    world.settle(2)
    world.rotate(b"yet another")
    world.settle(2)
    assert world.running() == []
    approve(world)
    succeed(world, applying(world))
    world.rotate(b"again")
    assert "--guard-deletes" not in arguments(applying(world))


def test_a_retry_of_the_first_apply_is_not_guarded(world: PoolWorld):
    fresh = PoolWorld().populate()
    fresh.settle(2)
    fresh.runner.fail(fresh.active_job(), applied=True)
    fresh.settle(1)
    export(fresh, NEW)
    fresh.advance(seconds=61)
    assert "--guard-deletes" not in arguments(applying(fresh))


def test_failures_are_counted_by_what_an_approval_is_bound_to(held: PoolWorld):
    approve(held)
    for number in range(3):
        held.runner.fail(applying(held))
        held.rotate(f"rotation-{number}".encode())
        held.settle(1)
        held.advance(minutes=11)
    held.runner.fail(applying(held))
    held.rotate(b"rotated")
    assert held.run().requeue_after > 500
    assert the_plan(held).status.phase == "Approved"


def test_a_deleting_pool_holds_and_applies_nothing(held: PoolWorld):
    held.delete()
    held.settle(1)
    assert held.active_job().metadata.labels[keys.OP] == "destroy"
    assert [plan.live for plan in plans(held)] == [True]
