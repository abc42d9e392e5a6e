"""What a state that cannot be read means (state.md: Verdicts on a state)."""

import pytest

from captfctl.model import core, keys, names
from captfctl.model.conditions import FALSE, UNKNOWN
from captfctl.model.meta import ObjectMeta
from captfctl.model.resources import SECRETS
from captfctl.terraform.state.reader import StateProblem, Unreadable
from captfctl.terraform.state.records import (
    RunInputs,
    confirm_no_resources,
    mark_applied,
    read_records,
    record_interrupted,
    write_applied,
    write_attempt,
)
from captfctl.terraform.state.verdict import Signs, Verdict, ever_applied, judge
from tests.support.runs import FILES, IMAGE, NAMESPACE, World

NO_STATE = Unreadable(StateProblem.NO_STATE, "none")
INPUTS = RunInputs(job="j0", files=FILES, inputs_hash="h2:abc", image=IMAGE)


def verdict(world: World, found: Unreadable = NO_STATE, **facts: bool) -> Verdict:
    deleting = facts.pop("deleting", False)
    return judge(world.door, world.owner, found, signs(world, **facts), deleting=deleting)


def signs(world: World, **facts: bool) -> Signs:
    records = read_records(world.door, world.owner)
    return Signs(records=records, **{"provisioned": False, **facts})


def add_backup(world: World) -> None:
    labels = {keys.STATE_BACKUP: "true", keys.STATE_BACKUP_SUFFIX: world.owner.suffix}
    backup = core.Secret(metadata=ObjectMeta(name="captf-state-backup-1", labels=labels))
    backup.api_version, backup.kind = "v1", "Secret"
    world.door.create(SECRETS, backup, NAMESPACE)


def test_object_that_never_applied_may_apply():
    found = verdict(World())
    assert (found.status, found.reason, found.held) == (UNKNOWN, "StateNotFound", False)


def test_attempt_alone_is_no_sign_of_an_apply():
    world = World()
    write_attempt(world.door, world.owner, INPUTS)
    assert verdict(world).reason == "StateNotFound"


@pytest.mark.parametrize("sign", ["provisioned", "marker", "applied record", "backup"])
def test_missing_state_of_an_applied_object_is_lost(sign):
    world = World()
    if sign == "marker":
        write_attempt(world.door, world.owner, INPUTS)
        mark_applied(world.door, world.owner)
    if sign == "applied record":
        write_applied(world.door, world.owner, INPUTS, "")
    if sign == "backup":
        add_backup(world)
    found = verdict(world, provisioned=sign == "provisioned")
    assert (found.status, found.reason, found.held) == (FALSE, "StateLost", True)


def test_unconfirmed_apply_holds_an_object_without_state_and_names_the_ways_out():
    world = World()
    write_attempt(world.door, world.owner, INPUTS)
    record_interrupted(world.door, world.owner, "j1")
    found = verdict(world)
    assert (found.reason, found.held) == ("ApplyOutcomeUnknown", True)
    for way_out in (f"{keys.CONFIRM_NO_RESOURCES}=j1", "Retain"):
        assert way_out in found.message
    assert ever_applied(world.door, world.owner, signs(world))


@pytest.mark.parametrize(
    ("named", "reason"), [("j1", "StateNotFound"), ("j2", "ApplyOutcomeUnknown")]
)
def test_only_the_recorded_job_can_be_vouched_for(named, reason):
    world = World()
    write_attempt(world.door, world.owner, INPUTS)
    record_interrupted(world.door, world.owner, "j1")
    confirm_no_resources(world.door, world.owner, named)
    assert verdict(world).reason == reason


def test_a_sign_of_an_earlier_apply_outranks_an_unconfirmed_one():
    world = World()
    write_attempt(world.door, world.owner, INPUTS)
    record_interrupted(world.door, world.owner, "j1")
    mark_applied(world.door, world.owner)
    assert verdict(world).reason == "StateLost"


@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        (StateProblem.ENCRYPTED, "StateEncrypted"),
        (StateProblem.INCONSISTENT, "StateInconsistent"),
        (StateProblem.CORRUPT, "StateCorrupt"),
        (StateProblem.UNSUPPORTED_VERSION, "StateCorrupt"),
    ],
)
def test_unreadable_state_is_held_and_told_why(problem, reason):
    found = verdict(World(), Unreadable(problem, "chunk 1 is missing"))
    assert (found.status, found.reason, found.held) == (FALSE, reason, True)
    assert found.message.startswith("chunk 1 is missing. Put Secret tfstate-default-")


def test_held_deletion_tells_how_to_go_on_and_how_to_retain():
    world = World()
    message = verdict(world, provisioned=True, deleting=True).message
    assert f"Put Secret {names.state_secret(world.owner.suffix)} back" in message
    assert "Retain" in message
