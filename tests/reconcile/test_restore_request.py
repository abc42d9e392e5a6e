"""What a restore is checked for before it is asked for (state.md: Asking for a restore)."""

import gzip
from datetime import timedelta
from typing import Any

import pytest

from captfctl.cluster.errors import Conflict, Forbidden
from captfctl.model import keys, names
from captfctl.model.core import Lease, LeaseSpec
from captfctl.model.kinds import CLUSTER, MACHINE
from captfctl.model.meta import ObjectMeta
from captfctl.model.resources import LEASES, SECRETS, TERRAFORM_CLUSTERS
from captfctl.model.terraform import DeletionPolicy
from captfctl.reconcile.restore_asking import Outcome, Place, Result, ask, cancel
from captfctl.reconcile.restore_list import list_backups
from captfctl.reconcile.restore_request import Proposal, Refused, Rule, Wish, check
from captfctl.reconcile.restore_situation import Situation
from captfctl.terraform.state.protected import encode_data
from captfctl.terraform.state.reader import DECOMPRESSED_MAX
from runner import kept
from tests.support.cluster_world import NAMESPACE, World, annotated
from tests.support.doors import Overridden
from tests.support.machine_world import MachineWorld
from tests.support.states import LINEAGE, TAKEN, payload, put_backup, put_state

OLD = ("aws_vpc.main", "aws_subnet.a")
NEW = (*OLD, "aws_subnet.b", "aws_subnet.c")
OTHER = "11111111-4b5e-4cc5-8a52-1f0c9b0f6f0e"


@pytest.fixture
def world() -> World:
    """A cluster with a finalizer, a state of serial 7 and an earlier backup of serial 5."""
    world = World().populate()
    world.run()
    put_state(world.door, world.owner, 7, NEW, inputs_hash="h2:0")
    put_backup(world.door, world.owner, 5, OLD)
    return world


def place(world: World, door: Any = None) -> Place:
    namespace, name = world.key
    return Place(door or world.door, world.kind, namespace, name)


def situation(world: World) -> Situation:
    return place(world).look()


class Person:
    """Types the object's name, or what is given; None: there is nobody."""

    def __init__(self, answer: bool | None = True) -> None:
        self.answer = answer
        self.shown: list[Proposal] = []

    def show(self, _now: Situation, proposal: Proposal) -> None:
        self.shown.append(proposal)

    def confirm(self, _now: Situation) -> bool | None:
        return self.answer


def restore(world: World, serial: int | None = 5, *, door: Any = None, **more: Any) -> Outcome:
    person = more.pop("person", Person(answer=None))
    yes, dry_run = more.pop("yes", True), more.pop("dry_run", False)
    return ask(place(world, door), Wish(serial=serial, **more), person, yes=yes, dry_run=dry_run)


def refused(world: World, serial: int | None = 5, **more: Any) -> Refused:
    with pytest.raises(Refused) as caught:
        restore(world, serial, **more)
    return caught.value


def pending(world: World) -> str | None:
    annotations: dict[str, str] = world.obj.metadata.annotations
    return annotations.get(keys.RESTORE_STATE)


def status(world: World, **fields: Any) -> None:
    patch = {"status": fields}
    world.door.patch(world.resource, world.key[1], world.key[0], patch, subresource="status")


def remove(world: World, secret: str) -> None:
    world.door.patch(SECRETS, secret, NAMESPACE, {"metadata": {"finalizers": None}})
    world.door.delete(SECRETS, secret, NAMESPACE)


def test_each_refusal_comes_in_its_order():
    """Everything is wrong at first; what a refusal names is mended, and the next one comes."""
    world = World().populate()
    world.run()
    door, owner = world.door, world.owner
    found: list[int] = []

    def next_refusal(**more: Any) -> None:
        caught = refused(world, yes=False, person=Person(answer=None), **more)
        found.append(int(caught.rule))
        assert pending(world) in (None, "3")

    put_state(door, owner, 7, NEW, lineage=OTHER, retained_from="earlier")
    backup = put_backup(door, owner, 5, OLD, chunks=2, without=1)
    world.edit(annotated({keys.RESTORE_STATE: "3", keys.PAUSED: ""}))
    world.edit(lambda obj: setattr(obj.spec, "deletion_policy", DeletionPolicy.RETAIN))
    status(world, lastRestoredSerial=5)
    world.delete()
    next_refusal()

    remove(world, backup)
    put_backup(door, owner, 5, OLD, BACKUP_DIGEST="0" * 64)
    next_refusal()

    remove(world, backup)
    put_backup(door, owner, 5, OLD)
    next_refusal()

    labels = {"metadata": {"labels": {keys.RETAINED_FROM_UID: None}}}
    state = names.state_secret(owner.suffix)
    door.patch(SECRETS, state, NAMESPACE, labels)
    next_refusal()

    world.edit(lambda obj: setattr(obj.spec, "deletion_policy", None))
    next_refusal()

    replaced = {"type": "StateReadable", "status": "False", "reason": "StateReplaced"}
    when = {"message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    status(world, conditions=[replaced | when])
    next_refusal()

    status(world, lastRestoredSerial=None)
    next_refusal()
    next_refusal(replace=True)

    world.edit(annotated({keys.PAUSED: None}))
    next_refusal(replace=True)

    remove(world, state)
    put_state(door, owner, 5, OLD)
    next_refusal(replace=True)

    remove(world, state)
    put_state(door, owner, 7, NEW)
    next_refusal(replace=True)
    assert found == list(range(Rule.NO_BACKUP, Rule.UNCONFIRMED + 1))


def test_an_object_that_does_not_exist_is_refused(world: World):
    gone = Place(world.door, CLUSTER, NAMESPACE, "other")
    with pytest.raises(Refused) as caught:
        ask(gone, Wish(serial=1), Person(), yes=True, dry_run=False)
    assert caught.value.rule is Rule.NOT_FOUND


def test_a_confirmed_restore_is_asked_for_with_the_serial(world: World):
    person = Person()
    outcome = restore(world, person=person, yes=False)
    assert outcome.result is Result.REQUESTED
    assert pending(world) == "5"
    (shown,) = person.shown
    assert shown.forgets == ("aws_subnet.b", "aws_subnet.c")
    assert shown.returns == ()


def test_a_name_that_is_not_the_object_s_changes_nothing(world: World):
    assert refused(world, person=Person(answer=False), yes=False).rule is Rule.UNCONFIRMED
    assert pending(world) is None


def test_a_dry_run_shows_the_patch_and_writes_nothing(world: World):
    outcome = restore(world, dry_run=True, yes=False)
    assert outcome.result is Result.DRY_RUN
    assert outcome.patch == {"metadata": {"annotations": {keys.RESTORE_STATE: "5"}}}
    assert pending(world) is None


def test_a_missing_chunk_is_named(world: World):
    """Case 58."""
    put_backup(world.door, world.owner, 6, NEW, chunks=3, without=1)
    caught = refused(world, 6)
    assert caught.rule is Rule.NO_BACKUP
    assert "chunk 1 of 3 is missing" in caught.why


def test_a_serial_that_was_never_backed_up_is_told_with_those_that_were(world: World):
    caught = refused(world, 4)
    assert caught.rule is Rule.NO_BACKUP
    assert "complete ones of serial 5" in caught.why


@pytest.mark.parametrize(
    ("holds", "notes", "why"),
    [
        (6, {"BACKUP_DIGEST": "0" * 64}, "digest"),
        (6, {"BACKUP_LINEAGE": OTHER}, "lineage"),
        (6, {"BACKUP_RESOURCES": "9"}, "number of resources"),
        (7, {"BACKUP_SERIAL": "6"}, "serial"),
    ],
)
def test_a_backup_that_is_not_what_is_recorded_of_it_is_refused(world: World, holds, notes, why):
    """Case 59."""
    name = names.state_backup(world.owner.suffix, 6)
    put_backup(world.door, world.owner, holds, NEW, name=name, **notes)
    caught = refused(world, 6)
    assert caught.rule is Rule.DAMAGED
    assert why in caught.why


def test_another_lineage_needs_a_flag(world: World):
    """Case 60."""
    put_backup(world.door, world.owner, 6, NEW, lineage=OTHER)
    assert refused(world, 6).rule is Rule.OTHER_LINEAGE
    assert restore(world, 6, allow_lineage_change=True).result is Result.REQUESTED
    assert pending(world) == "6"


def test_a_serial_that_was_tried_is_told_how_to_be_tried_again(world: World):
    """Case 61."""
    status(world, lastRestoredSerial=5)
    caught = refused(world)
    assert caught.rule is Rule.TRIED
    assert "--cancel" in caught.do
    assert "lastRestoredSerial" in caught.do


def test_an_object_whose_deletion_waits_for_its_lost_state_may_get_it_back(world: World):
    """Case 62."""
    remove(world, names.state_secret(world.owner.suffix))
    world.delete()
    assert restore(world).result is Result.REQUESTED
    assert pending(world) == "5"


def test_an_object_that_is_being_destroyed_gets_nothing_back(world: World):
    world.delete()
    assert refused(world).rule is Rule.DELETING


def test_the_latest_is_the_newest_complete_one(world: World):
    later = TAKEN + timedelta(hours=1)
    put_backup(world.door, world.owner, 6, NEW[:3], taken=later)
    put_backup(
        world.door, world.owner, 8, NEW, taken=later + timedelta(hours=1), chunks=2, without=0
    )
    assert restore(world, None).serial == "6"


def test_without_any_complete_backup_there_is_no_latest():
    world = World().populate()
    assert refused(world, None).rule is Rule.NO_BACKUP


def test_the_same_request_twice_is_written_once(world: World):
    restore(world)
    version = world.obj.metadata.resource_version
    assert restore(world).result is Result.ALREADY_REQUESTED
    assert world.obj.metadata.resource_version == version


def test_another_request_is_replaced_only_when_that_is_said(world: World):
    put_backup(world.door, world.owner, 6, NEW[:3])
    restore(world, 6)
    assert refused(world, 5).rule is Rule.ANOTHER_REQUEST
    assert pending(world) == "6"
    restore(world, 5, replace=True)
    assert pending(world) == "5"


def warnings(world: World, serial: int = 5) -> str:
    found = check(situation(world), Wish(serial=serial))
    assert isinstance(found, Proposal)
    return "\n".join(found.warnings)


def test_resources_that_the_backup_does_not_know_are_warned_of(world: World):
    assert "serial 7 with 4 resources, the backup at 5 with 2" in warnings(world)


def test_several_backups_of_a_serial_are_told_and_the_newest_is_taken(world: World):
    name = names.state_backup(world.owner.suffix, 5, "0123456789")
    later = TAKEN + timedelta(hours=1)
    put_backup(world.door, world.owner, 5, NEW[:3], name=name, taken=later)
    found = check(situation(world), Wish(serial=5))
    assert isinstance(found, Proposal)
    assert found.loaded.backup.name == name
    assert "2 complete backups have serial 5" in found.warnings[0]


def test_a_running_job_is_warned_of(world: World):
    job = {"name": "captf-c-prod-drift-a1-000000", "operation": "drift", "attempt": 1}
    status(world, activeJob=job)
    assert "Job captf-c-prod-drift-a1-000000 runs: the restore waits for it" in warnings(world)


def test_a_lock_of_somebody_else_is_warned_of(world: World):
    lease = Lease(
        metadata=ObjectMeta(name=names.state_lock(world.owner.suffix), namespace=NAMESPACE),
        spec=LeaseSpec(holder_identity="somebody"),
    )
    world.door.create(LEASES, lease)
    assert "locked by something else" in warnings(world)


def test_missing_credentials_are_warned_of(world: World):
    told = {"type": "IdentityAllowed", "status": "False", "reason": "IdentityNotAllowed"}
    when = {"message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    status(world, conditions=[told | when])
    assert "IdentityAllowed is False" in warnings(world)


def test_other_inputs_and_unknown_ones_are_warned_of(world: World):
    assert "other inputs" not in warnings(world)
    put_backup(world.door, world.owner, 4, OLD, inputs_hash="h2:1")
    assert "other inputs than the state: an apply follows" in warnings(world, 4)
    put_backup(world.door, world.owner, 3, OLD, inputs_hash="")
    assert "does not tell which inputs" in warnings(world, 3)


def test_a_machine_is_held_after_a_backup_without_inputs():
    world = MachineWorld().populate()
    put_state(world.door, world.owner, 7, NEW)
    put_backup(world.door, world.owner, 5, OLD, inputs_hash="")
    assert world.kind is MACHINE
    assert "a machine is held after it" in warnings(world)


# Others write at the same time.


def interfering(world: World, *changes: Any) -> Any:
    """A door on which somebody else is quicker, once for each change."""
    left = list(changes)

    def patch(resource: Any, name: str, *args: Any, **options: Any) -> Any:
        if left:
            left.pop(0)()
            raise Conflict("outdated")
        return world.door.patch(resource, name, *args, **options)

    return Overridden(world.door, patch={TERRAFORM_CLUSTERS.plural: patch})


def test_a_change_that_means_nothing_is_looked_at_and_written_over(world: World):
    door = interfering(world, lambda: world.edit(annotated({"a": "b"})))
    assert restore(world, door=door).result is Result.REQUESTED
    assert pending(world) == "5"


def test_after_a_change_everything_is_checked_again(world: World):
    door = interfering(world, lambda: world.edit(annotated({keys.PAUSED: ""})))
    assert refused(world, door=door).rule is Rule.PAUSED
    assert pending(world) is None


def test_a_backup_that_was_taken_since_is_not_what_was_confirmed(world: World):
    later = TAKEN + timedelta(hours=1)
    name = names.state_backup(world.owner.suffix, 5, "0123456789")
    door = interfering(
        world, lambda: put_backup(world.door, world.owner, 5, NEW[:3], name=name, taken=later)
    )
    assert refused(world, door=door).rule is Rule.NOT_WRITTEN
    assert pending(world) is None


def test_who_is_twice_too_slow_is_refused(world: World):
    door = interfering(world, lambda: None, lambda: None)
    assert refused(world, door=door).rule is Rule.NOT_WRITTEN


def test_what_the_server_denies_is_told(world: World):
    def patch(*_: Any, **__: Any) -> None:
        raise Forbidden("user may not patch")

    door = Overridden(world.door, patch={TERRAFORM_CLUSTERS.plural: patch})
    caught = refused(world, door=door)
    assert caught.rule is Rule.NOT_WRITTEN
    assert "user may not patch" in caught.why


# Taking a request back.


def test_a_request_is_taken_back(world: World):
    restore(world)
    assert cancel(place(world), dry_run=True).result is Result.DRY_RUN
    assert pending(world) == "5"
    outcome = cancel(place(world), dry_run=False)
    assert (outcome.result, outcome.serial, outcome.job) == (Result.CANCELED, "5", "")
    assert pending(world) is None


def test_without_a_request_there_is_nothing_to_take_back(world: World):
    """Case 63."""
    version = world.obj.metadata.resource_version
    assert cancel(place(world), dry_run=False).result is Result.NOTHING_TO_CANCEL
    assert world.obj.metadata.resource_version == version


def test_a_restore_that_runs_is_not_stopped_and_is_told(world: World):
    restore(world)
    job = {"name": "captf-c-prod-restore-a1-000000", "operation": "restore", "attempt": 1}
    status(world, activeJob=job)
    assert cancel(place(world), dry_run=False).job == "captf-c-prod-restore-a1-000000"


def test_a_request_is_taken_back_from_under_somebody_else(world: World):
    restore(world)
    door = interfering(world, lambda: world.edit(annotated({"a": "b"})))
    assert cancel(place(world, door), dry_run=False).result is Result.CANCELED
    door = interfering(world, lambda: None, lambda: None)
    restore(world)
    with pytest.raises(Refused):
        cancel(place(world, door), dry_run=False)


# The list.


def test_the_list_tells_what_each_backup_is_to_the_state(world: World):
    door, owner = world.door, world.owner

    def add(serial: int, hours: int, resources: tuple[str, ...], **more: Any) -> None:
        put_backup(door, owner, serial, resources, taken=TAKEN + timedelta(hours=hours), **more)

    add(7, 9, NEW)
    add(6, 8, NEW[:3], lineage=OTHER)
    add(4, -1, OLD, chunks=2, without=0)
    add(3, -2, OLD, BACKUP_DIGEST="0" * 64)
    status(world, lastRestoredSerial=6)
    world.edit(annotated({keys.RESTORE_STATE: "5"}))
    listed = {one.loaded.backup.serial: one for one in list_backups(situation(world))}
    assert list(listed) == [7, 6, 5, 4, 3]
    assert [one.forgets for one in listed.values()] == [0, 1, 2, None, None]
    assert [one.current for one in listed.values()] == [True, False, False, False, False]
    assert listed[7].marks == ("current",)
    assert listed[6].marks == ("other lineage", "restored or tried last")
    assert listed[5].marks == ("requested",)
    assert listed[4].marks[0].startswith("incomplete: chunk 0 of 2 is missing")
    assert listed[3].marks[0].startswith("damaged: ")


def test_without_a_state_nothing_is_known_to_be_forgotten(world: World):
    remove(world, names.state_secret(world.owner.suffix))
    (only,) = list_backups(situation(world))
    assert (only.forgets, only.current) == (None, False)
    assert only.loaded.addresses == OLD


def test_a_state_of_the_same_serial_and_other_content_is_told(world: World):
    put_backup(world.door, world.owner, 7, OLD)
    (newest, _) = list_backups(situation(world))
    assert newest.marks == ("the state has its serial and another content",)


def test_no_value_of_a_state_is_in_what_is_kept_of_it(world: World):
    assert "canary" not in repr(list_backups(situation(world)))
    assert "canary" not in repr(check(situation(world), Wish(serial=5)))
    assert LINEAGE in repr(list_backups(situation(world)))


# What was not stored, or cannot be read.


def keep_unsaved(world: World, addresses: tuple[str, ...]) -> None:
    owner = world.owner
    place = kept.Place(owner.namespace, owner.suffix, owner.backend_labels, None, "apply-7")
    for document in kept.documents(gzip.decompress(payload(8, addresses)), place):
        world.door.create(SECRETS.untyped(), document, owner.namespace)


def test_a_restore_in_place_of_a_kept_state_tells_of_it_and_what_it_forgets(world: World):
    keep_unsaved(world, (*NEW, "aws_subnet.d"))
    found = check(situation(world), Wish(serial=5))
    assert isinstance(found, Proposal)
    assert found.forgets == ("aws_subnet.b", "aws_subnet.c", "aws_subnet.d")
    assert found.returns == ()
    (told,) = [text for text in found.warnings if "could not store" in text]
    assert "Job apply-7" in told
    assert "serial 8 with 5 resources" in told
    assert "makes a backup of it" in told


def test_a_kept_state_is_told_also_where_no_state_is_stored(world: World):
    remove(world, names.state_secret(world.owner.suffix))
    keep_unsaved(world, NEW)
    found = check(situation(world), Wish(serial=5))
    assert isinstance(found, Proposal)
    assert found.forgets == ("aws_subnet.b", "aws_subnet.c")


@pytest.mark.parametrize("data", [b"garbage", gzip.compress(b" " * (DECOMPRESSED_MAX + 1))])
def test_that_a_state_which_cannot_be_read_is_only_copied_is_warned_of(world: World, data: bytes):
    patch = {"data": encode_data({keys.TFSTATE: data})}
    world.door.patch(SECRETS, names.state_secret(world.owner.suffix), NAMESPACE, patch)
    assert "captfctl cannot restore those" in warnings(world)
