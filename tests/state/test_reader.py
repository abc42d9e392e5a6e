"""Reading a state (state.md: Reading a state)."""

import gzip
import json
import tracemalloc
import zlib
from typing import Any

import pytest

from captfctl.cluster.errors import Unavailable
from captfctl.model import keys, names
from captfctl.model.owner import Owner
from captfctl.model.resources import SECRETS
from captfctl.terraform.state.reader import (
    DECOMPRESSED_MAX,
    State,
    StateProblem,
    Unreadable,
    read_state,
)
from tests.support.faults import failing
from tests.support.runs import World


def read(world: World) -> State | Unreadable:
    return read_state(world.door, world.owner)


def problem(world: World) -> StateProblem:
    found = read(world)
    assert isinstance(found, Unreadable)
    return found.problem


def base(world: World, index: int = 0) -> str:
    return names.state_secret(world.owner.suffix, index)


def packed(document: Any) -> bytes:
    return gzip.compress(json.dumps(document).encode())


STATE = {"version": 4, "serial": 7, "lineage": "l-1", "terraform_version": "1.9.0"}


@pytest.mark.parametrize(
    ("kind", "suffix"),
    [
        ("TerraformCluster", "f66792f9106e7299-c"),
        ("TerraformMachine", "2086662b5077b531-m"),
        ("TerraformMachinePool", "2f26b4a1d52c4792-mp"),
    ],
)
def test_suffix_is_made_of_namespace_kind_and_name(kind, suffix):
    assert Owner(kind, "team-a", "prod", "uid").suffix == suffix


def test_kind_without_runs_has_no_suffix():
    with pytest.raises(KeyError):
        _ = Owner("Cluster", "team-a", "prod", "uid").suffix


def test_label_value_is_hashed_beyond_its_limit():
    assert names.label_value("a" * 63) == "a" * 63
    assert names.label_value("a" * 64) == "ffe054fe7ae0cb6d"


def test_backend_labels_never_depend_on_more_than_identity():
    owner = Owner("TerraformCluster", "team-a", "prod", "uid", "prod")
    assert owner.backend_labels == {
        keys.OWNER_KIND: "TerraformCluster",
        keys.OWNER_NAME: "prod",
        keys.MANAGED: "true",
        keys.CLUSTER_NAME: "prod",
        keys.MOVE: "",
    }
    other_uid = Owner("TerraformCluster", "team-a", "prod", "other", "prod")
    assert other_uid.backend_labels == owner.backend_labels
    assert other_uid.suffix == owner.suffix


def test_object_without_a_state_secret_has_no_state():
    assert problem(World()) is StateProblem.NO_STATE


def test_state_is_read_with_its_metadata():
    world = World()
    world.add_state(STATE, **{keys.INPUTS_HASH: "h2:abc"})
    state = read(world)
    assert (state.serial, state.lineage, state.terraform_version) == (7, "l-1", "1.9.0")
    assert state.inputs_hash == "h2:abc"
    assert [chunk.name for chunk in state.chunks] == [base(world)]
    assert state.bytes == len(world.door.get(SECRETS, base(world), "team-a").data["tfstate"])


@pytest.mark.parametrize("chunks", [2, 3, 11])
def test_chunks_are_joined_in_order_of_their_number(chunks):
    world = World()
    world.add_state(
        {**STATE, "outputs": {"x": {"value": "y" * 300, "type": "string"}}}, chunks=chunks
    )
    state = read(world)
    assert state.serial == 7
    assert [chunk.name for chunk in state.chunks] == [base(world, i) for i in range(chunks)]


def test_stale_tail_of_an_earlier_state_is_ignored():
    world = World()
    world.add_chunk(base(world), packed(STATE))
    world.add_chunk(base(world, 1), packed({"version": 4, "serial": 3})[5:])
    assert read(world).serial == 7


@pytest.mark.parametrize(
    ("indexes", "missing"), [([0, 2], "chunk 1"), ([1], "chunk 0"), ([0, 1, 3], "chunk 2")]
)
def test_gap_in_the_chunks_is_inconsistent(indexes, missing):
    world = World()
    for index in indexes:
        world.add_chunk(base(world, index), b"x")
    found = read(world)
    assert found.problem is StateProblem.INCONSISTENT
    assert missing in found.message


@pytest.mark.parametrize("name", ["-part-01", "-part-0", "-part-x", "-part-+1", "x", "-part-"])
def test_secret_that_only_looks_like_a_chunk_is_inconsistent(name):
    world = World()
    world.add_chunk(base(world), packed(STATE))
    stray = f"{base(world)}{name}".rstrip("-").replace("+", "p")
    world.add_chunk(stray, b"x")
    found = read(world)
    assert found.problem is StateProblem.INCONSISTENT
    assert stray in found.message


def test_secret_of_another_name_with_the_states_labels_is_inconsistent():
    world = World()
    world.add_chunk(base(world), packed(STATE))
    world.add_chunk("innocent", b"x")
    assert problem(world) is StateProblem.INCONSISTENT


def test_more_than_32_chunks_are_corrupt_whatever_their_names():
    world = World()
    for index in range(33):
        world.add_chunk(base(world, index), b"x")
    assert problem(world) is StateProblem.CORRUPT


@pytest.mark.parametrize("index", [0, 1])
def test_chunk_without_data_is_inconsistent(index):
    world = World()
    world.add_chunk(base(world, 1 - index), packed(STATE))
    world.add_chunk(base(world, index), None)
    found = read(world)
    assert found.problem is StateProblem.INCONSISTENT
    assert base(world, index) in found.message


BROKEN = {
    "no gzip": b"not gzip",
    "empty": b"",
    "truncated gzip": packed(STATE)[:-5],
    "no JSON": gzip.compress(b"not json"),
    "truncated JSON": gzip.compress(b'{"version": 4, "serial": '),
    "no UTF-8": gzip.compress(b"\xff\xfe"),
    "a list": packed([]),
    "serial a string": packed({**STATE, "serial": "7"}),
    "outputs a list": packed({**STATE, "outputs": []}),
    "resources an object": packed({**STATE, "resources": {"a": 1}}),
    "sensitive a string": packed({**STATE, "outputs": {"a": {"value": 1, "sensitive": "yes"}}}),
}


@pytest.mark.parametrize("payload", BROKEN.values(), ids=BROKEN)
def test_bytes_that_are_no_state_file_are_corrupt(payload):
    world = World()
    world.add_chunk(base(world), payload)
    assert problem(world) is StateProblem.CORRUPT


def filled(size: int) -> bytes:
    """A state file of exactly that many bytes."""
    head = b'{"version":4,"serial":7,"lineage":"'
    return head + b"a" * (size - len(head) - 2) + b'"}'


def test_a_gzip_bomb_is_too_large_and_memory_stays_bounded():
    world = World()
    bomb = zlib.compressobj(9, zlib.DEFLATED, 31)
    payload = b"".join([*(bomb.compress(b"\0" * 2**20) for _ in range(400)), bomb.flush()])
    world.add_chunk(base(world), payload)
    tracemalloc.start()
    found = read(world)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.problem is StateProblem.TOO_LARGE
    assert peak < 4 * DECOMPRESSED_MAX


@pytest.mark.parametrize(("more", "reads"), [(0, True), (1, False)])
def test_size_limit_is_exact(more, reads):
    world = World()
    world.add_chunk(base(world), gzip.compress(filled(DECOMPRESSED_MAX + more)))
    assert isinstance(read(world), State) is reads


def test_encrypted_state_is_told_before_its_missing_version():
    world = World()
    world.add_chunk(base(world), packed({"encryption_version": "v0", "encrypted_data": "x"}))
    assert problem(world) is StateProblem.ENCRYPTED


def test_null_encryption_version_is_no_encryption():
    world = World()
    world.add_state({**STATE, "encryption_version": None})
    assert isinstance(read(world), State)


@pytest.mark.parametrize("document", [{"version": 3}, {"serial": 1}, {"version": 5, "serial": 1}])
def test_other_versions_are_unsupported(document):
    world = World()
    world.add_chunk(base(world), packed(document))
    assert problem(world) is StateProblem.UNSUPPORTED_VERSION


def test_empty_state_is_valid():
    world = World()
    world.add_chunk(base(world), packed({"version": 4, "outputs": None, "resources": None}))
    state = read(world)
    assert (state.outputs, state.resources, state.serial, state.inputs_hash) == ({}, 0, 0, "")


def test_managed_resources_count_once_and_data_sources_not():
    world = World()
    resources = [
        {"mode": "managed", "type": "a", "instances": [{}] * 5},
        {"mode": "managed", "type": "b", "instances": []},
        {"mode": "data", "type": "c"},
    ]
    world.add_state({**STATE, "resources": resources})
    assert read(world).resources == 2


def test_output_values_keep_their_number_text_and_are_not_shown():
    world = World()
    body = (
        b'{"version":4,"outputs":{"n":{"value":1.10,"type":"number"},'
        b'"big":{"value":123456789012345678901234567890,"type":"number"},'
        b'"s":{"value":"hunter2","type":"string","sensitive":true}}}'
    )
    world.add_chunk(base(world), gzip.compress(body))
    state = read(world)
    assert bytes(state.outputs["n"].value) == b"1.10"
    assert bytes(state.outputs["big"].value) == b"123456789012345678901234567890"
    assert state.outputs["s"].sensitive
    assert "hunter2" not in repr(state)
    assert "hunter2" not in repr(state.outputs)


def test_corrupt_state_is_not_quoted():
    world = World()
    world.add_chunk(base(world), gzip.compress(b'{"version": 4, "serial": "hunter2"}'))
    assert "hunter2" not in read(world).message


def test_list_that_fails_is_no_verdict():
    world = World()
    door = failing(world.door, Unavailable("no answer"), "list", SECRETS)
    with pytest.raises(Unavailable):
        read_state(door, world.owner)
