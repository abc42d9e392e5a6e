"""Owner references, propagation policies and dying namespaces
(local-mode.md: The garbage collector)."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from captfctl.clock import SystemClock
from captfctl.cluster.door import Door, Propagation, Watch, WatchEvent
from captfctl.embedded.garbage_collector import GarbageCollector
from captfctl.embedded.store import IN_PROCESS, EmbeddedStore
from captfctl.embedded.store.door import EmbeddedDoor
from captfctl.install.policy_parts import in_force
from captfctl.model.crds import crds
from captfctl.model.resource import Document, Resource
from captfctl.model.resources import (
    ADMISSION_POLICIES,
    ADMISSION_POLICY_BINDINGS,
    CONFIG_MAPS,
    CRDS,
    NAMESPACES,
    NODES,
    SECRETS,
    TERRAFORM_CLUSTER_IDENTITIES,
)
from tests.embedded.support import NAMESPACE, create, exists, new_store, running, until


@pytest.fixture
def store() -> Iterator[EmbeddedStore]:
    store = new_store()

    def served() -> list[Any]:
        return [served.resource for served in store.registry]

    with running(GarbageCollector(store.door(), served, SystemClock())):
        yield store
    store.close()


@pytest.fixture
def door(store: EmbeddedStore) -> Door:
    return store.door()


class NoNews:
    """A watch that opens and brings nothing until it is closed, as on a stalled connection."""

    def __init__(self) -> None:
        self._closed = threading.Event()

    def __iter__(self) -> Iterator[WatchEvent[Any]]:
        self._closed.wait()
        return iter(())

    def close(self) -> None:
        self._closed.set()

    def __enter__(self) -> "NoNews":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class NoNewsOfSecrets(EmbeddedDoor):
    def watch(self, resource: Resource[Any], *args: Any, **more: Any) -> Watch[Any]:
        if resource.name == SECRETS.name:
            return NoNews()
        return super().watch(resource, *args, **more)


def owner(door: Door, name: str, **metadata: Any) -> Document:
    return create(door, CONFIG_MAPS, {"metadata": {"name": name, **metadata}})


def reference(of: Document, **more: Any) -> Document:
    return {
        "apiVersion": of["apiVersion"],
        "kind": of["kind"],
        "name": of["metadata"]["name"],
        "uid": of["metadata"]["uid"],
        **more,
    }


def dependent(door: Door, name: str, *refs: Document, **metadata: Any) -> Document:
    return create(
        door, SECRETS, {"metadata": {"name": name, "ownerReferences": list(refs), **metadata}}
    )


def delete(door: Door, name: str, policy: Propagation) -> None:
    door.delete(CONFIG_MAPS, name, NAMESPACE, propagation=policy)


def test_dependents_follow_an_owner_deleted_in_the_background(door: Door) -> None:
    top = owner(door, "top")
    dependent(door, "below", reference(top))
    dependent(door, "other")
    delete(door, "top", Propagation.BACKGROUND)
    assert not exists(door, CONFIG_MAPS, "top")
    until(lambda: not exists(door, SECRETS, "below"))
    assert exists(door, SECRETS, "other")


def test_a_chain_of_owners_is_followed_to_its_end(door: Door) -> None:
    top = owner(door, "top")
    middle = dependent(door, "middle", reference(top))
    dependent(door, "bottom", reference(middle))
    delete(door, "top", Propagation.BACKGROUND)
    until(lambda: not exists(door, SECRETS, "bottom"))
    assert not exists(door, SECRETS, "middle")


def test_in_the_foreground_the_owner_waits_for_what_blocks_it(door: Door) -> None:
    top = owner(door, "top")
    dependent(door, "held", reference(top, blockOwnerDeletion=True), finalizers=["example.com/x"])
    delete(door, "top", Propagation.FOREGROUND)
    until(lambda: door.get(SECRETS, "held", NAMESPACE).deleting)
    assert exists(door, CONFIG_MAPS, "top")
    door.patch(SECRETS, "held", NAMESPACE, {"metadata": {"finalizers": None}})
    until(lambda: not exists(door, CONFIG_MAPS, "top"))
    assert not exists(door, SECRETS, "held")


def test_in_the_foreground_what_does_not_block_is_not_waited_for(door: Door) -> None:
    top = owner(door, "top")
    dependent(door, "held", reference(top), finalizers=["example.com/x"])
    delete(door, "top", Propagation.FOREGROUND)
    until(lambda: not exists(door, CONFIG_MAPS, "top"))
    until(lambda: door.get(SECRETS, "held", NAMESPACE).deleting)


def test_orphaning_sets_the_dependents_free_first(door: Door) -> None:
    top = owner(door, "top")
    dependent(door, "below", reference(top))
    delete(door, "top", Propagation.ORPHAN)
    until(lambda: not exists(door, CONFIG_MAPS, "top"))
    assert door.get(SECRETS, "below", NAMESPACE).metadata.owner_references == []


@pytest.fixture
def unheard() -> Iterator[Door]:
    """With a collector that has heard of no Secret since it started."""
    store = new_store()
    door = NoNewsOfSecrets(store, None, IN_PROCESS)
    with running(GarbageCollector(door, lambda: [CONFIG_MAPS, SECRETS], SystemClock())):
        yield store.door()
    store.close()


def test_a_dependent_not_heard_of_yet_is_set_free_too(unheard: Door) -> None:
    dependent(unheard, "below", reference(owner(unheard, "top")))
    delete(unheard, "top", Propagation.ORPHAN)
    until(lambda: not exists(unheard, CONFIG_MAPS, "top"))
    assert unheard.get(SECRETS, "below", NAMESPACE).metadata.owner_references == []


def test_a_dependent_not_heard_of_yet_goes_before_its_owner(unheard: Door) -> None:
    dependent(unheard, "below", reference(owner(unheard, "top"), blockOwnerDeletion=True))
    delete(unheard, "top", Propagation.FOREGROUND)
    until(lambda: not exists(unheard, SECRETS, "below"))
    until(lambda: not exists(unheard, CONFIG_MAPS, "top"))


def test_an_owner_is_known_by_its_uid_not_by_its_name(door: Door) -> None:
    top = owner(door, "top")
    ghost = {**reference(top), "uid": "00000000-0000-0000-0000-000000000000"}
    dependent(door, "below", ghost)
    until(lambda: not exists(door, SECRETS, "below"))
    assert exists(door, CONFIG_MAPS, "top")


def test_an_object_made_for_an_owner_that_is_gone_goes(door: Door) -> None:
    top = owner(door, "top")
    delete(door, "top", Propagation.BACKGROUND)
    dependent(door, "late", reference(top))
    until(lambda: not exists(door, SECRETS, "late"))


def test_one_living_owner_is_enough_and_the_dead_reference_is_taken_off(door: Door) -> None:
    one, two = owner(door, "one"), owner(door, "two")
    dependent(door, "below", reference(one), reference(two))
    delete(door, "one", Propagation.BACKGROUND)
    until(
        lambda: (
            [r.name for r in door.get(SECRETS, "below", NAMESPACE).metadata.owner_references]
            == ["two"]
        )
    )


def test_an_owner_of_a_kind_that_is_not_served_is_left_alone(door: Door) -> None:
    top = owner(door, "top")
    strange = {**reference(top), "apiVersion": "example.com/v1", "kind": "Widget"}
    dependent(door, "strange", strange)
    dependent(door, "marker", {**reference(top), "uid": "gone"})
    until(lambda: not exists(door, SECRETS, "marker"))
    assert exists(door, SECRETS, "strange")


def test_a_cluster_wide_owner_holds_objects_of_a_namespace(door: Door) -> None:
    node = create(door, NODES, {"metadata": {"name": "node"}})
    dependent(door, "below", reference(node))
    door.delete(NODES, "node", propagation=Propagation.BACKGROUND)
    until(lambda: not exists(door, SECRETS, "below"))


def test_kinds_installed_later_are_collected_too(door: Door) -> None:
    for definition in crds():
        door.create(CRDS.untyped(), definition)
    identity = create(
        door,
        TERRAFORM_CLUSTER_IDENTITIES,
        {
            "metadata": {"name": "account"},
            "spec": {
                "secretRef": {"name": "s", "namespace": "default"},
            },
        },
    )
    dependent(door, "below", reference(identity))
    door.delete(TERRAFORM_CLUSTER_IDENTITIES, "account", propagation=Propagation.BACKGROUND)
    until(lambda: not exists(door, SECRETS, "below"))


def test_a_namespace_is_emptied_but_for_what_admission_keeps(store: EmbeddedStore) -> None:
    door = store.door()
    create(door, NAMESPACES, {"metadata": {"name": "team"}})
    policy, binding = policy_that_keeps("example.com/kept")
    door.create(ADMISSION_POLICIES.untyped(), policy)
    door.create(ADMISSION_POLICY_BINDINGS.untyped(), binding)
    kept = {"name": "kept", "namespace": "team", "labels": {"example.com/kept": "true"}}
    create(door, CONFIG_MAPS, {"metadata": kept})
    create(door, SECRETS, {"metadata": {"name": "plain", "namespace": "team"}})
    door.delete(NAMESPACES, "team")
    until(lambda: not exists(door, SECRETS, "plain", "team"))
    assert exists(door, CONFIG_MAPS, "kept", "team")
    free = {"metadata": {"labels": None}}
    door.patch(CONFIG_MAPS, "kept", "team", free)
    until(lambda: not exists(door, NAMESPACES, "team"))


def policy_that_keeps(label: str) -> list[Document]:
    """Refuse to delete ConfigMaps that carry the label."""
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["DELETE"],
        "resources": ["configmaps"],
    }
    spec: Document = {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [
            {
                "expression": "!has(oldObject.metadata.labels) || "
                f"!('{label}' in oldObject.metadata.labels)"
            }
        ],
    }
    return in_force("kept.example.com", spec)


def test_a_namespace_is_emptied_before_it_goes(door: Door) -> None:
    create(door, NAMESPACES, {"metadata": {"name": "team"}})
    metadata = {"name": "held", "namespace": "team", "finalizers": ["example.com/x"]}
    create(door, SECRETS, {"metadata": metadata})
    create(door, CONFIG_MAPS, {"metadata": {"name": "plain", "namespace": "team"}})
    door.delete(NAMESPACES, "team")
    until(lambda: not exists(door, CONFIG_MAPS, "plain", "team"))
    until(lambda: door.get(SECRETS, "held", "team").deleting)
    assert exists(door, NAMESPACES, "team")
    door.patch(SECRETS, "held", "team", {"metadata": {"finalizers": None}})
    until(lambda: not exists(door, NAMESPACES, "team"))
