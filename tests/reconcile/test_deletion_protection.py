"""Deletions that got through although the object is protected
(deletion.md: A deletion that is held by protection)."""

from typing import Any

import pytest

from captfctl.model import keys
from captfctl.model.resource import Resource
from captfctl.model.resources import MACHINE_POOLS, MACHINES, TERRAFORM_CLUSTERS
from captfctl.model.terraform import ClusterDefaults, DeletionPolicy
from tests.support.cluster_world import NAME, NAMESPACE, World
from tests.support.machine_world import MachineWorld, PoolWorld, WorkerWorld

HELD = "True/DeletionProtected"


def protect(value: bool | None):
    def change(obj):
        obj.spec.deletion_protection = value

    return change


def protect_by_default(world: World) -> None:
    cluster = world.door.get(TERRAFORM_CLUSTERS, NAME, NAMESPACE)
    cluster.spec.defaults = ClusterDefaults(deletion_protection=True)
    world.door.update(TERRAFORM_CLUSTERS, cluster)


def ops(world: World) -> list[str]:
    return [job.metadata.labels[keys.OP] for job in world.running()]


def test_a_protected_cluster_waits_and_goes_on_as_soon_as_it_is_not(ready: World):
    ready.edit(protect(True))
    ready.delete()
    ready.settle(3)
    assert ready.reason("Deleting") == HELD
    assert "kubectl patch terraformclusters prod -n " in ready.condition("Deleting").message
    assert ready.running() == []
    assert ready.events.reasons.count("DeletionProtected") == 1
    assert "DeletionProtected" in ready.events.warnings()
    assert ready.events.reasons.count("DeletionStarted") == 1

    ready.edit(protect(False))
    ready.run()
    assert ready.reason("Deleting") == "True/Deleting"
    assert ops(ready) == ["destroy"]


def test_protection_also_holds_a_retain(ready: World):
    def keep(obj):
        obj.spec.deletion_policy, obj.spec.deletion_protection = DeletionPolicy.RETAIN, True

    ready.edit(keep)
    ready.delete()
    ready.settle(2)
    assert ready.reason("Deleting") == HELD
    ready.edit(protect(None))
    ready.run()
    assert ready.gone


def test_protection_set_while_deleting_stops_the_next_destroy_not_the_running_one(ready: World):
    ready.delete()
    ready.run()
    ready.edit(protect(True))
    ready.run()
    assert ops(ready) == ["destroy"]
    ready.runner.fail(ready.running()[0])
    ready.advance(hours=1)
    ready.settle(3)
    assert ready.reason("Deleting") == HELD
    assert ready.running() == []


def test_a_destroy_that_succeeded_is_final(ready: World):
    ready.delete()
    ready.run()
    ready.runner.succeed(ready.running()[0])
    ready.edit(protect(True))
    ready.run()
    assert ready.gone


def test_a_protected_object_that_never_applied_is_held_as_well(world: World):
    world.run()
    world.edit(protect(True))
    world.delete()
    world.settle(2)
    assert world.reason("Deleting") == HELD
    world.edit(protect(False))
    world.run()
    assert world.gone


def test_a_protected_object_without_an_owner_is_held_as_well(world: World):
    def orphan(obj):
        obj.metadata.owner_references, obj.spec.deletion_protection = [], True

    world.run()
    world.edit(orphan)
    world.delete()
    world.settle(2)
    assert world.reason("Deleting") == HELD


def test_a_cluster_is_not_protected_by_what_it_gives_to_its_machines(ready: World):
    protect_by_default(ready)
    ready.delete()
    ready.run()
    assert ops(ready) == ["destroy"]


@pytest.fixture(params=[MachineWorld, PoolWorld])
def worker(request) -> WorkerWorld:
    """A machine or pool after its first apply, in each test one after the other."""
    world: WorkerWorld = request.param().populate()
    world.apply()
    world.events.clear()
    return world


def owner(world: WorkerWorld) -> tuple[Resource[Any], str]:
    (reference,) = world.obj.metadata.owner_references
    return {"Machine": MACHINES, "MachinePool": MACHINE_POOLS}[reference.kind], reference.name


def delete_owner(world: WorkerWorld) -> None:
    """As Cluster API holds it: it stays until its infrastructure is gone."""
    resource, name = owner(world)
    held = {"metadata": {"finalizers": ["cluster.x-k8s.io/held"]}}
    world.door.patch(resource, name, NAMESPACE, held)
    world.door.delete(resource, name, NAMESPACE)


def test_inherited_protection_holds_the_deletion_that_a_person_asked_for(worker: WorkerWorld):
    protect_by_default(worker)
    worker.delete()
    worker.settle(2)
    assert worker.reason("Deleting") == HELD
    message = worker.condition("Deleting").message
    assert "inherited from the TerraformCluster" in message
    assert '-p \'{"spec":{"deletionProtection":false}}\'' in message
    worker.edit(protect(False))
    worker.run()
    assert ops(worker) == ["destroy"]


def test_inherited_protection_does_not_hold_what_cluster_api_deletes(worker: WorkerWorld):
    protect_by_default(worker)
    delete_owner(worker)
    worker.delete()
    worker.run()
    assert ops(worker) == ["destroy"]


def test_a_worker_s_own_protection_holds_what_cluster_api_deletes(worker: WorkerWorld):
    worker.edit(protect(True))
    delete_owner(worker)
    worker.delete()
    worker.settle(2)
    assert worker.reason("Deleting") == HELD


def test_inherited_protection_does_not_hold_a_what_outlived_its_owner(worker: WorkerWorld):
    protect_by_default(worker)
    resource, name = owner(worker)
    worker.door.delete(resource, name, NAMESPACE)
    worker.delete()
    worker.run()
    assert ops(worker) == ["destroy"]
