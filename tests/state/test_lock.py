"""Terraform's lock on the state (state.md: The state lock)."""

import json

import pytest

from captfctl.model import core, keys, names
from captfctl.model.meta import ObjectMeta
from captfctl.model.resources import LEASES, PODS
from captfctl.terraform.state.lock import LockHolder, StateLock, find_lock, lock_version, read_lock
from tests.support.runs import NAMESPACE, World


def judged(world: World) -> StateLock:
    return read_lock(world.door, world.owner)


def lock(world: World, who: str | None, *, holder: str = "lease-holder", info: str = "") -> None:
    body = {"ID": "lock-1", "Operation": "OperationTypeApply", "Created": "2026-09-25T11:00:00Z"}
    text = info or json.dumps({**body, "Who": who})
    world.door.create(
        LEASES,
        core.Lease(
            api_version=LEASES.api_version,
            kind="Lease",
            metadata=ObjectMeta(
                name=names.state_lock(world.owner.suffix),
                annotations={keys.LOCK_INFO: text} if who is not None or info else {},
            ),
            spec=core.LeaseSpec(holder_identity=holder),
        ),
        NAMESPACE,
    )


def own_pod(world: World, phase: str) -> core.Pod:
    return world.add_pod(world.add_job(world.run()), phase=phase)


def test_missing_or_released_lock_is_free():
    world = World()
    assert judged(world).holder is LockHolder.FREE
    lock(world, None, holder="")
    found = judged(world)
    assert found.holder is LockHolder.FREE
    assert found.force_unlock == ""


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_lock_of_an_own_pod_that_ended_is_stale(phase):
    world = World()
    pod = own_pod(world, phase)
    lock(world, f"root@{pod.metadata.name}")
    found = judged(world)
    assert found.holder is LockHolder.STALE
    assert found.force_unlock == "lock-1"


def test_lock_of_an_own_pod_that_is_gone_is_stale():
    world = World()
    pod = own_pod(world, "Running")
    lock(world, f"a@b@{pod.metadata.name}")
    world.door.delete(PODS, pod.metadata.name, NAMESPACE, grace_period_seconds=0)
    assert judged(world).holder is LockHolder.STALE


@pytest.mark.parametrize("phase", ["Running", "Pending", "Unknown"])
def test_lock_of_an_own_pod_that_still_exists_is_left_alone(phase):
    world = World()
    lock(world, f"root@{own_pod(world, phase).metadata.name}")
    found = judged(world)
    assert found.holder is LockHolder.ALIVE
    assert found.force_unlock == ""


@pytest.mark.parametrize(
    "who", ["jane@laptop", "nobody", "", "root@captf-c-other-apply-a1-dbb569-x7k2p"]
)
def test_lock_of_anybody_else_is_foreign_and_described(who):
    world = World()
    lock(world, who)
    found = judged(world)
    assert found.holder is LockHolder.FOREIGN
    assert found.force_unlock == ""
    for fact in ("lock-1", who, "OperationTypeApply", "2026-09-25T11:00:00Z"):
        assert fact in found.message


@pytest.mark.parametrize("info", ["not json", '{"ID": 1}', "[]"])
def test_lock_whose_info_does_not_parse_is_foreign(info):
    world = World()
    lock(world, None, info=info)
    found = judged(world)
    assert found.holder is LockHolder.FOREIGN
    assert found.id == "lease-holder"


def test_lock_version_changes_with_every_lock_and_unlock():
    world = World()
    assert lock_version(find_lock(world.door, world.owner)) == "none"
    lock(world, "jane@laptop")
    before = lock_version(find_lock(world.door, world.owner))
    name = names.state_lock(world.owner.suffix)
    world.door.patch(LEASES, name, NAMESPACE, {"spec": {"holderIdentity": None}})
    assert before != "none"
    assert lock_version(find_lock(world.door, world.owner)) != before
