"""A restore: asked for with an annotation, done once (state.md: Restoring a backup)."""

import contextlib
import gzip
import json
from typing import Any

import pytest

from captfctl.cluster.errors import Conflict, Unavailable
from captfctl.model import keys, names
from captfctl.model.core import Job, Pod
from captfctl.model.meta import ObjectMeta
from captfctl.model.owner import Owner
from captfctl.model.resources import JOBS, PODS, SECRETS
from captfctl.model.terraform import DeletionPolicy, JobPolicy, NameRef, VariablesSource
from captfctl.runs.run import Run
from captfctl.terraform.state.backups import read_backups
from captfctl.terraform.state.protected import encode_data
from captfctl.terraform.state.reader import DECOMPRESSED_MAX
from tests.reconcile.test_backups import change_state, chunk, keeping, new_serials, sets, split
from tests.support.cluster_world import KEY, NAMESPACE, World, annotated, variables
from tests.support.fake_runner import OUTPUTS, backup_secrets
from tests.support.faults import Crash, HookedDoor, crashing_after
from tests.support.stale import Stale

CONDITION = "RestoreJobSucceeded"
LINEAGE = "0e0f0000-0000-4000-8000-000000000000"


@pytest.fixture
def backed(ready: World) -> World:
    """An object with the serials 3, 2 and 1 of its state backed up; 3 is the current one."""
    new_serials(ready, 3)
    ready.events.clear()
    ready.writes.forget()
    ready.metrics.restores.clear()
    return ready


def ask(world: World, serial: object) -> None:
    world.edit(annotated({keys.RESTORE_STATE: str(serial)}))


def withdraw(world: World) -> None:
    world.edit(annotated({keys.RESTORE_STATE: None}))


def asked(world: World) -> bool:
    return keys.RESTORE_STATE in world.obj.metadata.annotations


def lose_state(world: World, index: int = 0) -> None:
    name = names.state_secret(world.owner.suffix, index)
    world.door.patch(SECRETS, name, NAMESPACE, {"metadata": {"finalizers": None}})
    world.door.delete(SECRETS, name, NAMESPACE)


def garble(world: World, data: bytes) -> None:
    patch = {"data": encode_data({keys.TFSTATE: data})}
    world.door.patch(SECRETS, names.state_secret(world.owner.suffix), NAMESPACE, patch)


def restores(world: World) -> list[Job]:
    return [job for job in world.jobs() if job.metadata.labels[keys.OP] == "restore"]


def serial(world: World) -> int:
    return int(json.loads(gzip.decompress(chunk(world).data[keys.TFSTATE]))["serial"])


def restore(world: World, wanted: int) -> Job:
    """Ask, and let the run do it; it is read by the next pass."""
    ask(world, wanted)
    world.run()
    job = world.active_job()
    world.advance(seconds=5)
    world.runner.succeed(job)
    return job


def hold_cluster_lease(world: World) -> None:
    """A machine of the cluster is changed, as the gate sees it."""
    machine = Owner("TerraformMachine", NAMESPACE, "m-1", "uid-of-m-1", "prod")
    run = Run(
        subject=machine,
        operation="apply",
        name="captf-m-m-1-apply-a1-abc123",
        deadline_seconds=3600,
    )
    assert world.env().leases.acquire(run) is None


def test_a_restore_pushes_the_backup_that_is_asked_for(backed: World):
    ask(backed, 2)
    backed.run()

    job = backed.active_job()
    meta = job.metadata
    assert meta.labels[keys.OP] == "restore"
    assert meta.annotations[keys.RESTORE_SERIAL] == "2"
    assert backup_secrets(job) == [f"captf-state-backup-{backed.owner.suffix}-2"]
    arguments = job.spec.template.spec.containers[0].args
    assert "--restore-chunks=1" in arguments
    assert "--restore-resources=1" in arguments
    assert ("restore", "RestoreRequested") in backed.metrics.decisions


def test_a_restore_that_succeeded_is_consumed_and_adopted(backed: World):
    hashed = chunk(backed).metadata.annotations[keys.INPUTS_HASH]
    job = restore(backed, 2)
    backed.run()

    assert not asked(backed)
    assert backed.reason(CONDITION) == "True/StateRestored"
    assert backed.obj.status.last_restored_serial == 2
    assert backed.obj.status.observed_state_serial == serial(backed) == 2
    assert backed.reason("StateReadable") == "True/StateRead"
    assert chunk(backed).metadata.annotations[keys.INPUTS_HASH] == hashed
    (note,) = [n for n in backed.events.notes if n.reason == "StateRestored"]
    assert (note.job, note.warning) == (job.metadata.name, False)
    assert "not managed any more" in note.note
    assert backed.metrics.restores == ["succeeded"]

    backed.settle(3)
    assert backed.running() == []
    assert backed.reason(CONDITION) == "True/StateRestored"
    assert backed.obj.status.last_restored_serial == 0
    assert backed.metrics.restores == ["succeeded"]


def test_a_restored_state_needs_no_new_backup_and_its_backup_is_kept(backed: World):
    keeping(backed, 2)
    restore(backed, 1)
    backed.settle(2)

    assert [backup.serial for backup in sets(backed)] == [3, 1]
    assert "StateBackedUp" not in backed.events.reasons


def test_the_serial_after_a_restored_one_is_backed_up_beside_the_old_one(backed: World):
    restore(backed, 1)
    backed.settle(2)
    backed.edit(variables('{"region":"eu-2"}'))
    backed.run()
    backed.runner.succeed(backed.active_job(), OUTPUTS | {"another": "one"})
    backed.settle(2)

    assert serial(backed) == 2
    assert sorted(backup.serial for backup in sets(backed)) == [1, 2, 2, 3]


def apply_with(world: World, region: str) -> Job:
    """A change that is about to be applied."""
    world.edit(variables(f'{{"region":"{region}"}}'))
    world.settle(3)
    world.advance(seconds=5)
    return world.active_job()


def test_an_apply_that_fails_later_does_not_make_the_state_that_of_the_restore(backed: World):
    restore(backed, 2)
    backed.settle(3)
    backed.runner.succeed(apply_with(backed, "eu-2"))
    backed.settle(3)
    applied = chunk(backed).metadata.annotations[keys.INPUTS_HASH]

    backed.runner.fail(apply_with(backed, "eu-3"))
    backed.settle(3)
    assert chunk(backed).metadata.annotations[keys.INPUTS_HASH] == applied


def test_a_lost_state_is_restored_and_nothing_is_applied(backed: World):
    lose_state(backed)
    backed.run()
    assert backed.reason("StateReadable") == "False/StateLost"
    message = backed.condition("StateReadable").message
    assert f"{keys.RESTORE_STATE}=<serial>" in message
    assert "3, 2, 1" in message

    restore(backed, 3)
    backed.settle(3)

    assert backed.reason("StateReadable") == "True/StateRead"
    assert backed.reason("Ready") == "True/Ready"
    assert sorted(backed.job_ops()) == ["apply", "restore"]


@pytest.mark.parametrize("damage", ["truncated", "garbage", "a lost chunk", "encrypted"])
def test_a_state_that_cannot_be_read_is_set_aside_and_another_one_restored(
    backed: World, damage: str
):
    payload = chunk(backed).data[keys.TFSTATE]
    if damage == "encrypted":
        change_state(backed, 4, encryption_version="v0")
    elif damage == "a lost chunk":
        split(backed, payload, 3)
        part = names.state_secret(backed.owner.suffix, 1)
        backed.door.delete(SECRETS, part, NAMESPACE)
    else:
        garble(backed, payload[:50] if damage == "truncated" else b"no state")
    was = chunk(backed).data[keys.TFSTATE]
    backed.run()
    assert backed.condition("StateReadable").status == "False"
    assert "3, 2, 1" in backed.condition("StateReadable").message

    ask(backed, 3)
    backed.run()
    job = backed.active_job()
    assert not [name for name in backed.secrets() if name.startswith("tfstate-")]
    (aside,) = (backup for backup in sets(backed) if not backup.complete)
    assert "set aside" in aside.defect
    kept = backed.secret(aside.name)
    assert kept is not None and kept.data[keys.TFSTATE] == was

    backed.runner.succeed(job)
    backed.settle(3)
    assert backed.reason("StateReadable") == "True/StateRead"
    assert serial(backed) == 3
    assert sorted(backed.job_ops()) == ["apply", "restore"]


def test_a_state_of_many_secrets_is_set_aside_in_the_order_of_its_chunks(backed: World):
    payload = chunk(backed).data[keys.TFSTATE]
    split(backed, payload, 12)
    garble(backed, b"no state")
    ask(backed, 3)
    backed.run()

    (aside,) = (backup for backup in sets(backed) if not backup.complete)
    secrets = [backed.secret(name) for name in aside.secret_names]
    size = -(-len(payload) // 12)
    assert b"".join(s.data[keys.TFSTATE] for s in secrets if s) == b"no state" + payload[size:]


def test_a_state_that_is_too_large_is_copied_before_another_one_is_put_in_its_place(backed: World):
    large = gzip.compress(b" " * (DECOMPRESSED_MAX + 1), mtime=0)
    garble(backed, large)
    backed.run()
    assert backed.reason("StateReadable") == "False/StateTooLarge"

    restore(backed, 3)
    (aside,) = (backup for backup in sets(backed) if not backup.complete)
    copy = backed.secret(aside.name)
    assert copy is not None and copy.data[keys.TFSTATE] == large
    assert "larger than 16 MiB" in aside.defect
    backed.settle(3)
    assert serial(backed) == 3


@pytest.mark.parametrize("who", ["", "me@laptop"], ids=["a pod of its own", "somebody else"])
def test_a_state_is_not_removed_while_its_lock_is_held(backed: World, who: str):
    """What cannot be read may be half written."""
    (job,) = backed.jobs()
    if not who:
        meta = ObjectMeta(name=f"{job.metadata.name}-other", namespace=NAMESPACE)
        backed.create(PODS, Pod(metadata=meta, spec=job.spec.template.spec))
    backed.runner.lock(job, who=who or f"captf@{job.metadata.name}-other")
    garble(backed, b"no state")
    ask(backed, 3)
    if who:
        assert backed.settle(2).requeue_after == 60
        assert backed.reason("StateReadable") == "False/StateLocked"
        assert "is not removed for the restore" in backed.condition("StateReadable").message
    else:
        with pytest.raises(Conflict, match="holds its lock"):
            backed.run()

    assert chunk(backed).data[keys.TFSTATE] == b"no state"
    assert restores(backed) == []
    backed.runner.lock(job, held=False)
    backed.settle(2)
    assert len(restores(backed)) == 1


def test_what_a_restore_replaced_and_a_later_one_put_back_is_a_backup_like_any_other(
    backed: World,
):
    backed.advance(minutes=1)
    change_state(backed, 9, lineage="ffff0000-0000-4000-8000-000000000000")
    restore(backed, 3)
    backed.settle(3)
    assert [b.replaced for b in sets(backed) if b.serial == 9] == [True]
    restore(backed, 9)
    backed.settle(3)
    assert [b.replaced for b in sets(backed) if b.serial == 9] == [False]
    lose_state(backed)
    backed.run()
    assert "9, 3, 2, 1" in backed.condition("StateReadable").message


def test_a_state_that_was_set_aside_goes_with_a_later_backup(backed: World):
    garble(backed, b"no state")
    restore(backed, 3)
    backed.settle(3)
    for number in (4, 5):
        backed.advance(minutes=1)
        change_state(backed, number)
        backed.run()

    assert all(backup.complete for backup in sets(backed))


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"lineage": "ffff0000-0000-4000-8000-000000000000"}, id="another lineage"),
        pytest.param({"resources": []}, id="emptied"),
    ],
)
def test_a_state_in_place_of_ours_is_kept_as_a_backup_and_ours_restored(
    backed: World, changes: dict[str, Any]
):
    change_state(backed, 9, **changes)
    backed.run()
    assert backed.reason("StateReadable") == "False/StateReplaced"
    assert "3, 2, 1" in backed.condition("StateReadable").message

    restore(backed, 3)
    backed.settle(3)

    assert serial(backed) == 3
    assert backed.reason("StateReadable") == "True/StateRead"
    assert sorted(backed.job_ops()) == ["apply", "restore"]
    assert [b.serial for b in sets(backed) if b.complete] == [9, 3, 2, 1]


@pytest.mark.parametrize("writes", range(1, 8))
def test_what_is_being_replaced_is_never_restored_in_place_of_its_backup(
    backed: World, writes: int
):
    """Both have the serial, and the copy of what is replaced is the newer one."""
    backed.advance(minutes=5)
    change_state(backed, 3, resources=[])
    ask(backed, 3)
    with contextlib.suppress(Crash):
        backed.run(backed.env(door=crashing_after(backed.door, writes)))
    backed.advance(minutes=5)
    backed.settle(3)
    (job,) = restores(backed)

    assert backup_secrets(job) == [names.state_backup(backed.owner.suffix, 3)]


def test_a_state_of_several_secrets_is_restored(backed: World):
    backed.advance(minutes=1)
    split(backed, change_state(backed, 4), 3)
    backed.run()
    for index in range(3):
        lose_state(backed, index)
    ask(backed, 4)
    backed.run()
    job = backed.active_job()

    assert backup_secrets(job) == list(sets(backed)[0].secret_names)
    assert len(backup_secrets(job)) == 3
    assert "--restore-chunks=3" in job.spec.template.spec.containers[0].args
    backed.runner.succeed(job)
    backed.settle(2)
    assert serial(backed) == 4


def test_without_a_backup_no_message_advises_a_restore(world: World):
    keeping(world, 0)
    world.apply()
    lose_state(world)
    world.run()

    message = world.condition("StateReadable").message
    assert keys.RESTORE_STATE not in message
    assert "back from a copy" in message


@pytest.mark.parametrize("value", ["abc", "0", "-3", "", "9", "1.5"])
def test_what_cannot_be_restored_is_told_once_and_starts_nothing(backed: World, value: str):
    ask(backed, value)
    backed.settle(3)

    assert backed.reason(CONDITION) == "False/RestoreBackupNotFound"
    assert backed.running() == []
    assert backed.metrics.restores == ["not_found"]
    assert backed.events.reasons == ["StateRestoreFailed"]
    assert backed.obj.status.last_restored_serial == 0


def test_a_missing_backup_is_told_with_the_serials_that_are_there(backed: World):
    ask(backed, 9)
    backed.run()
    assert "serials 3, 2, 1" in backed.condition(CONDITION).message

    ask(backed, 8)
    backed.run()
    assert backed.metrics.restores == ["not_found", "not_found"]


def test_without_the_request_what_was_said_of_it_is_gone(backed: World):
    ask(backed, 9)
    backed.settle(2)
    withdraw(backed)
    backed.settle(2)

    assert backed.reason(CONDITION) == ""
    assert backed.events.warnings() == ["StateRestoreFailed"]


def test_a_held_object_says_that_a_backup_is_not_there(backed: World):
    lose_state(backed)
    ask(backed, 9)
    backed.settle(2)

    assert backed.reason("StateReadable") == "False/StateLost"
    assert backed.reason(CONDITION) == "False/RestoreBackupNotFound"
    assert restores(backed) == []


def test_blanks_around_a_serial_do_not_matter(backed: World):
    ask(backed, " 2 ")
    backed.run()
    job = backed.active_job()
    assert job.metadata.annotations[keys.RESTORE_SERIAL] == "2"
    backed.runner.succeed(job)
    backed.run()
    assert not asked(backed)


def test_a_refused_request_is_looked_at_again(backed: World):
    backed.look_at_credentials()
    gone = backed.secret(names.state_backup(backed.owner.suffix, 2))
    assert gone is not None
    backed.door.patch(SECRETS, gone.metadata.name, NAMESPACE, {"metadata": {"finalizers": None}})
    backed.door.delete(SECRETS, gone.metadata.name, NAMESPACE)
    ask(backed, 2)
    backed.run()
    result = backed.run()
    assert backed.reason(CONDITION) == "False/RestoreBackupNotFound"
    assert 0 < result.requeue_after <= 60

    gone.metadata.resource_version = gone.metadata.uid = ""
    backed.door.create(SECRETS, gone, NAMESPACE)
    backed.run()
    assert len(restores(backed)) == 1


@pytest.mark.parametrize("extra", [True, False])
def test_an_incomplete_backup_is_not_restored(backed: World, extra: bool):
    name = names.state_backup(backed.owner.suffix, 2)
    if extra:
        other = backed.secret(name)
        assert other is not None
        other.metadata.name, other.metadata.uid = "another", ""
        other.metadata.resource_version = ""
        backed.door.create(SECRETS, other, NAMESPACE)
    else:
        patch = {"metadata": {"annotations": {keys.BACKUP_CHUNKS: "2"}}}
        backed.door.patch(SECRETS, name, NAMESPACE, patch)
    ask(backed, 2)
    backed.run()

    assert "is not complete" in backed.condition(CONDITION).message
    assert restores(backed) == []


def test_a_damaged_backup_is_not_restored(backed: World):
    name = names.state_backup(backed.owner.suffix, 2)
    patch = {"data": encode_data({keys.TFSTATE: b"other"})}
    backed.door.patch(SECRETS, name, NAMESPACE, patch)
    ask(backed, 2)
    backed.run()

    assert backed.reason(CONDITION) == "False/RestoreBackupNotFound"
    assert "damaged" in backed.condition(CONDITION).message
    assert restores(backed) == []


def failed(world: World, wanted: int = 2, step: str = "state-push") -> Job:
    ask(world, wanted)
    world.run()
    job = world.active_job()
    world.runner.fail(job, step)
    world.run()
    return job


def test_a_restore_that_failed_is_not_repeated_by_itself(backed: World):
    job = failed(backed)

    assert asked(backed)
    assert backed.reason(CONDITION) == "False/RestoreFailed"
    message = backed.condition(CONDITION).message
    assert job.metadata.name in message
    assert "state-push" in message
    assert "remove it" in message
    assert backed.obj.status.last_restored_serial == 2
    assert backed.metrics.restores == ["failed"]
    assert "StateRestoreFailed" in backed.events.warnings()

    backed.settle(2)
    backed.door.delete(JOBS, job.metadata.name, NAMESPACE)
    backed.advance(hours=2)
    backed.settle(3)
    assert restores(backed) == []
    assert backed.reason(CONDITION) == "False/RestoreFailed"
    assert backed.metrics.restores == ["failed"]


def without_status(world: World) -> None:
    """As after a move."""
    lost = ("conditions", "lastRestoredSerial", "observedStateSerial", "stateBackups", "settled")
    patch = {"status": dict.fromkeys(lost)}
    world.door.patch(world.resource, world.key[1], NAMESPACE, patch, subresource="status")


def test_a_failed_restore_is_not_repeated_by_a_move_of_its_object(backed: World):
    job = failed(backed)
    backed.settle(2)
    backed.door.delete(JOBS, job.metadata.name, NAMESPACE)
    without_status(backed)
    backed.settle(3)

    assert restores(backed) == []
    assert backed.reason(CONDITION) == "False/RestoreFailed"
    assert "remove it" in backed.condition(CONDITION).message
    assert backed.obj.status.last_restored_serial == 2

    ask(backed, 1)
    backed.run()
    assert backed.active_job().metadata.annotations[keys.RESTORE_SERIAL] == "1"
    assert keys.RESTORE_FAILED not in backed.obj.metadata.annotations


def test_a_failed_restore_whose_status_was_lost_is_tried_again_when_it_is_asked_for_again(
    backed: World,
):
    job = failed(backed)
    backed.door.delete(JOBS, job.metadata.name, NAMESPACE)
    without_status(backed)
    withdraw(backed)
    backed.settle(2)
    assert keys.RESTORE_FAILED not in backed.obj.metadata.annotations
    ask(backed, 2)
    backed.run()
    assert len(restores(backed)) == 1


def test_a_failed_restore_is_tried_again_when_it_is_asked_for_again(backed: World):
    first = failed(backed)
    withdraw(backed)
    backed.settle(2)
    assert backed.reason(CONDITION) == ""
    assert backed.obj.status.last_restored_serial == 0

    ask(backed, 2)
    backed.run()
    again = backed.active_job()
    assert again.metadata.name != first.metadata.name
    backed.runner.succeed(again)
    backed.settle(2)
    assert backed.reason(CONDITION) == "True/StateRestored"


def test_a_failed_restore_is_no_reason_to_believe_an_emptied_state(backed: World):
    change_state(backed, 4, resources=[])
    backed.run()
    failed(backed, 3)
    backed.settle(3)

    assert backed.reason("StateReadable") == "False/StateReplaced"
    assert backed.running() == []


def test_the_same_serial_is_restored_again_when_it_is_asked_for_at_once(backed: World):
    first = restore(backed, 2)
    backed.run()
    assert backed.obj.status.last_restored_serial == 2
    ask(backed, 2)
    backed.settle(2)

    again = backed.active_job()
    assert again.metadata.name != first.metadata.name
    assert again.metadata.annotations[keys.RESTORE_SERIAL] == "2"


@pytest.mark.parametrize("between", [None, "1", "no serial"])
@pytest.mark.parametrize("earlier", ["succeeded", "failed"])
def test_a_request_that_has_to_wait_is_not_taken_for_the_one_before(
    backed: World, earlier: str, between: str | None
):
    if earlier == "succeeded":
        restore(backed, 2)
        backed.run()
    else:
        failed(backed)
    hold_cluster_lease(backed)
    if between is None and earlier == "failed":
        withdraw(backed)
        backed.run()
    elif between is not None:
        ask(backed, between)
        backed.run()
    ask(backed, 2)
    for _ in range(2):
        backed.run()
        assert backed.reason(CONDITION).startswith("Unknown/WaitingFor")
    backed.advance(seconds=181)
    backed.run()

    assert backed.active_job().metadata.annotations[keys.RESTORE_SERIAL] == "2"


def test_another_serial_is_tried_after_a_failure(backed: World):
    failed(backed)
    ask(backed, 1)
    backed.run()

    assert backed.active_job().metadata.annotations[keys.RESTORE_SERIAL] == "1"


def test_a_restore_that_its_deadline_ended_counts_as_failed(backed: World):
    ask(backed, 2)
    backed.run()
    backed.runner.end(backed.active_job(), ok=False, result=None, reason="DeadlineExceeded")
    backed.settle(2)

    assert backed.reason(CONDITION) == "False/RestoreFailed"
    assert "deadline" in backed.condition(CONDITION).message
    assert backed.running() == []


def test_a_held_object_whose_restore_failed_stays_held(backed: World):
    lose_state(backed)
    failed(backed)
    backed.settle(2)

    assert backed.reason("StateReadable") == "False/StateLost"
    assert backed.running() == []


def test_a_restore_comes_before_a_due_apply_and_knows_no_backoff(backed: World):
    backed.edit(variables('{"region":"eu-2"}'))
    backed.run()
    backed.runner.fail(backed.active_job(), "plan")
    backed.settle(2)
    assert backed.running() == []
    ask(backed, 2)
    backed.run()

    assert backed.active_job().metadata.labels[keys.OP] == "restore"


def test_a_restore_needs_no_inputs(backed: World):
    lose_state(backed)
    nowhere = VariablesSource(secret_ref=NameRef(name="nowhere"))
    backed.edit(lambda obj: obj.spec.variables_from.append(nowhere))
    ask(backed, 3)
    backed.run()

    assert len(restores(backed)) == 1


def test_a_restore_does_not_wait_for_a_valid_job_policy(backed: World):
    policy = JobPolicy(lock_timeout_seconds=600, active_deadline_seconds=600)
    backed.edit(lambda obj: setattr(obj.spec, "jobs", policy))
    ask(backed, 2)
    backed.run()

    assert len(restores(backed)) == 1


def test_a_paused_object_restores_nothing(backed: World):
    backed.edit(annotated({keys.PAUSED: "true", keys.RESTORE_STATE: "2"}))
    backed.settle(3)

    assert restores(backed) == []


def test_a_request_that_is_gone_meanwhile_starts_nothing(backed: World):
    ask(backed, 2)

    cache = Stale(backed)
    withdraw(backed)
    with contextlib.suppress(Conflict):
        backed.run(backed.env(cache=cache))

    assert restores(backed) == []


def test_a_deletion_whose_state_reads_destroys_and_restores_nothing(backed: World):
    ask(backed, 2)
    backed.delete()
    backed.run()

    assert backed.active_job().metadata.labels[keys.OP] == "destroy"
    assert restores(backed) == []


def test_a_held_deletion_is_restored_and_then_destroyed(backed: World):
    lose_state(backed)
    backed.delete()
    backed.settle(2)
    assert "deletion is held" in backed.condition("StateReadable").message
    assert "3, 2, 1" in backed.condition("StateReadable").message

    job = restore(backed, 3)
    assert job.metadata.labels[keys.OP] == "restore"
    backed.settle(2)
    destroy = backed.active_job()
    assert destroy.metadata.labels[keys.OP] == "destroy"
    backed.runner.succeed(destroy)
    backed.settle(2)
    assert backed.gone
    assert not [name for name in backed.secrets() if "state" in name]


def test_retain_wins_over_a_restore(backed: World):
    lose_state(backed)
    backed.edit(lambda obj: setattr(obj.spec, "deletion_policy", DeletionPolicy.RETAIN))
    ask(backed, 3)
    backed.delete()
    backed.settle(2)

    assert backed.gone
    assert restores(backed) == []


def test_a_restore_of_a_backup_without_a_hash_takes_the_hash_away(backed: World):
    name = names.state_backup(backed.owner.suffix, 2)
    patch = {"metadata": {"annotations": {keys.INPUTS_HASH: None}}}
    backed.door.patch(SECRETS, name, NAMESPACE, patch)
    restore(backed, 2)
    backed.run()

    assert keys.INPUTS_HASH not in chunk(backed).metadata.annotations
    backed.run()
    assert ("apply", "StateWithoutInputsHash") in backed.metrics.decisions


def test_a_restored_state_of_other_inputs_is_applied_to_the_current_ones(backed: World):
    backed.edit(variables('{"region":"eu-2"}'))
    backed.run()
    backed.runner.succeed(backed.active_job())
    backed.settle(2)
    restore(backed, 3)
    backed.settle(2)

    assert backed.active_job().metadata.labels[keys.OP] == "apply"
    assert ("apply", "InputsChanged") in backed.metrics.decisions


def test_a_conflict_while_the_request_is_consumed_reads_the_job_again(backed: World):
    job = restore(backed, 2)
    conflicts = []

    def before(name: str, resource: Any) -> None:
        if name == "patch" and resource.plural == "terraformclusters" and not conflicts:
            conflicts.append(name)
            backed.edit(annotated({"a": "b"}))

    with contextlib.suppress(Conflict):
        backed.run(backed.env(door=HookedDoor(backed.writes, before=before)))
    assert conflicts
    live = backed.door.get(JOBS, job.metadata.name, NAMESPACE)
    assert keys.BOOKKEPT not in live.metadata.annotations

    backed.settle(3)
    assert not asked(backed)
    assert backed.reason(CONDITION) == "True/StateRestored"
    assert len(restores(backed)) == 1


@pytest.mark.parametrize("writes", range(1, 16))
@pytest.mark.parametrize("held", [True, False], ids=["state lost", "state there"])
def test_a_manager_killed_after_any_write_restores_once(backed: World, writes: int, *, held: bool):
    """From the request to the end of the restore: nothing is applied, and it is consumed once."""
    if held:
        lose_state(backed)
    ask(backed, 2)
    budget = writes
    for _ in range(12):
        door = crashing_after(backed.door, budget)
        try:
            backed.run(backed.env(door=door))
        except Crash:
            budget = 10_000
        for job in backed.running():
            if job.metadata.labels[keys.OP] == "restore":
                backed.runner.succeed(job)
    backed.settle(2)

    assert len(restores(backed)) == 1
    assert not asked(backed)
    assert serial(backed) == 2
    assert sorted(backed.job_ops()) == ["apply", "restore"]
    assert backed.reason("StateReadable") == "True/StateRead"
    assert backed.metrics.restores.count("succeeded") <= 1


def test_backups_that_cannot_be_read_are_no_reason_to_refuse(backed: World):
    ask(backed, 2)

    def before(name: str, resource: Any) -> None:
        if name == "list" and resource.plural == "secrets":
            raise Unavailable("down")

    with pytest.raises(Unavailable):
        backed.run(backed.env(door=HookedDoor(backed.writes, before=before)))
    assert backed.reason(CONDITION) == ""

    backed.run()
    assert len(restores(backed)) == 1


def test_a_restore_that_has_not_begun_goes_with_its_request(backed: World):
    ask(backed, 2)
    backed.run()
    backed.runner.wait_for_image(backed.active_job(), "ImagePullBackOff", "not found")
    withdraw(backed)
    backed.advance(minutes=1)
    backed.settle(2)

    assert restores(backed) == []
    assert backed.key == KEY


def test_the_restore_of_a_held_deletion_that_has_not_begun_is_not_replaced(backed: World):
    lose_state(backed)
    ask(backed, 3)
    backed.delete()
    backed.run()
    job = backed.active_job()
    backed.runner.wait_for_image(job, "CreateContainerConfigError", "no node")
    backed.advance(seconds=40)
    backed.settle(2)

    assert [job.metadata.uid for job in restores(backed)] == [job.metadata.uid]


def test_the_status_lists_the_backups_when_a_restore_is_asked_for(backed: World):
    for backup in read_backups(backed.door, backed.owner):
        if backup.serial != 3:
            for name in backup.secret_names:
                patch = {"metadata": {"finalizers": None}}
                backed.door.patch(SECRETS, name, NAMESPACE, patch)
                backed.door.delete(SECRETS, name, NAMESPACE)
    ask(backed, 1)
    backed.run()

    assert [listed.serial for listed in backed.obj.status.state_backups] == [3]
