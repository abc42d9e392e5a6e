"""What a deletion would do to infrastructure, told beforehand
(deletion.md: Before a deletion)."""

from typing import Any

import pytest

from captfctl.model import keys
from captfctl.model.conditions import Type
from captfctl.model.meta import Condition
from captfctl.model.resources import (
    CLUSTERS,
    MACHINES,
    SECRETS,
    TERRAFORM_CLUSTERS,
    TERRAFORM_MACHINES,
)
from captfctl.model.terraform import ClusterDefaults, DeletionPolicy
from captfctl.reconcile.deletion_preview import Fate, Preview, preview_all
from tests.support.cluster_world import KEY, NAME, NAMESPACE, World, annotated
from tests.support.machine_world import MACHINE_NAME, MachineWorld
from tests.support.states import put_state

VPC = ("aws_vpc.main", "aws_subnet.a")


@pytest.fixture
def world() -> World:
    return World().populate()


def of_cluster(world: World) -> Preview:
    (found,) = preview_all(world.door, [(TERRAFORM_CLUSTERS, KEY)])
    return found


def setting(**spec: Any):
    def change(obj):
        for name, value in spec.items():
            setattr(obj.spec, name, value)

    return change


def test_what_is_in_the_state_is_destroyed(world: World):
    put_state(world.door, world.owner, 3, VPC)
    found = of_cluster(world)
    assert (found.fate, found.resources) == (Fate.DESTROYED, VPC)
    assert not found.unprotect


def test_with_retain_it_is_forgotten(world: World):
    put_state(world.door, world.owner, 3, VPC)
    world.edit(setting(deletion_policy=DeletionPolicy.RETAIN))
    found = of_cluster(world)
    assert (found.fate, found.resources) == (Fate.FORGOTTEN, VPC)


def test_what_somebody_else_manages_is_forgotten(world: World):
    put_state(world.door, world.owner, 3, VPC)
    world.edit(annotated({keys.MANAGED_BY: "x"}))
    assert of_cluster(world).fate is Fate.FORGOTTEN


def test_without_a_state_there_is_nothing_to_destroy(world: World):
    assert of_cluster(world).fate is Fate.NOTHING


def test_an_empty_state_is_nothing_to_destroy(world: World):
    put_state(world.door, world.owner, 1, ())
    assert of_cluster(world).fate is Fate.NOTHING


def test_a_state_that_an_earlier_object_kept_stays(world: World):
    put_state(world.door, world.owner, 3, VPC, retained_from="another")
    found = of_cluster(world)
    assert (found.fate, found.resources) == (Fate.NOTHING, ())
    assert "earlier object" in found.why


def test_a_lost_state_holds_the_deletion(world: World):
    world.apply()
    for secret in world.door.list(SECRETS, NAMESPACE, labels=keys.TFSTATE).items:
        world.door.patch(SECRETS, secret.metadata.name, NAMESPACE, {"metadata": {"finalizers": []}})
        world.door.delete(SECRETS, secret.metadata.name, NAMESPACE)
    found = of_cluster(world)
    assert (found.fate, found.resources) == (Fate.HELD, None)
    assert found.why.startswith("StateLost: ")
    world.edit(setting(deletion_policy=DeletionPolicy.RETAIN))
    assert (of_cluster(world).fate, of_cluster(world).resources) == (Fate.FORGOTTEN, None)


def test_a_state_that_is_not_the_one_that_was_left_holds_the_deletion(world: World):
    put_state(world.door, world.owner, 3, VPC)
    told = Condition(type=Type.STATE_READABLE, status="False", reason="StateReplaced", message="m")
    status = {"status": {"conditions": [{"type": told.type, "status": told.status}]}}
    status["status"]["conditions"][0] |= {
        "reason": told.reason,
        "message": told.message,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    world.door.patch(TERRAFORM_CLUSTERS, NAME, NAMESPACE, status, subresource="status")
    found = of_cluster(world)
    assert (found.fate, found.why) == (Fate.HELD, "StateReplaced: m")


def test_protection_is_told_with_the_command_that_takes_it_off(world: World):
    world.edit(setting(deletion_protection=True))
    assert of_cluster(world).unprotect.startswith("kubectl patch terraformclusters prod -n ")


def test_a_paused_object_is_told(world: World):
    world.edit(annotated({keys.PAUSED: ""}))
    assert of_cluster(world).paused


def test_what_does_not_exist_is_left_out(world: World):
    assert preview_all(world.door, [(TERRAFORM_CLUSTERS, (NAMESPACE, "other"))]) == []


@pytest.fixture
def machines() -> MachineWorld:
    world = MachineWorld().populate()
    put_state(world.door, world.owner, 2, ("aws_instance.vm",))
    return world


def test_a_cluster_takes_its_infrastructure_and_its_machines_along(machines: MachineWorld):
    for objects in ([(CLUSTERS, KEY)], [(TERRAFORM_MACHINES, machines.key), (CLUSTERS, KEY)]):
        found = preview_all(machines.door, objects)
        assert [(one.kind, one.name) for one in found] == [
            ("TerraformCluster", NAME),
            ("TerraformMachine", MACHINE_NAME),
        ]
        assert (found[1].fate, found[1].resources) == (Fate.DESTROYED, ("aws_instance.vm",))


def test_a_machine_takes_its_infrastructure_along(machines: MachineWorld):
    (found,) = preview_all(machines.door, [(MACHINES, (NAMESPACE, MACHINE_NAME))])
    assert (found.kind, found.fate) == ("TerraformMachine", Fate.DESTROYED)


def protect_by_default(world: World) -> None:
    cluster = world.door.get(TERRAFORM_CLUSTERS, NAME, NAMESPACE)
    cluster.spec.defaults = ClusterDefaults(
        deletion_protection=True, deletion_policy=DeletionPolicy.RETAIN
    )
    world.door.update(TERRAFORM_CLUSTERS, cluster)


def test_what_is_inherited_counts(machines: MachineWorld):
    protect_by_default(machines)
    (found,) = preview_all(machines.door, [(TERRAFORM_MACHINES, machines.key)])
    assert found.unprotect
    assert found.fate is Fate.FORGOTTEN


def test_inherited_protection_does_not_stop_what_goes_with_its_owner(machines: MachineWorld):
    protect_by_default(machines)
    assert not any(one.unprotect for one in preview_all(machines.door, [(CLUSTERS, KEY)]))
    machines.edit(setting(deletion_protection=True))
    assert [bool(one.unprotect) for one in preview_all(machines.door, [(CLUSTERS, KEY)])] == [
        False,
        True,
    ]
