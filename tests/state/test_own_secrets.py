"""An object's records and state, read with one request (30 §16, 40 §4)."""

from typing import Any

from captfctl.model import keys, names
from captfctl.model.resources import SECRETS
from captfctl.state.own_secrets import OwnSecrets, read_own_secrets
from captfctl.state.reader import State, StateProblem, Unreadable, read_state
from captfctl.state.records import RunInputs, read_records, write_applied, write_attempt
from tests.support.faults import HookedDoor
from tests.support.runs import FILES, IMAGE, NAMESPACE, World

INPUTS = RunInputs(job="j1", files=FILES, inputs_hash="h2:1", image=IMAGE, identity="main")


def applied_world() -> World:
    world = World()
    write_attempt(world.door, world.owner, INPUTS)
    write_applied(world.door, world.owner, INPUTS, "repo@sha256:x")
    world.add_state({"serial": 7}, chunks=3)
    return world


def read(world: World) -> tuple[OwnSecrets, list[str]]:
    """What was read, and the requests that took."""
    requests: list[str] = []

    def note(method: str, resource: Any) -> None:
        requests.append(f"{method} {resource.plural}")

    return read_own_secrets(HookedDoor(world.door, before=note), world.owner), requests


def test_records_and_state_are_what_reading_each_gives():
    world = applied_world()
    found, requests = read(world)
    assert found.records == read_records(world.door, world.owner)
    assert found.state() == read_state(world.door, world.owner)
    assert isinstance(found.state(), State)
    assert requests == ["list secrets"]


def test_an_object_that_never_ran_has_neither():
    found, _ = read(World())
    assert found.records.attempt is found.records.applied is None
    state = found.state()
    assert isinstance(state, Unreadable)
    assert state.problem is StateProblem.NO_STATE


def test_a_record_without_the_label_is_found_by_its_name():
    world = applied_world()
    name = names.applied_record(world.owner.kind, world.owner.name)
    world.door.patch(
        SECRETS, name, NAMESPACE, {"metadata": {"labels": {keys.TFSTATE_SUFFIX: None}}}
    )
    found, requests = read(world)
    assert found.records == read_records(world.door, world.owner)
    assert found.records.applied is not None
    assert requests == ["list secrets", "get secrets"]


def test_other_workspaces_and_the_records_are_no_chunks_of_the_state():
    world = applied_world()
    other = world.add_chunk("tfstate-other-x", b"?")
    other.metadata.labels[keys.TFSTATE_WORKSPACE] = "other"
    world.door.update(SECRETS, other)
    found, _ = read(world)
    assert found.state() == read_state(world.door, world.owner)
    assert len(found.chunks) == 3


def test_no_data_is_shown():
    found, _ = read(applied_world())
    assert "chunks" not in repr(found)
