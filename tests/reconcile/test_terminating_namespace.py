"""Objects of a namespace that is being deleted: no Job can be created there, and they say so."""

from typing import Any

import pytest

from captfctl.cluster.errors import Forbidden, NamespaceTerminating
from captfctl.model import names
from captfctl.model.core import Secret
from captfctl.model.meta import ObjectMeta
from captfctl.model.resources import (
    NAMESPACES,
    ROLE_BINDINGS,
    SECRETS,
    SERVICE_ACCOUNTS,
)
from captfctl.model.terraform import DeletionPolicy, IdentityKind, IdentityRef
from tests.support.cluster_world import NAMESPACE, World, variables
from tests.support.doors import Overridden

REASON = "False/NamespaceTerminating"


def terminate(world: World) -> None:
    """Somebody deletes the namespace, and so the object."""
    world.door.delete(NAMESPACES, NAMESPACE)
    world.delete()


def retain(obj) -> None:
    obj.spec.deletion_policy = DeletionPolicy.RETAIN


def remove(world: World, resource: Any, name: str) -> None:
    """Whatever protects it."""
    world.door.patch(resource, name, NAMESPACE, {"metadata": {"finalizers": None}})
    world.door.delete(resource, name, NAMESPACE)


def check_told(world: World) -> None:
    message = world.condition("ApplyJobSucceeded").message
    assert world.reason("ApplyJobSucceeded") == REASON
    assert f"namespace {NAMESPACE} is being deleted" in message
    assert names.state_secret(world.owner.suffix) in message
    assert "Retain" in message
    assert "restore the access" not in message
    assert message in world.condition("Ready").message
    assert world.events.warnings().count("JobFailed") == 1
    assert world.running() == []


# What the namespace controller has taken already, so that the pass has to make it again.
TAKEN = {
    "nothing": [],
    "the account": [(SERVICE_ACCOUNTS, "captf-runner")],
    "the rights": [(ROLE_BINDINGS, "captf-runner")],
    "the credentials": [(SECRETS, names.credentials_mirror("cloud"))],
    "all of them": [
        (SERVICE_ACCOUNTS, "captf-runner"),
        (ROLE_BINDINGS, "captf-runner"),
        (SECRETS, names.credentials_mirror("cloud")),
    ],
}


@pytest.mark.parametrize("taken", TAKEN)
def test_a_destroy_is_told_to_be_impossible_with_the_ways_out(ready: World, taken: str):
    terminate(ready)
    for resource, name in TAKEN[taken]:
        remove(ready, resource, name)
    for _ in range(3):
        assert ready.run().requeue_after == 30
    check_told(ready)
    assert ready.leases() == []


def refusing(world: World, plural: str, nth: int = 1):
    """A door whose `nth` creation of such objects, and every later one, finds the namespace going:
    so a pass comes as far as that."""
    count = 0

    def create(resource, obj, namespace):
        nonlocal count
        count += 1
        if count < nth:
            return world.writes.create(resource, obj, namespace)
        raise NamespaceTerminating("unable to create new content")

    return Overridden(world.writes, create={plural: create})


@pytest.mark.parametrize("plural", ["leases", "jobs"])
def test_a_namespace_that_goes_while_a_destroy_starts(ready: World, plural: str):
    ready.delete()
    assert ready.run(ready.env(refusing(ready, plural))).requeue_after == 30
    assert ready.reason("ApplyJobSucceeded") == REASON
    assert ready.leases() == []
    assert ready.running() == []


def test_a_namespace_that_goes_between_a_job_and_its_secret(ready: World):
    """The Job is there: the next pass waits for it, and removes it when it cannot start."""
    ready.delete()
    ready.run(ready.env(refusing(ready, "secrets")))
    assert ready.reason("ApplyJobSucceeded") == REASON
    assert len(ready.running()) == 1
    ready.door.delete(NAMESPACES, NAMESPACE)
    ready.run()
    ready.advance(seconds=61)
    ready.settle(3)
    assert ready.running() == []
    assert ready.reason("ApplyJobSucceeded") == REASON


@pytest.mark.parametrize("plural", ["serviceaccounts", "rolebindings", "secrets", "leases", "jobs"])
def test_an_object_that_is_not_being_deleted_yet_waits_without_an_error(world: World, plural: str):
    assert world.run().requeue_after == 0  # the finalizer
    assert world.run(world.env(refusing(world, plural))).requeue_after == 30
    assert world.reason("ApplyJobSucceeded") == REASON
    assert "Retain" not in world.condition("ApplyJobSucceeded").message
    assert world.running() == []
    assert world.leases() == []


@pytest.mark.parametrize("nth", [1, 2, 3])
def test_each_secret_of_a_first_apply_can_be_refused(world: World, nth: int):
    """The copy of the credentials, the plan key, then those that follow the Job."""
    world.run()
    world.run(world.env(refusing(world, "secrets", nth)))
    assert world.reason("ApplyJobSucceeded") == REASON


def test_a_change_in_such_a_namespace_is_not_applied(ready: World):
    ready.edit(variables('{"region":"eu-2"}'))
    ready.door.delete(NAMESPACES, NAMESPACE)
    assert ready.run().requeue_after == 30
    assert ready.reason("ApplyJobSucceeded") == REASON
    assert ready.running() == []


def test_retain_releases_the_object_there(ready: World):
    terminate(ready)
    ready.settle(2)
    ready.edit(retain)
    ready.settle(2)
    assert ready.gone


def test_local_credentials_that_went_with_the_namespace_cannot_be_put_back(world: World):
    """Not `IdentityNotAllowed`: nobody can restore the access there."""
    secret = Secret(metadata=ObjectMeta(name="own", namespace=NAMESPACE), data={"TOKEN": b"t"})
    world.create(SECRETS, secret)
    reference = IdentityRef(name="own", kind=IdentityKind.SECRET)
    world.edit(lambda obj: setattr(obj.spec, "identity_ref", reference))
    world.apply()
    world.events.clear()
    terminate(world)
    remove(world, SECRETS, "own")
    world.settle(2)
    assert world.reason("IdentityAllowed") == "False/SecretNotFound"
    assert world.reason("ApplyJobSucceeded") == REASON
    assert world.events.warnings().count("JobFailed") == 1


def test_records_that_are_gone_cannot_be_put_back_either(ready: World):
    for name in (
        names.attempt_record("TerraformCluster", "prod"),
        names.applied_record("TerraformCluster", "prod"),
    ):
        remove(ready, SECRETS, name)
    ready.edit(lambda obj: obj.metadata.owner_references.clear())
    terminate(ready)
    ready.run()
    check_told(ready)


def test_an_object_that_never_was_applied_goes_at_once(world: World):
    world.run()
    terminate(world)
    world.settle(2)
    assert world.gone


def test_another_refusal_is_still_an_error(ready: World):
    ready.delete()

    def refused(*_, **__):
        raise Forbidden("exceeded quota")

    with pytest.raises(Forbidden):
        ready.run(ready.env(Overridden(ready.writes, create={"jobs": refused})))
    assert ready.reason("ApplyJobSucceeded") != REASON
