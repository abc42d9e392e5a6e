"""Passes of a `TerraformMachinePool` (reconcile.md: Pools)."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from captfctl.model import keys, names
from captfctl.model.resources import SECRETS, TERRAFORM_MACHINE_POOLS
from tests.support.cluster_world import NAMESPACE
from tests.support.machine_world import POOL_NAME, POOL_OUTPUTS, PoolWorld


@pytest.fixture
def world() -> PoolWorld:
    return PoolWorld().populate()


@pytest.fixture
def ready(world: PoolWorld) -> PoolWorld:
    world.apply()
    world.events.clear()
    return world


def rendered(world: PoolWorld) -> dict[str, Any]:
    record = world.secret(names.attempt_record(world.kind.name, POOL_NAME))
    assert record is not None
    return json.loads(record.data["terraform.tfvars.json"])


def limits(low: str | None, high: str | None) -> Callable[[Any], None]:
    found = {keys.AUTOSCALER_MIN: low, keys.AUTOSCALER_MAX: high}
    wanted = {key: text for key, text in found.items() if text is not None}
    return lambda pool: pool.metadata.annotations.update(wanted)


def test_a_pool_is_given_replicas_labels_and_the_failure_domains_of_its_cluster(world: PoolWorld):
    world.settle(2)
    assert world.active_job().metadata.name.startswith("captf-mp-")
    given = rendered(world)
    assert given["machinepool_name"] == POOL_NAME
    assert given["replicas"] == 2
    assert given["node_labels"] == {"tier": "web"}
    assert given["cluster_failure_domains"] == ["zone-a"]
    assert given["captf_cluster_outputs"] == {"network_id": "net-1"}
    assert given["autoscaling"] == {"enabled": False, "min": 0, "max": 0}


def test_the_outputs_become_the_list_of_provider_ids_and_the_number_of_replicas(world: PoolWorld):
    world.apply()
    obj = world.obj
    assert obj.spec.provider_id == "cloud:///pools/p-1"
    assert obj.spec.provider_id_list == ["cloud:///zone-a/i-1", "cloud:///zone-a/i-2"]
    assert (obj.status.replicas, obj.status.ready) == (2, True)
    assert [i.provider_id for i in obj.status.instances] == ["cloud:///zone-a/i-1"]
    assert world.reason("Ready") == "True/Ready"
    assert world.reason("AutoscalingActive") == "False/AutoscalingDisabled"
    assert "AutoscalingActive" not in " ".join(world.events.warnings())


def test_a_change_of_replicas_is_applied(ready: PoolWorld):
    ready.edit_pool(lambda pool: setattr(pool.spec, "replicas", 5))
    ready.settle(1)
    assert ready.active_job().metadata.labels[keys.OP] == "apply"
    assert rendered(ready)["replicas"] == 5


def test_rotated_bootstrap_data_is_applied_and_its_failures_are_counted_together(ready: PoolWorld):
    for number in range(3):
        ready.rotate(f"rotation-{number}".encode())
        ready.advance(minutes=11)
        ready.settle(1)
        job = next(j for j in ready.running() if j.metadata.labels[keys.OP] == "apply")
        ready.runner.fail(job)
        ready.settle(1)
    assert ready.obj.status.conditions
    ready.rotate(b"rotation-3")
    assert ready.run().requeue_after > 500  # three failures in a row, whatever the data


def test_members_are_looked_at_every_minute_and_every_half_while_they_change(ready: PoolWorld):
    ready.advance(seconds=67)
    ready.settle(1)
    assert ready.active_job().metadata.labels[keys.OP] == "refresh"
    ready.runner.succeed(ready.active_job(), POOL_OUTPUTS | {"replicas": 3})
    ready.settle(1)
    ready.advance(seconds=34)
    ready.settle(1)
    assert ready.active_job().metadata.labels[keys.OP] == "refresh"
    assert ("refresh", "MembershipConverging") in ready.metrics.decisions


def test_an_empty_pool_has_no_list(ready: PoolWorld):
    ready.advance(seconds=67)
    ready.settle(1)
    outputs = POOL_OUTPUTS | {"provider_id_list": [], "replicas": 0, "instances": []}
    ready.runner.succeed(ready.active_job(), outputs)
    ready.settle(1)
    document = ready.door.get(TERRAFORM_MACHINE_POOLS.untyped(), POOL_NAME, NAMESPACE)
    assert "providerIDList" not in document["spec"]
    assert document["status"]["replicas"] == 0
    assert not ready.rules_of_now().converging


# The autoscaler.


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        ("1", None, "AutoscalingAnnotationsInvalid"),
        (None, "3", "AutoscalingAnnotationsInvalid"),
        ("x", "3", "AutoscalingAnnotationsInvalid"),
        ("", "3", "AutoscalingAnnotationsInvalid"),
        ("1_0", "30", "AutoscalingAnnotationsInvalid"),
        ("-1", "3", "AutoscalingAnnotationsInvalid"),
        ("5", "3", "AutoscalingAnnotationsInvalid"),
        ("1", str(2**31), "AutoscalingAnnotationsInvalid"),
        ("+1", "3", "ReplicasManagedByModule"),
        ("0", "0", "ReplicasManagedByModule"),
    ],
)
def test_the_limits_of_an_autoscaler_are_checked(world: PoolWorld, low, high, expected):
    world.edit_pool(limits(low, high))
    world.settle(2)
    assert world.condition("AutoscalingActive").reason == expected
    assert rendered(world)["autoscaling"]["enabled"] is (expected == "ReplicasManagedByModule")


def test_an_autoscaled_pool_tells_its_machine_pool_how_many_members_it_has(world: PoolWorld):
    world.edit_pool(limits("1", "5"))
    world.apply(POOL_OUTPUTS | {"replicas": 4})
    assert world.pool.spec.replicas == 4
    assert world.pool.metadata.annotations[keys.REPLICAS_MANAGED_BY] == "captf"
    assert "ReplicasWrittenBack" in world.events.reasons
    world.settle(2)
    assert world.running() == []  # what was observed is no new wish


def test_replicas_that_something_else_manages_are_left_alone(world: PoolWorld):
    world.edit_pool(limits("1", "5"))
    world.edit_pool(lambda p: p.metadata.annotations.update({keys.REPLICAS_MANAGED_BY: "other"}))
    world.apply(POOL_OUTPUTS | {"replicas": 4})
    assert world.pool.spec.replicas == 2
    assert world.condition("AutoscalingActive").reason == "ReplicasManagedExternally"


def test_the_claim_is_given_up_with_the_limits(world: PoolWorld):
    world.edit_pool(limits("1", "5"))
    world.apply()

    def unlimited(pool: Any) -> None:
        for key in (keys.AUTOSCALER_MIN, keys.AUTOSCALER_MAX):
            del pool.metadata.annotations[key]

    world.edit_pool(unlimited)
    world.settle(1)
    assert keys.REPLICAS_MANAGED_BY not in world.pool.metadata.annotations


# Drift and deletion.


def test_drift_checks_of_a_pool_cannot_be_switched_off(ready: PoolWorld):
    ready.advance(minutes=40)
    ready.settle(1)
    ready.runner.succeed(ready.active_job(), POOL_OUTPUTS)
    ready.settle(1)
    assert [job.metadata.labels[keys.OP] for job in ready.running()] == ["drift"]


def test_a_pool_is_destroyed_with_what_was_applied(ready: PoolWorld):
    ready.door.delete(SECRETS, f"{POOL_NAME}-bootstrap", NAMESPACE)
    ready.delete()
    ready.settle(2)
    assert [job.metadata.labels[keys.OP] for job in ready.running()] == ["destroy"]
    ready.runner.succeed(ready.active_job())
    ready.settle(1)
    assert ready.gone


def test_something_else_that_owns_the_pool_is_not_its_owner(world: PoolWorld):
    obj = world.obj
    obj.metadata.owner_references[0].kind = "Other"
    world.door.update(TERRAFORM_MACHINE_POOLS, obj)
    assert world.run().requeue_after == 30
    assert world.reason("DependenciesReady") == "False/WaitingForOwnerMachinePool"
