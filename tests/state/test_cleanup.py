"""Removing what runs left behind (deletion.md: Cleaning up)."""

from typing import Any

import pytest

from captfctl.cluster.errors import Unavailable
from captfctl.model import core, keys, names
from captfctl.model.meta import ObjectMeta
from captfctl.model.resources import LEASES, SECRETS
from captfctl.terraform.state.cleanup import (
    delete_leases,
    delete_lock,
    delete_plan_key,
    delete_records,
    delete_state,
)
from captfctl.terraform.state.plan_key import ensure_plan_key
from captfctl.terraform.state.records import RunInputs, write_applied, write_attempt
from tests.support.faults import HookedDoor
from tests.support.runs import FILES, IMAGE, NAMESPACE, World, fixed_bytes


def secrets(world: World) -> list[str]:
    return [secret.metadata.name for secret in world.door.list(SECRETS, NAMESPACE).items]


def add_backup(world: World, name: str) -> None:
    world.door.create(
        SECRETS,
        core.Secret(
            api_version="v1",
            kind="Secret",
            metadata=ObjectMeta(
                name=name,
                finalizers=[keys.STATE_PROTECTION],
                labels={
                    **world.owner.backend_labels,
                    keys.STATE_BACKUP: "true",
                    keys.STATE_BACKUP_SUFFIX: world.owner.suffix,
                },
            ),
        ),
        NAMESPACE,
    )


def add_lock(world: World) -> None:
    lease = core.Lease(
        api_version=LEASES.api_version,
        kind="Lease",
        metadata=ObjectMeta(
            name=names.state_lock(world.owner.suffix), labels=world.owner.backend_labels
        ),
    )
    world.door.create(LEASES, lease, NAMESPACE)


def with_state(world: World) -> None:
    world.add_state(chunks=2)
    base = names.state_secret(world.owner.suffix)
    protect = {"metadata": {"finalizers": [keys.STATE_PROTECTION]}}
    world.door.patch(SECRETS, base, NAMESPACE, protect)
    for serial in range(3):
        add_backup(world, f"captf-state-backup-{world.owner.suffix}-{serial}")
    add_lock(world)


def test_state_backups_and_lock_go_and_nothing_is_left_terminating():
    world = World()
    with_state(world)
    other = World.machine(world, "md-0")
    world.add_chunk("unrelated", b"x")
    unrelated = {"metadata": {"labels": {keys.TFSTATE_SUFFIX: other.suffix}}}
    world.door.patch(SECRETS, "unrelated", NAMESPACE, unrelated)
    delete_state(world.door, world.owner)
    assert secrets(world) == ["unrelated"]
    assert world.lease_names() == []
    delete_state(world.door, world.owner)


def test_state_that_is_terminating_already_is_let_go():
    world = World()
    with_state(world)
    for name in secrets(world):
        world.door.delete(SECRETS, name, NAMESPACE)
    assert secrets(world) != []
    delete_state(world.door, world.owner)
    assert secrets(world) == []


def test_cleanup_that_fails_half_way_is_finished_by_the_next_pass():
    world = World()
    with_state(world)
    deletes: list[str] = []

    def before(name: str, _: Any) -> None:
        if name == "delete":
            deletes.append(name)
            if len(deletes) == 4:
                raise Unavailable("no answer")

    with pytest.raises(Unavailable):
        delete_state(HookedDoor(world.door, before=before), world.owner)
    assert secrets(world) != []
    assert world.lease_names() != []
    delete_state(world.door, world.owner)
    assert secrets(world) == []
    assert world.lease_names() == []


def test_records_and_plan_key_go():
    world = World()
    inputs = RunInputs(job="j1", files=FILES, inputs_hash="h2:1", image=IMAGE)
    write_attempt(world.door, world.owner, inputs)
    write_applied(world.door, world.owner, inputs, "")
    ensure_plan_key(world.door, world.owner, fixed_bytes)
    for _ in range(2):
        delete_records(world.door, world.owner)
        delete_plan_key(world.door, world.owner)
    assert secrets(world) == []


def test_held_leases_go_too_and_the_state_lock_stays():
    world = World()
    world.acquire(world.run())
    add_lock(world)
    delete_leases(world.door, world.owner)
    assert world.lease_names() == [names.state_lock(world.owner.suffix)]
    delete_leases(world.door, world.owner)
    delete_lock(world.door, world.owner)
    delete_lock(world.door, world.owner)
    assert world.lease_names() == []


def test_leases_of_other_objects_stay():
    world = World()
    machine = world.machine("md-0")
    world.acquire(world.run(owner=machine))
    delete_leases(world.door, world.owner)
    assert world.lease_names() == [machine.run_lease]
