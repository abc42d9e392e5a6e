"""An object's records and state, read by the names that the cache knows."""

from typing import Any

import pytest

from captfctl.model import keys, names
from captfctl.model.resources import SECRETS
from captfctl.reconcile.cache import DoorCache
from captfctl.terraform.state.own_secrets import OwnSecrets, read_own_secrets
from captfctl.terraform.state.reader import State, StateProblem, Unreadable, read_state
from captfctl.terraform.state.records import RunInputs, read_records, write_applied, write_attempt
from tests.support.faults import HookedDoor
from tests.support.runs import FILES, IMAGE, NAMESPACE, World

INPUTS = RunInputs(job="j1", files=FILES, inputs_hash="h2:1", image=IMAGE, identity="main")


def applied_world(chunks: int = 3) -> World:
    world = World()
    write_attempt(world.door, world.owner, INPUTS)
    write_applied(world.door, world.owner, INPUTS, "repo@sha256:x")
    world.add_state({"serial": 7}, chunks=chunks)
    return world


def read(world: World, chunks: list[str] | None = None) -> tuple[OwnSecrets, list[str]]:
    """What was read, and the requests that took. `chunks`: as cached, or else as they are."""
    requests: list[str] = []

    def note(method: str, resource: Any) -> None:
        requests.append(f"{method} {resource.plural}")

    if chunks is None:
        found = DoorCache(world.door).state_secrets(world.owner)
        chunks = [secret.metadata.name for secret in found]
    door = HookedDoor(world.door, before=note)
    return read_own_secrets(door, world.owner, chunks), requests


def test_records_and_state_are_what_reading_each_gives():
    world = applied_world()
    found, requests = read(world)
    assert found.records == read_records(world.door, world.owner)
    assert found.state == read_state(world.door, world.owner)
    assert isinstance(found.state, State)
    assert requests == ["get secrets"] * 5


def test_an_object_that_never_ran_has_neither():
    found, _ = read(World())
    assert found.records.attempt is found.records.applied is None
    state = found.state
    assert isinstance(state, Unreadable)
    assert state.problem is StateProblem.NO_STATE


def test_a_record_without_the_label_is_found_by_its_name():
    world = applied_world()
    name = names.applied_record(world.owner.kind, world.owner.name)
    world.door.patch(
        SECRETS, name, NAMESPACE, {"metadata": {"labels": {keys.TFSTATE_SUFFIX: None}}}
    )
    found, _ = read(world)
    assert found.records == read_records(world.door, world.owner)
    assert found.records.applied is not None


def test_other_workspaces_and_the_records_are_no_chunks_of_the_state():
    world = applied_world()
    other = world.add_chunk("tfstate-other-x", b"?")
    other.metadata.labels[keys.TFSTATE_WORKSPACE] = "other"
    world.door.update(SECRETS, other)
    found, _ = read(world)
    assert isinstance(found.state, State)
    assert found.state == read_state(world.door, world.owner)
    assert len(found.state.chunks) == 3


def test_no_data_is_shown():
    found, _ = read(applied_world())
    assert "tfvars" not in repr(found) and "outputs" not in repr(found)


@pytest.mark.parametrize("known", [0, 1, 2])
def test_a_state_whose_chunks_the_cache_does_not_all_know_is_read_with_a_list(known):
    world = applied_world(chunks=3)
    names_known = [names.state_secret(world.owner.suffix, index) for index in range(known)]
    found, requests = read(world, names_known)
    assert found.state == read_state(world.door, world.owner)
    assert requests[-1] == "list secrets"


def test_a_chunk_that_the_cache_knows_and_that_is_gone_is_no_part_of_the_state():
    world = applied_world(chunks=1)
    stale = [names.state_secret(world.owner.suffix, index) for index in range(3)]
    found, requests = read(world, stale)
    assert found.state == read_state(world.door, world.owner)
    assert "list secrets" not in requests


@pytest.mark.parametrize("payload", [b"", b"no gzip", None])
def test_a_base_that_is_not_a_whole_state_is_judged_by_the_list(payload):
    world = World()
    world.add_chunk(names.state_secret(world.owner.suffix), payload)
    found, requests = read(world)
    assert found.state == read_state(world.door, world.owner)
    assert requests[-1] == "list secrets"


def test_a_secret_of_the_name_without_the_labels_is_no_state():
    world = applied_world(chunks=1)
    name = names.state_secret(world.owner.suffix)
    world.door.patch(SECRETS, name, NAMESPACE, {"metadata": {"labels": {keys.TFSTATE: None}}})
    found, _ = read(world, [name])
    assert isinstance(found.state, Unreadable)
