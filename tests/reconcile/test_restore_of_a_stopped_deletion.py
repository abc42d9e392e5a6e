"""A deletion that is stopped restores what is asked for (deletion.md: Order of a deletion)."""

from collections.abc import Callable

import pytest

from captfctl.model import keys
from captfctl.model.resources import TERRAFORM_MACHINES
from captfctl.model.terraform import DeletionPolicy
from tests.reconcile.test_backups import new_serials
from tests.reconcile.test_deletion import add
from tests.reconcile.test_restore import (
    CONDITION,
    ask,
    asked,
    failed,
    lose_state,
    restore,
    restores,
    serial,
    withdraw,
)
from tests.support.cluster_world import NAMESPACE, World

Stopped = tuple[World, Callable[[], None]]


def protect(world: World) -> Callable[[], None]:
    """Stops the deletion; what is returned lets it go on."""

    def set_to(value: bool | None) -> None:
        world.edit(lambda obj: setattr(obj.spec, "deletion_protection", value))

    set_to(True)
    return lambda: set_to(None)


def depend(world: World) -> Callable[[], None]:
    """A machine of the cluster is there, and goes."""
    add(world, TERRAFORM_MACHINES, "m-1")
    return lambda: world.door.delete(TERRAFORM_MACHINES, "m-1", NAMESPACE)


@pytest.fixture
def backed(ready: World) -> World:
    new_serials(ready, 3)
    return ready


@pytest.fixture(params=[protect, depend], ids=["protected", "has dependents"])
def stopped(backed: World, request: pytest.FixtureRequest) -> Stopped:
    """A deletion that is stopped, and what lets it go on."""
    go_on = request.param(backed)
    backed.delete()
    backed.settle(2)
    assert backed.running() == []
    return backed, go_on


def operation(world: World) -> str:
    return world.active_job().metadata.labels[keys.OP]


def test_a_lost_state_is_restored_and_destroyed_once_the_deletion_goes_on(stopped: Stopped):
    world, go_on = stopped
    lose_state(world)
    restore(world, 2)
    world.settle(2)

    assert not asked(world)
    assert serial(world) == 2
    assert world.reason(CONDITION) == "True/StateRestored"
    assert world.reason("StateReadable") == "True/StateRead"
    assert world.running() == []
    go_on()
    world.settle(2)
    assert operation(world) == "destroy"
    world.runner.succeed(world.active_job())
    world.settle(2)
    assert world.gone


def test_a_restore_that_ends_after_the_deletion_was_stopped_is_taken_over(backed: World):
    lose_state(backed)
    backed.delete()
    ask(backed, 2)
    backed.run()
    go_on = protect(backed)
    backed.runner.succeed(backed.active_job())
    backed.settle(2)
    assert backed.reason("StateReadable") == "True/StateRead"
    assert backed.obj.status.observed_state_serial == 2
    go_on()
    backed.settle(2)
    assert operation(backed) == "destroy"


def test_a_state_that_reads_is_not_restored(stopped: Stopped):
    world, _ = stopped
    ask(world, 2)
    world.settle(3)
    assert restores(world) == []
    assert serial(world) == 3


def test_what_is_not_there_is_told(stopped: Stopped):
    world, _ = stopped
    lose_state(world)
    ask(world, 9)
    world.settle(2)
    assert world.reason(CONDITION) == "False/RestoreBackupNotFound"
    assert world.reason("StateReadable").startswith("False/")
    assert world.running() == []


def test_a_failed_restore_can_be_asked_for_again(stopped: Stopped):
    world, _ = stopped
    lose_state(world)
    failed(world, 2)
    world.settle(2)
    assert world.running() == []
    withdraw(world)
    world.settle(1)
    assert world.obj.status.last_restored_serial == 0
    ask(world, 2)
    world.run()
    assert operation(world) == "restore"


def test_retain_still_wins(stopped: Stopped):
    world, go_on = stopped
    world.edit(lambda obj: setattr(obj.spec, "deletion_policy", DeletionPolicy.RETAIN))
    lose_state(world)
    ask(world, 2)
    world.settle(2)
    assert restores(world) == []
    go_on()
    world.settle(2)
    assert world.gone
