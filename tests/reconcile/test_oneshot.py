"""What a pass would decide, without a Job (reconcile.md: Dry run)."""

import pytest

from captfctl.cluster.errors import NotFound
from captfctl.decide import Action
from captfctl.decide.constants import UNSTARTED_JOB_REQUEUE
from captfctl.model import keys, names
from captfctl.model.core import Namespace
from captfctl.model.kinds import CLUSTER
from captfctl.model.meta import ObjectMeta
from captfctl.model.ops import Op
from captfctl.model.resources import JOBS, NAMESPACES, SECRETS, TERRAFORM_CLUSTERS
from captfctl.reconcile.oneshot import evaluate
from tests.support.cluster_world import KEY, NAMESPACE, World, terraform_cluster, variables


def decision(world: World):
    return evaluate(world.door, CLUSTER, KEY, world.clock, world.settings)


def test_a_described_object_without_an_owner_reference_is_adopted_and_would_apply():
    world = World().populate()
    world.delete()
    world.create(TERRAFORM_CLUSTERS, terraform_cluster())
    found = decision(world)
    assert (found.action, found.op, found.reason) == (Action.JOB, Op.APPLY, "NoState")
    assert found.job.startswith("captf-c-prod-apply-a1-")
    assert found.waiting == ""
    assert world.door.list(JOBS, NAMESPACE).items == []


def test_an_object_without_anything_it_belongs_to_waits_for_its_owner():
    world = World()
    world.create(NAMESPACES, Namespace(metadata=ObjectMeta(name=NAMESPACE)))
    world.create(TERRAFORM_CLUSTERS, terraform_cluster())
    found = decision(world)
    assert (found.action, found.op, found.reason) == (Action.NONE, None, "WaitingForOwner")
    assert found.requeue_after == 30


def test_missing_credentials_are_what_a_due_apply_waits_for(world: World):
    world.door.delete(SECRETS, "cloud", "captf-system")
    found = decision(world)
    assert (found.action, found.op) == (Action.JOB, Op.APPLY)
    assert found.waiting.startswith("IdentityAllowed: SecretNotFound: ")
    assert found.requeue_after == 30
    assert found.job == ""


def test_an_applied_object_is_up_to_date_and_tells_its_next_check(ready: World):
    found = decision(ready)
    assert (found.action, found.reason) == (Action.NONE, "UpToDate")
    assert 1800 <= found.requeue_after < 1980


def test_a_changed_variable_would_be_applied(ready: World):
    ready.edit(variables('{"region":"eu-2"}'))
    found = decision(ready)
    assert (found.op, found.reason) == (Op.APPLY, "InputsChanged")
    assert ready.running() == []


def test_a_running_job_is_named(world: World):
    world.settle(2)
    found = decision(world)
    assert (found.action, found.reason) == (Action.NONE, "JobActive")
    assert found.job == world.active_job().metadata.name
    assert found.requeue_after == UNSTARTED_JOB_REQUEUE.total_seconds()


def test_a_paused_object_says_so(world: World):
    world.edit_cluster(lambda owner: setattr(owner.spec, "paused", True))
    found = decision(world)
    assert (found.action, found.reason) == (Action.NONE, "Paused")


def test_a_deleting_object_would_be_destroyed(ready: World):
    ready.delete()
    found = decision(ready)
    assert (found.action, found.op, found.reason) == (Action.JOB, Op.DESTROY, "Deleting")


def test_a_deleting_object_without_state_would_be_let_go(world: World):
    world.run()
    world.delete()
    found = decision(world)
    assert found.action is Action.DROP_FINALIZER


def test_a_deleting_object_whose_state_has_no_resources_would_be_let_go(world: World):
    world.settle(2)
    job = world.active_job()
    world.runner.write_state(job, {}, resources=0)
    world.runner.fail(job, "validate")
    world.settle(2)
    world.delete()
    found = decision(world)
    assert (found.action, found.reason) == (Action.DROP_FINALIZER, "DeletingWithoutResources")
    assert not world.gone


def test_a_lost_state_is_the_reason_of_nothing(ready: World):
    name = names.state_secret(ready.owner.suffix)
    ready.door.patch(SECRETS, name, NAMESPACE, {"metadata": {"finalizers": None}})
    ready.door.delete(SECRETS, name, NAMESPACE)
    found = decision(ready)
    assert (found.action, found.reason, found.requeue_after) == (Action.NONE, "StateLost", 60)


def test_equal_objects_give_equal_evaluations(ready: World):
    assert decision(ready) == decision(ready)


def test_an_object_that_is_not_there_is_an_error():
    with pytest.raises(NotFound):
        evaluate(World().door, CLUSTER, KEY, World().clock, World().settings)


def test_the_conditions_are_those_that_the_pass_would_set(world: World):
    found = {c.type: c.reason for c in decision(world).conditions}
    assert found["DependenciesReady"] == "DependenciesReady"
    assert found["StateReadable"] == "StateNotFound"
    assert keys.BLOCK_MOVE not in world.obj.metadata.annotations
