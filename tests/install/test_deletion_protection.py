"""The policy that refuses to delete what is protected, as the embedded server evaluates it
(api.md: Deletion protection)."""

import shlex
from collections.abc import Iterator
from typing import Any

import pytest

from captfctl.cluster.door import Door
from captfctl.cluster.errors import Forbidden, NotFound
from captfctl.embedded.described import scratch_store
from captfctl.embedded.store import EmbeddedStore
from captfctl.install.policies import policies
from captfctl.model import keys
from captfctl.model.crds import crds
from captfctl.model.resource import Document, Resource
from captfctl.model.resources import (
    TERRAFORM_CLUSTERS,
    TERRAFORM_MACHINE_POOLS,
    TERRAFORM_MACHINES,
)
from tests.support.clock import FakeClock

KINDS = [TERRAFORM_CLUSTERS, TERRAFORM_MACHINES, TERRAFORM_MACHINE_POOLS]
every_kind = pytest.mark.parametrize("resource", KINDS, ids=lambda resource: resource.kind)


@pytest.fixture
def store() -> Iterator[EmbeddedStore]:
    found = scratch_store(FakeClock(), (*crds(), *policies()))
    yield found
    found.close()


@pytest.fixture
def door(store: EmbeddedStore) -> Door:
    return store.door()


def create(door: Door, resource: Resource[Any], protection: bool | None, **metadata: Any) -> None:
    spec: Document = {
        "source": {"image": "registry.example.com/a:v1"},
        "identityRef": {"name": "cloud"},
    }
    if protection is not None:
        spec["deletionProtection"] = protection
    document = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": "prod", **metadata},
        "spec": spec,
    }
    door.create(resource.untyped(), document, "default")


def delete(door: Door, resource: Resource[Any]) -> None:
    door.delete(resource, "prod", "default")


def gone(door: Door, resource: Resource[Any]) -> bool:
    try:
        door.get(resource, "prod", "default")
    except NotFound:
        return True
    return False


@every_kind
def test_a_protected_object_is_not_deleted_and_the_message_names_the_way_out(door, resource):
    create(door, resource, True)
    with pytest.raises(Forbidden) as refused:
        delete(door, resource)
    said = str(refused.value)
    assert f"{resource.kind} default/prod and its infrastructure are not deleted" in said
    command = shlex.split(said[said.index("kubectl patch") :])
    assert command == [
        *("kubectl", "patch", resource.plural, "prod", "-n", "default", "--type=merge"),
        *("-p", '{"spec":{"deletionProtection":false}}'),
    ]


@every_kind
@pytest.mark.parametrize("protection", [False, None])
def test_others_are_deleted(door, resource, protection):
    create(door, resource, protection)
    delete(door, resource)
    assert gone(door, resource)


def test_the_field_can_be_taken_off_and_then_the_object_is_deleted(door):
    create(door, TERRAFORM_CLUSTERS, True)
    off = {"spec": {"deletionProtection": False}}
    door.patch(TERRAFORM_CLUSTERS, "prod", "default", off)
    delete(door, TERRAFORM_CLUSTERS)
    assert gone(door, TERRAFORM_CLUSTERS)


def test_it_can_be_set_and_taken_off_while_the_object_is_being_deleted(door):
    create(door, TERRAFORM_CLUSTERS, None, finalizers=["example.com/held"])
    delete(door, TERRAFORM_CLUSTERS)
    for value in (True, False):
        change = {"spec": {"deletionProtection": value}}
        door.patch(TERRAFORM_CLUSTERS, "prod", "default", change)
        found = door.get(TERRAFORM_CLUSTERS, "prod", "default")
        assert (found.deleting, found.spec.deletion_protection) == (True, value)


def test_what_was_moved_elsewhere_is_deleted(door):
    create(door, TERRAFORM_MACHINES, True, annotations={keys.DELETE_FOR_MOVE: ""})
    delete(door, TERRAFORM_MACHINES)
    assert gone(door, TERRAFORM_MACHINES)


def test_what_a_cluster_gives_to_its_machines_does_not_protect_itself(door):
    create(door, TERRAFORM_CLUSTERS, None)
    defaults = {"spec": {"defaults": {"deletionProtection": True}}}
    door.patch(TERRAFORM_CLUSTERS, "prod", "default", defaults)
    delete(door, TERRAFORM_CLUSTERS)
    assert gone(door, TERRAFORM_CLUSTERS)
