"""What a deletion would do to infrastructure, told beforehand
(deletion.md: Before a deletion)."""

import gzip
from typing import Any

import pytest

from captfctl.model import keys
from captfctl.model.conditions import Type
from captfctl.model.core import Job
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
from captfctl.terraform.state.records import mark_not_saved, record_interrupted
from runner import kept, wire
from tests.support.cluster_world import KEY, NAME, NAMESPACE, World, annotated
from tests.support.machine_world import MACHINE_NAME, MachineWorld
from tests.support.states import payload, put_state

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


# What no stored state tells of.


def keep_unsaved(world: World, addresses: tuple[str, ...], whole: bool = True) -> None:
    """What a run leaves that could not store its state."""
    owner = world.owner
    place = kept.Place(owner.namespace, owner.suffix, owner.backend_labels, None, "first-apply")
    text = gzip.decompress(payload(4, addresses))
    for document in kept.documents(text, place):
        world.door.create(SECRETS.untyped(), document, owner.namespace)
    if not whole:
        patch = {"data": {wire.KEPT_KEY: "bm90IGEgc3RhdGU="}}
        world.door.patch(SECRETS, wire.kept_secret(owner.suffix), owner.namespace, patch)


@pytest.mark.parametrize(
    "stored", [None, (), ("aws_vpc.main",)], ids=["no state", "an empty one", "an earlier one"]
)
def test_what_only_the_kept_state_of_a_run_has_is_destroyed(world: World, stored):
    if stored is not None:
        put_state(world.door, world.owner, 3, stored)
    keep_unsaved(world, VPC)
    found = of_cluster(world)
    assert (found.fate, found.resources) == (Fate.DESTROYED, VPC)
    assert "first-apply could not store its state" in found.why
    world.edit(setting(deletion_policy=DeletionPolicy.RETAIN))
    assert (of_cluster(world).fate, of_cluster(world).resources) == (Fate.FORGOTTEN, VPC)


def test_a_kept_state_that_cannot_be_read_has_resources_that_are_not_known(world: World):
    keep_unsaved(world, VPC, whole=False)
    assert (of_cluster(world).fate, of_cluster(world).resources) == (Fate.DESTROYED, None)


def test_a_kept_state_is_destroyed_also_where_the_stored_one_is_lost(world: World):
    world.apply()
    for secret in world.door.list(SECRETS, NAMESPACE, labels=keys.TFSTATE).items:
        world.door.patch(SECRETS, secret.metadata.name, NAMESPACE, {"metadata": {"finalizers": []}})
        world.door.delete(SECRETS, secret.metadata.name, NAMESPACE)
    keep_unsaved(world, VPC)
    assert (of_cluster(world).fate, of_cluster(world).resources) == (Fate.DESTROYED, VPC)


def test_a_state_that_is_neither_stored_nor_kept_holds_the_deletion(world: World):
    world.settle(2)
    mark_not_saved(world.door, world.owner, world.active_job().metadata.name)
    found = of_cluster(world)
    assert (found.fate, found.resources) == (Fate.HELD, None)
    assert found.why.startswith("UnsavedStateLost: ")


@pytest.mark.parametrize("stored", [False, True], ids=["no state", "an empty one"])
def test_what_a_running_job_creates_is_not_known(world: World, stored):
    world.settle(2)
    if stored:
        put_state(world.door, world.owner, 1, ())
    found = of_cluster(world)
    assert (found.fate, found.resources) == (Fate.DESTROYED, None)
    assert world.active_job().metadata.name in found.why


def test_what_an_unconfirmed_apply_created_is_not_known(world: World):
    job = begun(world)
    put_state(world.door, world.owner, 1, ())
    record_interrupted(world.door, world.owner, job.metadata.name)
    found = of_cluster(world)
    assert (found.fate, found.resources) == (Fate.DESTROYED, None)
    assert "ended without telling" in found.why


@pytest.mark.parametrize("who", ["", "me@laptop"], ids=["a pod of its own", "somebody else"])
def test_what_is_created_by_the_holder_of_the_lock_is_not_known(world: World, who: str):
    job = begun(world)
    world.runner.start(job)
    put_state(world.door, world.owner, 1, ())
    world.runner.lock(job, who=who)
    found = of_cluster(world)
    assert (found.fate, found.resources) == (Fate.DESTROYED, None)
    assert (who or job.metadata.name) in found.why


def begun(world: World) -> Job:
    """A first apply that runs, and that the status does not tell of (any more)."""
    world.settle(2)
    job = world.active_job()
    patch = {"status": {"activeJob": None}}
    world.door.patch(TERRAFORM_CLUSTERS, NAME, NAMESPACE, patch, subresource="status")
    return job


def test_of_a_clusters_machines_also_the_kept_states_are_told(machines: MachineWorld):
    keep_unsaved(machines, ("aws_instance.vm", "aws_eip.vm"))
    found = preview_all(machines.door, [(CLUSTERS, KEY)])
    assert (found[1].fate, found[1].resources) == (
        Fate.DESTROYED,
        ("aws_instance.vm", "aws_eip.vm"),
    )
