"""What `captfctl restore` and `captfctl delete` ask of a server (docs/permissions.md: People)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from captfctl.cluster.door import Door
from captfctl.model.resource import Resource
from captfctl.model.resources import (
    CLUSTERS,
    LEASES,
    MACHINE_POOLS,
    MACHINES,
    PODS,
    SECRETS,
    TERRAFORM_CLUSTERS,
    TERRAFORM_MACHINE_POOLS,
    TERRAFORM_MACHINES,
)
from captfctl.reconcile.deletion_preview import preview_all
from captfctl.reconcile.restore_list import list_backups
from captfctl.reconcile.restore_request import Wish, check
from captfctl.reconcile.restore_situation import Situation
from captfctl.terraform.state.lock import LockHolder
from tests.reconcile.test_restore import lose_state
from tests.support.cluster_world import KEY, World
from tests.support.faults import HookedDoor
from tests.support.machine_world import MachineWorld

DOCUMENT = (Path(__file__).parents[2] / "docs" / "permissions.md").read_text()
BOTH = {
    *(("get", kind) for kind in (SECRETS, LEASES, PODS, TERRAFORM_CLUSTERS)),
    *(("get", kind) for kind in (CLUSTERS, MACHINES, MACHINE_POOLS)),
    ("list", SECRETS),
}
OF_A_CLUSTER = {
    *(("list", kind) for kind in (MACHINES, MACHINE_POOLS)),
    *(("list", kind) for kind in (TERRAFORM_MACHINES, TERRAFORM_MACHINE_POOLS)),
}


def asked_of(door: Door, act: Callable[[Any], object]) -> set[tuple[str, str]]:
    """Verb and resource of every request."""
    seen: set[tuple[str, str]] = set()
    act(HookedDoor(door, before=lambda verb, resource: seen.add((verb, resource.plural))))
    return seen


def plain(rights: set[tuple[str, Resource[Any]]]) -> set[tuple[str, str]]:
    return {(verb, resource.plural) for verb, resource in rights}


def locked(world: World) -> World:
    """By a run whose pod has to be asked for."""
    world.edit(lambda obj: setattr(obj.spec.source, "image", "registry.example.com/other:v1"))
    world.settle(1)
    job = world.active_job()
    world.runner.start(job)
    world.runner.lock(job)
    return world


@pytest.mark.parametrize("lost", [False, True], ids=["state there", "state lost"])
def test_a_restore_reads_what_the_document_says(ready: World, *, lost: bool):
    locked(ready)
    if lost:
        lose_state(ready)

    def read(door: Any) -> None:
        now = Situation(door, ready.kind, ready.key)
        list_backups(now)
        assert now.lock.holder is LockHolder.ALIVE
        if lost:
            check(now, Wish(serial=None))

    seen = asked_of(ready.door, read)
    assert seen <= plain(BOTH)
    assert {("get", "leases"), ("get", "pods"), ("list", "secrets")} <= seen


def test_a_preview_of_a_deletion_reads_what_the_document_says(ready: World):
    locked(ready)
    lose_state(ready)
    seen = asked_of(ready.door, lambda door: preview_all(door, [(TERRAFORM_CLUSTERS, KEY)]))
    assert seen <= plain(BOTH)


def test_a_preview_of_a_cluster_reads_what_the_document_says():
    world = MachineWorld().populate()
    world.settle(3)
    seen = asked_of(world.door, lambda door: preview_all(door, [(CLUSTERS, KEY)]))
    owned = {("get", TERRAFORM_MACHINES), ("get", TERRAFORM_MACHINE_POOLS)}
    assert seen <= plain(BOTH | OF_A_CLUSTER | owned)
    assert ("list", "terraformmachines") in seen


def test_the_document_names_these_rights():
    text = " ".join(DOCUMENT.split())
    assert "`get` and `list` of Secrets, `get` of Leases and of Pods" in text
    assert "`list` of Machines, MachinePools, TerraformMachines and TerraformMachinePools" in text
