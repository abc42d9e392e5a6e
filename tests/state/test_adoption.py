"""Taking a state over after a run, and whose Secrets are the object's
(state.md: Adopting a state)."""

from typing import Any

import pytest

from captfctl.cluster.errors import Conflict, Forbidden, Unavailable
from captfctl.model import keys, names
from captfctl.model.meta import ObjectMeta, OwnerReference
from captfctl.model.owner import API_VERSION
from captfctl.model.resources import SECRETS
from captfctl.terraform.state.adopt import AdoptionSource, adopt
from captfctl.terraform.state.owners import Repair, repair_owner_references
from captfctl.terraform.state.plan_key import ensure_plan_key
from captfctl.terraform.state.protected import encode_references
from captfctl.terraform.state.reader import State, StateProblem, Unreadable, read_state
from captfctl.terraform.state.records import RunInputs, read_records, write_applied, write_attempt
from tests.support.faults import WRITES, HookedDoor, failing
from tests.support.runs import FILES, IMAGE, NAMESPACE, World, fixed_bytes


def stored(world: World, index: int = 0) -> ObjectMeta:
    name = names.state_secret(world.owner.suffix, index)
    return world.door.get(SECRETS, name, NAMESPACE).metadata


def read(world: World) -> State:
    found = read_state(world.door, world.owner)
    assert isinstance(found, State)
    return found


def test_state_of_a_successful_apply_is_stamped_owned_and_protected():
    world = World()
    world.add_state(chunks=3, **{keys.INPUTS_HASH: "h2:old"})
    taken = adopt(world.door, world.owner, read(world), AdoptionSource("j1", "h2:new"))
    assert taken.inputs_hash == "h2:new"
    assert taken == read(world)
    for index in range(3):
        (ref,) = stored(world, index).owner_references
        assert (ref.uid, ref.controller, ref.block_owner_deletion) == (world.owner.uid, None, None)
    assert stored(world).finalizers == [keys.STATE_PROTECTION]
    assert stored(world, 1).finalizers == []
    assert keys.INPUTS_HASH not in stored(world, 1).annotations


def test_state_that_has_the_hash_already_is_not_written():
    world = World()
    world.add_state(**{keys.INPUTS_HASH: "h2:abc"})
    writes: list[str] = []
    door = HookedDoor(world.door, before=lambda name, _: writes.append(name))
    state = read(world)
    for wanted in ("h2:abc", None):
        assert adopt(door, world.owner, state, AdoptionSource("j1", wanted)) == state
    assert not WRITES & set(writes)


def test_restore_of_a_backup_without_a_hash_takes_the_hash_away():
    world = World()
    world.add_state(**{keys.INPUTS_HASH: "h2:abc"})
    adopt(world.door, world.owner, read(world), AdoptionSource("j1", ""))
    assert keys.INPUTS_HASH not in stored(world).annotations
    assert read(world).inputs_hash == ""


def test_conflict_fails_the_pass_and_leaves_no_hash():
    world = World()
    world.add_state()
    state = read(world)
    name = names.state_secret(world.owner.suffix)
    world.door.patch(SECRETS, name, NAMESPACE, {"metadata": {"labels": {"a": "b"}}})
    with pytest.raises(Conflict):
        adopt(world.door, world.owner, state, AdoptionSource("j1", "h2:new"))
    assert keys.INPUTS_HASH not in stored(world).annotations


def test_secrets_that_went_away_are_no_state():
    world = World()
    world.add_state()
    state = read(world)
    world.door.delete(SECRETS, names.state_secret(world.owner.suffix), NAMESPACE)
    found = adopt(world.door, world.owner, state, AdoptionSource("j1", "h2:new"))
    assert isinstance(found, Unreadable)
    assert found.problem is StateProblem.NO_STATE


def test_other_owners_of_a_state_stay():
    world = World()
    world.add_state()
    foreign = OwnerReference(api_version="v1", kind="ConfigMap", name="x", uid="y")
    own_earlier = OwnerReference(
        api_version=API_VERSION, kind="TerraformCluster", name="prod", uid="earlier"
    )
    patch = {"metadata": {"ownerReferences": encode_references([foreign, own_earlier])}}
    world.door.patch(SECRETS, names.state_secret(world.owner.suffix), NAMESPACE, patch)
    adopt(world.door, world.owner, read(world), AdoptionSource("j1", "h2:new"))
    assert [ref.uid for ref in stored(world).owner_references] == ["y", world.owner.uid]


INPUTS = RunInputs(job="j0", files=FILES, inputs_hash="h2:abc", image=IMAGE)


def with_earlier_owner(world: World) -> list[str]:
    """Every Secret of the object, as an earlier object of the name owned it."""
    world.add_state(chunks=2)
    write_attempt(world.door, world.owner, INPUTS)
    write_applied(world.door, world.owner, INPUTS, "")
    ensure_plan_key(world.door, world.owner, fixed_bytes)
    earlier = OwnerReference(
        api_version=API_VERSION, kind="TerraformCluster", name="prod", uid="earlier"
    )
    secrets = [secret.metadata.name for secret in world.door.list(SECRETS, NAMESPACE).items]
    patch = {"metadata": {"ownerReferences": encode_references([earlier])}}
    for name in secrets:
        world.door.patch(SECRETS, name, NAMESPACE, patch)
    return secrets


def owners(world: World, name: str) -> list[str]:
    meta = world.door.get(SECRETS, name, NAMESPACE).metadata
    return [ref.uid for ref in meta.owner_references]


def test_references_to_an_earlier_object_are_replaced():
    world = World()
    secrets = with_earlier_owner(world)
    found = repair_owner_references(world.door, world.owner, read(world))
    assert found == Repair(written=5, replaced=5)
    assert all(owners(world, name) == [world.owner.uid] for name in secrets)
    again = repair_owner_references(world.door, world.owner, read(world))
    assert again == Repair(0, 0)


def test_state_is_left_alone_while_a_job_may_write_it():
    world = World()
    with_earlier_owner(world)
    repair_owner_references(world.door, world.owner, None)
    assert owners(world, names.state_secret(world.owner.suffix)) == ["earlier"]


def test_what_another_object_retained_is_never_owned_again():
    world = World()
    secrets = with_earlier_owner(world)
    for name in secrets:
        patch = {"metadata": {"labels": {keys.RETAINED_FROM_UID: "earlier"}}}
        world.door.patch(SECRETS, name, NAMESPACE, patch)
    assert repair_owner_references(world.door, world.owner, read(world)) == Repair(0, 0)


def test_repair_that_is_refused_for_good_is_logged_and_the_others_go_on(caplog):
    world = World()
    secrets = with_earlier_owner(world)
    refused: list[Any] = []

    def before(name: str, _: Any) -> None:
        if name == "patch" and not refused:
            refused.append(name)
            raise Forbidden("no")

    found = repair_owner_references(HookedDoor(world.door, before=before), world.owner, read(world))
    assert found.written == len(secrets) - 1
    assert "owner references of" in caplog.text


def test_plan_key_is_made_once_and_never_rotated():
    world = World()
    ensure_plan_key(world.door, world.owner, fixed_bytes)
    ensure_plan_key(world.door, world.owner, lambda count: b"x" * count)
    secret = world.door.get(SECRETS, "captf-plankey-c-prod", NAMESPACE)
    assert secret.data == {"key": b"k" * 32}
    assert [ref.uid for ref in secret.metadata.owner_references] == [world.owner.uid]
    assert secret.metadata.labels == {keys.MANAGED: "true", **world.owner.labels}


def test_plan_key_that_somebody_else_made_meanwhile_is_fine():
    world = World()

    class Blind(HookedDoor):
        def get(self, *args: Any, **kwargs: Any) -> Any:
            ensure_plan_key(world.door, world.owner, fixed_bytes)
            from captfctl.cluster.errors import NotFound

            raise NotFound("not seen")

    ensure_plan_key(Blind(world.door), world.owner, lambda count: b"x" * count)
    secret = world.door.get(SECRETS, "captf-plankey-c-prod", NAMESPACE)
    assert secret.data == {"key": b"k" * 32}


def test_plan_key_error_is_raised():
    world = World()
    door = failing(world.door, Unavailable("no answer"), "create", SECRETS)
    with pytest.raises(Unavailable):
        ensure_plan_key(door, world.owner, fixed_bytes)
    assert read_records(world.door, world.owner).attempt is None
