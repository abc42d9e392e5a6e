"""A pool that needs nothing costs one read, of its bootstrap Secret's metadata
(reconcile.md: Objects at rest)."""

from typing import Any

import pytest

from captfctl.cluster.errors import Forbidden, Unavailable
from captfctl.model import keys
from captfctl.model.resources import CLUSTERS, MACHINE_POOLS, SECRETS, TERRAFORM_CLUSTERS
from tests.reconcile.test_resting import requests
from tests.support.cluster_world import NAME, NAMESPACE
from tests.support.faults import HookedDoor
from tests.support.machine_world import MACHINE_OUTPUTS, POOL_NAME, POOL_OUTPUTS, PoolWorld

AT_REST = ["get secrets"]


@pytest.fixture
def resting() -> PoolWorld:
    """A pool whose last pass found nothing to do."""
    world = PoolWorld().populate()
    world.look_at_credentials()
    world.apply()
    world.look_at_credentials()
    world.settle(2)
    assert world.obj.status.settled is not None
    return world


def observed_serial(world: PoolWorld) -> None:
    """The cluster's pass saw a new state, whose Secrets the cache does not show yet."""
    status = {"status": {"observedStateSerial": 99}}
    world.door.patch(TERRAFORM_CLUSTERS, NAME, NAMESPACE, status, subresource="status")


CHANGES = {
    "bootstrap data": lambda world: world.rotate(b"other"),
    "the number of replicas": lambda world: world.edit_pool(
        lambda pool: setattr(pool.spec, "replicas", 5)
    ),
    "limits of an autoscaler": lambda world: world.edit_pool(
        lambda pool: pool.metadata.annotations.update(
            {keys.AUTOSCALER_MIN: "1", keys.AUTOSCALER_MAX: "3"}
        )
    ),
    "the deletion of its MachinePool": lambda world: (
        world.edit_pool(lambda pool: pool.metadata.finalizers.append("example.com/wait")),
        world.door.delete(MACHINE_POOLS, POOL_NAME, NAMESPACE),
    ),
    "a pause of its Cluster": lambda world: world.edit_cluster(
        lambda cluster: setattr(cluster.spec, "paused", True)
    ),
    "a cluster that is not provisioned any more": lambda world: world.door.patch(
        CLUSTERS, NAME, NAMESPACE, {"status": {"initialization": None}}, subresource="status"
    ),
    "what it inherits": lambda world: world.door.patch(
        TERRAFORM_CLUSTERS, NAME, NAMESPACE, {"spec": {"defaults": {"deletionProtection": True}}}
    ),
    "exports": lambda world: world.provision_again(
        MACHINE_OUTPUTS | {"exports": {"network_id": "net-9"}}
    ),
    "a state of its cluster that the cache does not show": observed_serial,
    "a cluster that another system manages": lambda world: world.door.patch(
        TERRAFORM_CLUSTERS,
        NAME,
        NAMESPACE,
        {"metadata": {"annotations": {keys.MANAGED_BY: "somebody"}}},
    ),
    "its own spec": lambda world: world.edit(
        lambda obj: setattr(obj.spec, "membership_refresh_interval_seconds", 600)
    ),
}


def test_a_pool_with_nothing_to_do_costs_one_read(resting: PoolWorld):
    assert requests(resting) == AT_REST


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_change_of_anything_that_a_pool_depends_on_is_looked_at(resting: PoolWorld, change: Any):
    change(resting)
    assert len(requests(resting)) > 1


def test_rotated_bootstrap_data_is_applied_at_the_next_pass(resting: PoolWorld):
    resting.rotate(b"other")
    resting.settle(1)
    assert resting.active_job().metadata.labels[keys.OP] == "apply"


def test_a_pool_whose_bootstrap_data_are_gone_says_so(resting: PoolWorld):
    resting.door.delete(SECRETS, f"{POOL_NAME}-bootstrap", NAMESPACE)
    resting.run()
    assert resting.reason("DependenciesReady") == "Unknown/WaitingForBootstrapData"


def test_a_pool_whose_bootstrap_data_cannot_be_looked_at_is_not_at_rest(resting: PoolWorld):
    assert len(requests(resting, Forbidden("not you"))) > 1


def test_members_are_looked_at_again_when_it_is_time(resting: PoolWorld):
    until = resting.obj.status.settled.until
    resting.clock.advance((until - resting.clock.now()).total_seconds())
    resting.settle(1)
    assert resting.active_job().metadata.labels[keys.OP] == "refresh"


def test_replicas_that_were_not_written_back_are_written_by_the_next_pass(resting: PoolWorld):
    limits = {keys.AUTOSCALER_MIN: "1", keys.AUTOSCALER_MAX: "9"}
    resting.edit_pool(lambda pool: pool.metadata.annotations.update(limits))
    resting.settle(1)
    resting.runner.succeed(resting.active_job(), POOL_OUTPUTS)
    resting.settle(3)
    assert requests(resting) == AT_REST

    resting.edit_pool(lambda pool: setattr(pool.spec, "replicas", 7))

    def refuse(method: str, resource: Any) -> None:
        if (method, resource.plural) == ("patch", "machinepools"):
            raise Unavailable("away")

    with pytest.raises(Unavailable):
        resting.run(resting.env(door=HookedDoor(resting.door, before=refuse)))
    resting.run()
    assert resting.pool.spec.replicas == resting.obj.status.replicas
