"""Every new serial of a state is backed up, and some are kept (state.md: Backups)."""

import gzip
import hashlib
import json
from dataclasses import replace
from typing import Any

import pytest

from captfctl.cluster.errors import Forbidden, Unavailable
from captfctl.model import keys, names
from captfctl.model.resources import SECRETS
from captfctl.terraform.state.backups import BackupSet, read_backups
from captfctl.terraform.state.protected import encode_data
from tests.support.cluster_world import NAMESPACE, World, annotated, variables
from tests.support.faults import Crash, HookedDoor, crashing_after

QUOTA = Forbidden('secrets "x" is forbidden: exceeded quota: small, requested: count/secrets=1')


def sets(world: World) -> tuple[BackupSet, ...]:
    return read_backups(world.door, world.owner)


def serials(world: World) -> list[int]:
    return [backup.serial for backup in sets(world)]


def chunk(world: World, index: int = 0) -> Any:
    secret = world.secret(names.state_secret(world.owner.suffix, index))
    assert secret is not None
    return secret


def change_state(world: World, serial: int, **changes: Any) -> bytes:
    """What somebody pushes; the compressed content."""
    secret = chunk(world)
    document = json.loads(gzip.decompress(secret.data[keys.TFSTATE]))
    payload = gzip.compress(json.dumps(document | {"serial": serial} | changes).encode(), mtime=0)
    secret.data[keys.TFSTATE] = payload
    world.door.update(SECRETS, secret)
    return payload


def split(world: World, payload: bytes, pieces: int) -> None:
    """The state as the backend writes one that is too large for a Secret."""
    base = chunk(world)
    size = -(-len(payload) // pieces)
    for index in range(pieces):
        piece = payload[index * size : (index + 1) * size]
        if index == 0:
            patch = {"data": encode_data({keys.TFSTATE: piece})}
            world.door.patch(SECRETS, base.metadata.name, NAMESPACE, patch)
            continue
        part = chunk(world)
        part.metadata.name = names.state_secret(world.owner.suffix, index)
        part.metadata.resource_version = part.metadata.uid = ""
        part.metadata.annotations, part.metadata.finalizers = {}, []
        part.data = {keys.TFSTATE: piece}
        world.door.create(SECRETS, part, NAMESPACE)


def new_serials(world: World, up_to: int) -> None:
    for serial in range(2, up_to + 1):
        world.advance(minutes=1)
        change_state(world, serial)
        world.run()


def keeping(world: World, keep: int) -> None:
    world.settings = replace(world.settings, state_backups=keep)


def refusing_backups(world: World, error: Exception, method: str = "create") -> HookedDoor:
    def before(name: str, resource: Any) -> None:
        if name == method and resource.plural == "secrets":
            raise error

    return HookedDoor(world.writes, before=before)


def test_the_state_of_a_first_apply_is_backed_up(world: World):
    job = world.apply()

    (backup,) = sets(world)
    state = chunk(world)
    assert backup.complete
    assert (backup.serial, backup.resources, backup.job) == (1, 1, job.metadata.name)
    assert backup.digest == hashlib.sha256(state.data[keys.TFSTATE]).hexdigest()
    assert backup.bytes == len(state.data[keys.TFSTATE])
    assert backup.inputs_hash == state.metadata.annotations[keys.INPUTS_HASH]
    (listed,) = world.obj.status.state_backups
    assert (listed.serial, listed.bytes) == (1, backup.bytes)
    assert listed.taken_at == backup.taken_at
    assert world.metrics.backups == ["taken"]


def test_a_backup_is_owned_protected_and_out_of_the_backends_reach(ready: World):
    secret = ready.secret(sets(ready)[0].name)
    assert secret is not None
    meta = secret.metadata
    assert meta.finalizers == [keys.STATE_PROTECTION]
    assert [ref.uid for ref in meta.owner_references] == [ready.obj.metadata.uid]
    assert meta.owner_references[0].controller is None
    assert not {keys.TFSTATE, keys.TFSTATE_SUFFIX, keys.TFSTATE_WORKSPACE} & set(meta.labels)
    assert meta.labels[keys.MOVE] == ""
    assert secret.data == chunk(ready).data


def test_a_new_serial_is_backed_up_and_told(ready: World):
    change_state(ready, 2)
    ready.run()

    assert serials(ready) == [2, 1]
    (note,) = [n for n in ready.events.notes if n.reason == "StateBackedUp"]
    assert "serial 2" in note.note
    assert f"captf-state-backup-{ready.owner.suffix}-2" in note.note
    assert not note.warning
    assert ready.obj.status.observed_state_serial == 2


def test_the_same_serial_is_not_backed_up_again(ready: World):
    ready.settle(4)

    assert [write for write in ready.writes.seen if write.endswith("secrets")] == []


def test_another_content_of_a_serial_becomes_a_set_of_its_own(ready: World):
    change_state(ready, 2)
    ready.run()
    ready.edit(annotated({keys.ACCEPT_STATE: "0e0f0000-0000-4000-8000-000000000000/2"}))
    payload = change_state(ready, 2, resources=[{"mode": "managed"}] * 3)
    ready.run()

    first, second = (backup for backup in sets(ready) if backup.serial == 2)
    named = {backup.name: backup for backup in (first, second)}
    base = f"captf-state-backup-{ready.owner.suffix}-2"
    digest = hashlib.sha256(payload).hexdigest()
    assert set(named) == {base, f"{base}-{digest[:8]}"}
    assert named[f"{base}-{digest[:8]}"].resources == 3


def test_a_state_of_several_secrets_is_copied_secret_by_secret(ready: World):
    payload = change_state(ready, 2)
    split(ready, payload, 3)
    ready.run()

    newest = sets(ready)[0]
    assert (newest.serial, newest.count, newest.complete) == (2, 3, True)
    copies = [ready.secret(name) for name in newest.secret_names]
    assert b"".join(copy.data[keys.TFSTATE] for copy in copies if copy) == payload
    assert ready.obj.status.state_backups[0].bytes == len(payload)


@pytest.mark.parametrize("made", [1, 2])
def test_a_backup_that_was_interrupted_is_completed_in_place(ready: World, made: int):
    split(ready, change_state(ready, 2), 3)
    with pytest.raises(Crash):
        ready.run(ready.env(door=crashing_after(ready.door, made)))
    assert [backup.complete for backup in sets(ready)] == [False, True]

    ready.advance(minutes=1)
    ready.settle(2)

    assert [(backup.serial, backup.complete) for backup in sets(ready)] == [(2, True), (1, True)]
    assert sets(ready)[0].name == f"captf-state-backup-{ready.owner.suffix}-2"


@pytest.mark.parametrize("writes", range(1, 8))
def test_a_manager_killed_after_any_write_leaves_one_backup_of_each_serial(
    ready: World, writes: int
):
    split(ready, change_state(ready, 2), 2)
    keeping(ready, 1)
    try:
        ready.run(ready.env(door=crashing_after(ready.door, writes)))
    except Crash:
        ready.settle(3)

    (backup,) = sets(ready)
    assert (backup.serial, backup.complete) == (2, True)
    assert [listed.serial for listed in ready.obj.status.state_backups] == [2]


def test_a_name_that_something_else_has_is_left_alone_and_told(ready: World):
    change_state(ready, 2)
    name = names.state_backup(ready.owner.suffix, 2)
    copy = ready.secret(sets(ready)[0].name)
    assert copy is not None
    copy.metadata.name, copy.metadata.resource_version, copy.metadata.uid = name, "", ""
    copy.metadata.labels, copy.data = {}, {"mine": b"x"}
    ready.door.create(SECRETS, copy, NAMESPACE)
    ready.run()

    mine = ready.secret(name)
    assert mine is not None and mine.data == {"mine": b"x"}
    assert ready.reason("StateReadable") == "True/StateNotBackedUp"
    assert name in ready.condition("StateReadable").message


def test_a_backup_that_cannot_be_written_is_told_and_tried_again(ready: World):
    change_state(ready, 2)
    result = ready.run(ready.env(door=refusing_backups(ready, QUOTA)))

    assert ready.reason("StateReadable") == "True/StateNotBackedUp"
    assert "exceeded quota" in ready.condition("StateReadable").message
    assert ready.events.warnings() == ["StateNotBackedUp"]
    assert ready.obj.status.observed_state_serial == 1
    assert ready.metrics.backups == ["taken", "skipped"]
    assert ready.reason("Ready") == "True/Ready"
    assert 0 < result.requeue_after <= 60

    ready.events.clear()
    result = ready.run(ready.env(door=refusing_backups(ready, QUOTA)))
    assert ready.events.reasons == []
    assert 0 < result.requeue_after <= 60

    ready.run()
    assert serials(ready) == [2, 1]
    assert ready.reason("StateReadable") == "True/StateRead"
    assert ready.obj.status.observed_state_serial == 2


def test_an_object_without_its_backup_does_not_rest(ready: World):
    ready.look_at_credentials()
    ready.settle(3)
    change_state(ready, 2)
    ready.run(ready.env(door=refusing_backups(ready, QUOTA)))
    ready.run(ready.env(door=refusing_backups(ready, QUOTA)))

    ready.run()

    assert serials(ready) == [2, 1]


def test_a_due_apply_does_not_wait_for_a_backup(ready: World):
    change_state(ready, 2)
    ready.edit(variables('{"region":"eu-2"}'))
    tried = []

    def before(name: str, resource: Any) -> None:
        if name == "create" and resource.plural == "secrets" and not tried:
            tried.append(name)
            raise QUOTA

    ready.run(ready.env(door=HookedDoor(ready.writes, before=before)))

    assert tried
    assert ready.active_job().metadata.labels[keys.OP] == "apply"


def test_backups_that_cannot_be_listed_are_no_error_of_the_pass(ready: World):
    change_state(ready, 2)

    def before(name: str, resource: Any) -> None:
        if name == "list" and resource.plural == "secrets" and resource.partial:
            raise Unavailable("down")

    ready.run(ready.env(door=HookedDoor(ready.writes, before=before)))

    assert ready.reason("StateReadable") == "True/StateNotBackedUp"


def test_a_state_that_goes_while_it_is_copied_needs_no_backup(ready: World):
    change_state(ready, 2)
    reads = []

    def before(name: str, resource: Any) -> None:
        # The list of the backups comes after the state was read, and before it is copied.
        if name == "list" and resource.plural == "secrets" and not reads:
            reads.append(name)
            state = names.state_secret(ready.owner.suffix)
            ready.door.patch(SECRETS, state, NAMESPACE, {"metadata": {"finalizers": None}})
            ready.door.delete(SECRETS, state, NAMESPACE)

    ready.run(ready.env(door=HookedDoor(ready.writes, before=before)))

    assert reads
    assert serials(ready) == [1]
    assert ready.obj.status.observed_state_serial == 2


def test_a_state_that_changes_while_it_is_copied_is_copied_by_the_next_pass(ready: World):
    change_state(ready, 2)
    reads = []

    def before(name: str, resource: Any) -> None:
        if name == "list" and resource.plural == "secrets" and not reads:
            reads.append(name)
            change_state(ready, 3)

    ready.run(ready.env(door=HookedDoor(ready.writes, before=before)))
    assert serials(ready) == [1]

    ready.run()
    assert serials(ready) == [3, 1]


def test_the_newest_five_are_kept(ready: World):
    new_serials(ready, 7)

    assert serials(ready) == [7, 6, 5, 4, 3]
    assert [backup.serial for backup in ready.obj.status.state_backups] == [7, 6, 5, 4, 3]
    assert ready.metrics.backups.count("pruned") == 2
    left = [name for name in ready.secrets() if "state-backup" in name]
    assert len(left) == 5


def test_fewer_to_keep_takes_the_oldest_away_with_the_next_backup(ready: World):
    new_serials(ready, 4)
    keeping(ready, 2)
    change_state(ready, 5)
    ready.run()

    assert serials(ready) == [5, 4]


def test_without_backups_to_keep_none_is_taken_and_none_is_deleted(ready: World):
    new_serials(ready, 3)
    keeping(ready, 0)
    change_state(ready, 4)
    ready.run()

    assert serials(ready) == [3, 2, 1]
    assert ready.obj.status.observed_state_serial == 4
    assert ready.reason("StateReadable") == "True/StateRead"


def test_a_state_that_was_there_before_there_were_backups_is_backed_up(world: World):
    keeping(world, 0)
    world.apply()
    assert sets(world) == ()

    keeping(world, 5)
    world.run()

    assert serials(world) == [1]


def test_what_is_asked_to_be_restored_is_not_pruned_and_does_not_count(ready: World):
    new_serials(ready, 7)  # 7 to 3 are left
    ready.edit(annotated({keys.RESTORE_STATE: "3"}))
    ready.settings = replace(ready.settings, state_backups=4)
    change_state(ready, 8)
    ready.run()

    assert serials(ready) == [8, 7, 6, 5, 3]


def test_an_incomplete_set_behind_the_newest_is_deleted(ready: World):
    payload = change_state(ready, 2)
    split(ready, payload, 2)
    ready.run()
    part = sets(ready)[0].secret_names[1]
    ready.door.patch(SECRETS, part, NAMESPACE, {"metadata": {"finalizers": None}})
    ready.door.delete(SECRETS, part, NAMESPACE)
    assert [backup.complete for backup in sets(ready)] == [False, True]

    ready.advance(minutes=1)
    whole = {"data": encode_data({keys.TFSTATE: payload})}
    ready.door.patch(SECRETS, names.state_secret(ready.owner.suffix), NAMESPACE, whole)
    ready.door.delete(SECRETS, names.state_secret(ready.owner.suffix, 1), NAMESPACE)
    change_state(ready, 3)
    ready.run()

    assert serials(ready) == [3, 1]
    assert all(backup.complete for backup in sets(ready))


def test_an_error_of_pruning_leaves_the_rest_to_the_next_backup(ready: World):
    new_serials(ready, 4)
    keeping(ready, 1)
    change_state(ready, 5)
    ready.run(ready.env(door=refusing_backups(ready, Unavailable("down"), "delete")))
    assert [backup.serial for backup in ready.obj.status.state_backups] == [5, 4, 3, 2, 1]
    assert ready.reason("StateReadable") == "True/StateRead"

    ready.advance(minutes=1)
    change_state(ready, 6)
    ready.run()

    assert serials(ready) == [6]
    assert [name for name in ready.secrets() if "state-backup" in name] == [sets(ready)[0].name]


def test_the_status_lists_sixteen(ready: World):
    keeping(ready, 50)
    new_serials(ready, 20)

    assert len(sets(ready)) == 20
    listed = [backup.serial for backup in ready.obj.status.state_backups]
    assert listed == list(range(20, 4, -1))


def test_a_deleting_object_takes_no_backup(ready: World):
    change_state(ready, 2)
    ready.delete()
    ready.run()

    assert serials(ready) == [1]


def test_a_held_state_is_not_backed_up(ready: World):
    change_state(ready, 9, lineage="ffff0000-0000-4000-8000-000000000000")
    ready.run()

    assert ready.reason("StateReadable") == "False/StateReplaced"
    assert serials(ready) == [1]


def test_an_encrypted_state_is_not_backed_up(ready: World):
    change_state(ready, 2, encryption_version="v0")
    ready.run()

    assert ready.reason("StateReadable") == "False/StateEncrypted"
    assert serials(ready) == [1]


def test_a_cleared_status_makes_no_second_backup(ready: World):
    obj = ready.obj
    obj.status = type(obj.status)(observed_generation=1)
    ready.door.update(ready.resource, obj, subresource="status")
    ready.writes.forget()
    ready.run()

    assert serials(ready) == [1]
    assert "create secrets" not in ready.writes.seen
    assert [backup.serial for backup in ready.obj.status.state_backups] == [1]


def test_no_secret_value_of_a_state_is_told(ready: World):
    outputs = {"token": {"value": "s3cr3t-value", "type": "string", "sensitive": True}}
    change_state(ready, 2, outputs=outputs)
    ready.run()

    backup = ready.secret(sets(ready)[0].name)
    assert backup is not None
    told = [note.note for note in ready.events.notes]
    told += [condition.message for condition in ready.obj.status.conditions]
    told += [*backup.metadata.annotations.values(), *backup.metadata.labels.values()]
    assert not [text for text in told if "s3cr3t-value" in text]
