"""The inputs records (state.md: Inputs records)."""

from dataclasses import replace
from typing import Any

import pytest

from captfctl.cluster.errors import Conflict
from captfctl.model import keys, names
from captfctl.model.resources import SECRETS
from captfctl.model.terraform import IdentityKind
from captfctl.terraform.state.records import (
    Records,
    RunInputs,
    mark_adopted,
    mark_applied,
    mark_may_have_applied,
    mark_promoted,
    mark_restored,
    read_records,
    record_interrupted,
    write_applied,
    write_attempt,
)
from tests.support.faults import WRITES, HookedDoor
from tests.support.runs import FILES, IMAGE, NAMESPACE, World

INPUTS = RunInputs(job="j1", files=FILES, inputs_hash="h2:1", image=IMAGE, identity="main")


def secret(world: World, name: str = "captf-inputs-c-prod"):
    return world.door.get(SECRETS, name, NAMESPACE)


def test_records_are_named_protected_owned_and_labelled():
    world = World()
    write_attempt(world.door, world.owner, INPUTS)
    write_applied(world.door, world.owner, INPUTS, "repo@sha256:x")
    for name, digest in (("captf-inputs-c-prod", None), ("captf-applied-c-prod", "repo@sha256:x")):
        found = secret(world, name)
        assert found.data == FILES
        assert found.metadata.labels == {
            keys.MANAGED: "true",
            keys.TFSTATE_SUFFIX: world.owner.suffix,
            **world.owner.labels,
        }
        assert found.metadata.finalizers == [keys.STATE_PROTECTION]
        (ref,) = found.metadata.owner_references
        assert (ref.uid, ref.block_owner_deletion, ref.controller) == (world.owner.uid, None, None)
        assert found.metadata.annotations.get(keys.IMAGE_DIGEST) == digest
        assert found.metadata.annotations[keys.JOB] == "j1"
        assert keys.IDENTITY_KIND not in found.metadata.annotations


def test_long_names_are_cut_with_a_hash():
    name = names.attempt_record("TerraformCluster", "a" * 250)
    assert len(name) == 253
    assert name.startswith("captf-inputs-c-aaa")


def test_records_are_read_back_as_written():
    world = World()
    local = replace(INPUTS, identity_kind=IdentityKind.SECRET)
    write_attempt(world.door, world.owner, local)
    record = read_records(world.door, world.owner).attempt
    assert record.inputs == local
    assert read_records(world.door, world.owner).applied is None


def test_next_attempt_replaces_files_and_facts_and_keeps_marks():
    world = World()
    write_attempt(world.door, world.owner, replace(INPUTS, identity_kind=IdentityKind.SECRET))
    mark_applied(world.door, world.owner)
    mark_may_have_applied(world.door, world.owner, "j1")
    second = replace(INPUTS, job="j2", files={"main.tf.json": b"2"}, identity="")
    write_attempt(world.door, world.owner, second)
    found = read_records(world.door, world.owner)
    assert found.attempt.inputs == second
    assert found.marks.applied
    assert found.marks.may_have_applied
    assert keys.IDENTITY_KIND not in found.attempt.metadata.annotations


def test_a_guarded_apply_that_may_have_applied_leaves_its_mark_until_one_succeeds():
    world = World()
    write_attempt(world.door, world.owner, INPUTS, exports_hash="h2:new")
    mark_may_have_applied(world.door, world.owner, "another")
    assert not read_records(world.door, world.owner).marks.partial_exports
    mark_may_have_applied(world.door, world.owner, INPUTS.job)
    write_attempt(world.door, world.owner, replace(INPUTS, job="j2"))
    mark_may_have_applied(world.door, world.owner, "j2")
    assert read_records(world.door, world.owner).marks.partial_exports == INPUTS.job
    mark_promoted(world.door, world.owner, newest=True, answers_interrupted="")
    assert not read_records(world.door, world.owner).marks.partial_exports


def test_the_next_attempt_drops_what_else_the_record_holds():
    world = World()
    write_attempt(world.door, world.owner, INPUTS)
    world.door.patch(SECRETS, "captf-inputs-c-prod", NAMESPACE, {"data": {"other": "e30="}})
    write_attempt(world.door, world.owner, INPUTS)
    assert "other" not in secret(world).data


def test_a_record_on_its_way_out_is_not_protected_again():
    world = World()
    write_attempt(world.door, world.owner, INPUTS)
    held = {"metadata": {"finalizers": ["example.com/hold"]}}
    world.door.patch(SECRETS, "captf-inputs-c-prod", NAMESPACE, held)
    world.door.delete(SECRETS, "captf-inputs-c-prod", NAMESPACE)
    write_attempt(world.door, world.owner, INPUTS)
    assert secret(world).metadata.finalizers == ["example.com/hold"]


def test_marks_are_written_only_when_they_change():
    world = World()
    write_attempt(world.door, world.owner, INPUTS)
    mark_applied(world.door, world.owner)
    calls: list[str] = []
    door = HookedDoor(world.door, before=lambda name, _: calls.append(name))
    mark_applied(door, world.owner)
    mark_may_have_applied(door, world.owner, "another-job")
    assert not WRITES & set(calls)


@pytest.mark.parametrize(
    "ended",
    [
        lambda door, owner: mark_promoted(door, owner, newest=True, answers_interrupted=""),
        mark_restored,
        mark_adopted,
    ],
    ids=["applied", "restored", "adopted"],
)
def test_a_first_apply_is_one_until_something_else_made_the_state(ended):
    world = World()
    write_attempt(world.door, world.owner, INPUTS, first_apply=True)
    write_attempt(world.door, world.owner, replace(INPUTS, job="j2"))  # its retry
    assert read_records(world.door, world.owner).first_apply_unfinished
    ended(world.door, world.owner)
    write_attempt(world.door, world.owner, replace(INPUTS, job="j3"))
    assert not read_records(world.door, world.owner).first_apply_unfinished


def test_marks_without_a_record_are_tolerated():
    world = World()
    assert mark_applied(world.door, world.owner) is None
    assert record_interrupted(world.door, world.owner, "j1") is None


def changing_once(world: World) -> Any:
    """A door before whose first patch somebody else writes the record."""
    done: list[bool] = []

    def before(name: str, _: Any) -> None:
        if name == "patch" and not done:
            done.append(True)
            other = {"metadata": {"annotations": {"other": "x"}}}
            world.door.patch(SECRETS, "captf-inputs-c-prod", NAMESPACE, other)

    return HookedDoor(world.door, before=before)


def test_concurrent_change_of_a_record_is_read_again_once():
    world = World()
    write_attempt(world.door, world.owner, INPUTS)
    mark_applied(changing_once(world), world.owner)
    write_attempt(changing_once(world), world.owner, replace(INPUTS, job="j2"))
    found = read_records(world.door, world.owner)
    assert found.marks.applied
    assert found.attempt.job == "j2"
    assert found.attempt.annotation("other") == "x"


def test_record_that_keeps_changing_is_an_error():
    world = World()
    write_attempt(world.door, world.owner, INPUTS)

    def before(name: str, _: Any) -> None:
        if name == "patch":
            other = {"metadata": {"annotations": {"other": str(len(seen))}}}
            seen.append(name)
            world.door.patch(SECRETS, "captf-inputs-c-prod", NAMESPACE, other)

    seen: list[str] = []
    with pytest.raises(Conflict):
        mark_applied(HookedDoor(world.door, before=before), world.owner)
    assert 1 < len(seen) < 10


def test_files_are_not_shown():
    assert "hunter2" not in repr(replace(INPUTS, files={"f": b"hunter2"}))


def records(
    world: World, attempt: tuple[str, str] | None, applied: tuple[str, str] | None, *, may: bool
) -> Records:
    for given, write in ((attempt, write_attempt), (applied, write_applied)):
        if given is None:
            continue
        inputs = replace(INPUTS, job=given[0], inputs_hash=given[1])
        more = () if write is write_attempt else ("",)
        write(world.door, world.owner, inputs, *more)
    if may and attempt:
        mark_may_have_applied(world.door, world.owner, attempt[0])
    return read_records(world.door, world.owner)


@pytest.mark.parametrize(
    ("attempt", "applied", "may", "state_hash", "chosen"),
    [
        (("j2", "h2:b"), ("j1", "h2:a"), True, "h2:a", "j2"),
        (("j2", "h2:b"), None, True, "h2:a", "j2"),
        (("j1", "h2:a"), ("j1", "h2:a"), True, "h2:a", "j1"),
        (("j2", "h2:b"), ("j1", "h2:a"), False, "h2:a", "j1"),
        (("j2", "h2:b"), ("j1", "h2:a"), False, "h2:b", "j2"),
        (("j2", "h2:b"), ("j1", "h2:a"), False, "h2:c", "j1"),
        (("j2", ""), ("j1", ""), False, "", "j1"),
        (("j2", "h2:b"), None, False, "h2:c", "j2"),
        (None, None, False, "h2:c", None),
    ],
)
def test_destroy_renders_what_most_likely_exists(attempt, applied, may, state_hash, chosen):
    found = records(World(), attempt, applied, may=may).for_run(state_hash)
    assert (found.job if found else None) == chosen
