"""Backup sets: what their Secrets say, whether they are complete and intact
(state.md: Backups)."""

import gzip
import hashlib
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from captfctl.cluster.errors import NotFound
from captfctl.model import core, keys, names
from captfctl.model.meta import ObjectMeta
from captfctl.model.resources import SECRETS
from captfctl.terraform.state.backups import (
    BackupSet,
    Damage,
    newest_complete,
    parse_serial,
    read_backup,
    read_backups,
)
from captfctl.terraform.state.protected import encode_data
from captfctl.terraform.state.reader import Content
from tests.support.runs import NAMESPACE, World

STATE: dict[str, Any] = {
    "version": 4,
    "serial": 5,
    "lineage": "l-1",
    "resources": [{"mode": "managed"}, {"mode": "managed"}, {"mode": "data"}],
}


@pytest.fixture
def world() -> World:
    return World()


def add(
    world: World,
    serial: int = 5,
    *,
    state: dict[str, Any] | None = None,
    chunks: int = 1,
    taken: str = "2026-03-01T10:00:00Z",
    name: str = "",
    **notes: str,
) -> str:
    """The Secrets of a backup as they are meant to be; `notes` are other annotations."""
    payload = gzip.compress(json.dumps(STATE | {"serial": serial} | (state or {})).encode())
    base = name or names.state_backup(world.owner.suffix, serial)
    size = -(-len(payload) // chunks)
    for index in range(chunks):
        annotations = {
            keys.BACKUP_SERIAL: str(serial),
            keys.BACKUP_LINEAGE: "l-1",
            keys.BACKUP_TAKEN_AT: taken,
            keys.BACKUP_SOURCE_JOB: "captf-c-prod-apply-a1-000000",
            keys.BACKUP_DIGEST: hashlib.sha256(payload).hexdigest(),
            keys.BACKUP_RESOURCES: "2",
            keys.BACKUP_BYTES: str(len(payload)),
            keys.BACKUP_SET: base,
            keys.BACKUP_CHUNK: str(index),
            keys.BACKUP_CHUNKS: str(chunks),
            **({} if index else {keys.INPUTS_HASH: "h2:abc"}),
            **{keys.__dict__[key]: value for key, value in notes.items()},
        }
        piece = payload[index * size : (index + 1) * size]
        put(world, names.backup_chunk(base, index), annotations, piece)
    return base


def put(world: World, name: str, annotations: dict[str, str], data: bytes = b"") -> None:
    labels = {keys.STATE_BACKUP: "true", keys.STATE_BACKUP_SUFFIX: world.owner.suffix}
    meta = ObjectMeta(name=name, labels=labels, annotations=annotations)
    secret = core.Secret(api_version="v1", kind="Secret", metadata=meta, data={keys.TFSTATE: data})
    world.door.create(SECRETS, secret, NAMESPACE)


def only(world: World) -> BackupSet:
    (found,) = read_backups(world.door, world.owner)
    return found


def damage(world: World) -> str:
    found = read_backup(world.door, world.owner, only(world))
    assert isinstance(found, Damage)
    return found.why


def test_a_set_tells_what_is_recorded_of_it(world: World):
    name = add(world, chunks=3)

    found = only(world)

    assert found.complete
    assert found.name == name == f"captf-state-backup-{world.owner.suffix}-5"
    assert (found.serial, found.lineage, found.resources) == (5, "l-1", 2)
    assert found.taken_at == datetime(2026, 3, 1, 10, tzinfo=UTC)
    assert found.job == "captf-c-prod-apply-a1-000000"
    assert found.inputs_hash == "h2:abc"
    assert found.bytes > 100
    assert found.secret_names == (name, f"{name}-part-1", f"{name}-part-2")


def test_backups_of_another_object_are_not_listed(world: World):
    add(world)

    assert read_backups(world.door, world.machine("other")) == ()


def test_sets_are_listed_newest_first_then_by_serial_then_by_name(world: World):
    add(world, 3, taken="2026-03-01T11:00:00Z")
    add(world, 4, taken="2026-03-01T10:00:00Z")
    add(world, 5, taken="2026-03-01T10:00:00Z")
    add(world, 5, taken="2026-03-01T10:00:00Z", name="captf-state-backup-x-5-00000000")

    found = read_backups(world.door, world.owner)

    assert [backup.serial for backup in found] == [3, 5, 5, 4]
    assert found[1].name < found[2].name


def test_a_time_that_cannot_be_read_is_that_of_the_creation(world: World):
    add(world, taken="yesterday")

    assert only(world).taken_at == world.clock.now().replace(microsecond=0)


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_a_set_without_one_of_its_chunks_is_not_complete_and_says_which(world: World, missing: int):
    name = add(world, chunks=3)
    world.door.delete(SECRETS, names.backup_chunk(name, missing), NAMESPACE)

    found = only(world)

    assert not found.complete
    assert found.defect.startswith(f"chunk {missing} of 3 is missing")
    assert found.serial == 5
    assert len(found.secrets) == 2


def test_another_secret_that_claims_the_set_makes_it_incomplete(world: World):
    name = add(world)
    put(world, "mine", {keys.BACKUP_SET: name, keys.BACKUP_CHUNK: "0", keys.BACKUP_CHUNKS: "1"})

    assert only(world).defect == "Secret mine does not belong to it"


def test_a_chunk_beyond_the_count_makes_a_set_incomplete(world: World):
    name = add(world)
    notes = {keys.BACKUP_SET: name, keys.BACKUP_CHUNK: "1", keys.BACKUP_CHUNKS: "2"}
    put(world, names.backup_chunk(name, 1), notes)

    assert "too many" in only(world).defect


@pytest.mark.parametrize("count", ["0", "33", "-1", "x", ""])
def test_a_count_that_no_set_can_have_makes_it_incomplete(world: World, count: str):
    add(world, BACKUP_CHUNKS=count)

    assert not only(world).complete


@pytest.mark.parametrize("serial", ["0", "-5", "five", "", "9" * 19])
def test_a_set_without_a_serial_is_not_complete(world: World, serial: str):
    add(world, BACKUP_SERIAL=serial)

    assert not only(world).complete


def test_a_secret_with_the_labels_alone_is_listed_by_its_own_name(world: World):
    put(world, "lonely", {})

    found = only(world)

    assert (found.name, found.complete, found.serial) == ("lonely", False, 0)
    assert [meta.name for meta in found.secrets] == ["lonely"]


def test_the_newest_complete_set_of_a_serial_is_chosen(world: World):
    add(world, 5, taken="2026-03-01T10:00:00Z")
    second = names.state_backup(world.owner.suffix, 5, "deadbeef00")
    add(world, 5, taken="2026-03-01T11:00:00Z", name=second)
    broken = add(world, 5, taken="2026-03-01T12:00:00Z", chunks=2, name="captf-state-backup-5-x")
    world.door.delete(SECRETS, names.backup_chunk(broken, 1), NAMESPACE)
    add(world, 6, taken="2026-03-01T09:00:00Z")

    found = read_backups(world.door, world.owner)

    of_five, newest = newest_complete(found, 5), newest_complete(found)
    assert of_five is not None and of_five.name == second
    assert of_five.name.endswith("-5-deadbeef")
    assert newest == of_five
    assert newest_complete(found, 7) is None


@pytest.mark.parametrize("chunks", [1, 4])
def test_an_intact_set_is_verified(world: World, chunks: int):
    add(world, chunks=chunks)

    found = read_backup(world.door, world.owner, only(world))

    assert isinstance(found, Content)
    assert (found.serial, found.lineage, found.resources) == (5, "l-1", 2)
    assert json.loads(found.text)["resources"] == STATE["resources"]


def test_content_that_was_changed_is_damage(world: World):
    name = add(world)
    other = gzip.compress(json.dumps(STATE | {"outputs": {}}).encode())
    patch = {"data": encode_data({keys.TFSTATE: other})}
    world.door.patch(SECRETS, name, NAMESPACE, patch)

    assert "digest" in damage(world)


@pytest.mark.parametrize(
    ("state", "what"),
    [
        ({"serial": 6}, "its serial is 6, and 5 was recorded"),
        ({"lineage": "l-2"}, "its lineage is l-2, and l-1 was recorded"),
        ({"resources": []}, "its number of resources is 0, and 2 was recorded"),
        ({"version": 3}, "version"),
        ({"encryption_version": "v0"}, "encrypted"),
    ],
)
def test_content_that_is_not_what_the_annotations_say_is_damage(
    world: World, state: dict[str, Any], what: str
):
    add(world, state=state)

    assert what in damage(world)


def test_a_set_that_is_not_complete_is_damage_without_a_read(world: World):
    name = add(world, chunks=2)
    world.door.delete(SECRETS, names.backup_chunk(name, 1), NAMESPACE)

    assert damage(world).startswith("chunk 1 of 2 is missing")


def test_a_chunk_that_goes_while_the_set_is_read_is_damage(world: World):
    name = add(world, chunks=2)
    backup = only(world)
    world.door.delete(SECRETS, names.backup_chunk(name, 1), NAMESPACE)
    with pytest.raises(NotFound):
        world.door.get(SECRETS, names.backup_chunk(name, 1), NAMESPACE)

    found = read_backup(world.door, world.owner, backup)

    assert found == Damage(f"Secret {name}-part-1 is gone")


@pytest.mark.parametrize(
    ("text", "serial"),
    [("5", 5), (" 5 ", 5), ("005", 5), (str(2**63 - 1), 2**63 - 1)]
    + [(text, None) for text in ("", "0", "-3", "abc", "5.0", "٥", "1e3", str(2**63))],
)
def test_a_serial_is_a_decimal_number_of_one_or_more(text: str, serial: int | None):
    assert parse_serial(text) == serial


def test_nothing_of_the_content_is_shown(world: World):
    add(world, state={"outputs": {"token": {"value": "s3cr3t", "type": "string"}}})
    found = read_backup(world.door, world.owner, only(world))

    assert "s3cr3t" not in repr(found)
