"""Machines and pools of the stand-in for Cluster API
(local-mode.md: The stand-in for Cluster API)."""

from collections.abc import Iterator
from typing import Any

import pytest

from captfctl.clock import SystemClock
from captfctl.cluster.door import Door
from captfctl.embedded.capi import CapiStandIn, capi_crds
from captfctl.embedded.capi.workers import MACHINE, MACHINE_POOL, WORKERS, WorkerKind
from captfctl.model.crds import crds
from captfctl.model.keys import CLUSTER_NAME
from captfctl.model.kinds import INFRASTRUCTURE
from captfctl.model.resources import CLUSTERS, TERRAFORM_CLUSTERS
from tests.embedded.support import NAMESPACE, create, exists, install, new_store, running, until

HOLD = "example.com/x"
BOOTSTRAP = {"dataSecretName": "data"}
KINDS = pytest.mark.parametrize("kind", WORKERS, ids=lambda kind: kind.resource.kind)


@pytest.fixture
def door() -> Iterator[Door]:
    store = new_store()
    door = store.door()
    install(door, [*crds(), *capi_crds()])
    with running(CapiStandIn(door, SystemClock())):
        yield door
    store.close()


def worker(door: Door, kind: WorkerKind, **spec: Any) -> None:
    ref = {"apiGroup": INFRASTRUCTURE, "kind": kind.infrastructure.kind, "name": "infra"}
    machine = {"clusterName": "prod", "bootstrap": BOOTSTRAP, "infrastructureRef": ref, **spec}
    if kind is MACHINE_POOL:
        machine = {"clusterName": "prod", "template": {"spec": machine}}
    create(door, kind.resource, {"metadata": {"name": "worker"}, "spec": machine})


def infrastructure(door: Door, kind: WorkerKind, **metadata: Any) -> None:
    spec = {"source": {"image": "example.com/a:v1"}}
    document = {"metadata": {"name": "infra", **metadata}, "spec": spec}
    create(door, kind.infrastructure, document)


def cluster(door: Door, **spec: Any) -> None:
    ref = {"apiGroup": INFRASTRUCTURE, "kind": "TerraformCluster", "name": "network"}
    create(
        door, CLUSTERS, {"metadata": {"name": "prod"}, "spec": {"infrastructureRef": ref, **spec}}
    )


def get(door: Door, kind: WorkerKind) -> Any:
    return door.get(kind.resource, "worker", NAMESPACE)


def infra(door: Door, kind: WorkerKind) -> Any:
    return door.get(kind.infrastructure, "infra", NAMESPACE)


def provision(door: Door, kind: WorkerKind, spec: Any, **status: Any) -> None:
    until(lambda: infra(door, kind).metadata.controller)
    door.patch(kind.infrastructure, "infra", NAMESPACE, {"spec": spec})
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "Ready",
        "message": "all good",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    status = {"initialization": {"provisioned": True}, "conditions": [ready], **status}
    patch = {"status": status}
    door.patch(kind.infrastructure, "infra", NAMESPACE, patch, subresource="status")


@KINDS
@pytest.mark.parametrize("first", ["owner", "infrastructure"])
def test_the_infrastructure_object_gets_owner_and_label(
    door: Door, kind: WorkerKind, first: str
) -> None:
    if first == "infrastructure":
        infrastructure(door, kind)
    worker(door, kind)
    if first == "owner":
        until(lambda: get(door, kind).status.conditions)
        assert get(door, kind).status.conditions[0].reason == "DoesNotExist"
        infrastructure(door, kind)
    owner = until(lambda: infra(door, kind).metadata.controller)
    uid = get(door, kind).metadata.uid
    assert (owner.kind, owner.name, owner.uid) == (kind.resource.kind, "worker", uid)
    assert infra(door, kind).metadata.labels[CLUSTER_NAME] == "prod"
    assert get(door, kind).metadata.labels[CLUSTER_NAME] == "prod"
    assert get(door, kind).metadata.finalizers == [kind.finalizer]
    until(lambda: get(door, kind).status.phase == "Provisioning")


def test_a_machine_without_bootstrap_data_is_pending(door: Door) -> None:
    worker(door, MACHINE, bootstrap={})
    until(lambda: get(door, MACHINE).status.phase == "Pending")


def test_what_a_machine_became_is_mirrored(door: Door) -> None:
    infrastructure(door, MACHINE)
    worker(door, MACHINE)
    address = {"type": "InternalIP", "address": "10.0.0.7"}
    provision(
        door, MACHINE, {"providerID": "cloud:///i-1"}, addresses=[address], failureDomain="zone-a"
    )
    until(lambda: get(door, MACHINE).status.phase == "Provisioned")
    found = get(door, MACHINE)
    assert found.spec.provider_id == "cloud:///i-1"
    assert found.status.provisioned
    assert [(a.type, a.address) for a in found.status.addresses] == [("InternalIP", "10.0.0.7")]
    assert found.status.failure_domain == "zone-a"
    (condition,) = found.status.conditions
    assert (condition.type, condition.status) == ("InfrastructureReady", "True")
    assert condition.message == "all good"


def test_the_members_of_a_pool_are_mirrored_as_they_come_and_go(door: Door) -> None:
    infrastructure(door, MACHINE_POOL)
    worker(door, MACHINE_POOL)
    provision(door, MACHINE_POOL, {"providerIDList": ["a", "b"]}, replicas=2)
    until(lambda: get(door, MACHINE_POOL).status.replicas == 2)
    assert get(door, MACHINE_POOL).spec.provider_id_list == ["a", "b"]
    provision(door, MACHINE_POOL, {"providerIDList": None}, replicas=0)
    until(lambda: get(door, MACHINE_POOL).status.replicas == 0)
    assert get(door, MACHINE_POOL).spec.provider_id_list == []


@KINDS
def test_it_goes_when_its_infrastructure_is_gone(door: Door, kind: WorkerKind) -> None:
    infrastructure(door, kind, finalizers=[HOLD])
    worker(door, kind)
    until(lambda: infra(door, kind).metadata.controller)
    door.delete(kind.resource, "worker", NAMESPACE)
    until(lambda: infra(door, kind).deleting)
    assert get(door, kind).status.phase == "Deleting"
    door.patch(kind.infrastructure, "infra", NAMESPACE, {"metadata": {"finalizers": None}})
    until(lambda: not exists(door, kind.resource, "worker"))


@KINDS
def test_a_cluster_waits_for_it_before_its_own_infrastructure_goes(
    door: Door, kind: WorkerKind
) -> None:
    spec = {"source": {"image": "example.com/a:v1"}, "identityRef": {"name": "account"}}
    create(door, TERRAFORM_CLUSTERS, {"metadata": {"name": "network"}, "spec": spec})
    cluster(door)
    infrastructure(door, kind, finalizers=[HOLD])
    worker(door, kind)
    until(lambda: infra(door, kind).metadata.controller)
    until(lambda: door.get(CLUSTERS, "prod", NAMESPACE).status.conditions)
    door.delete(CLUSTERS, "prod", NAMESPACE)
    until(lambda: infra(door, kind).deleting)
    assert not door.get(TERRAFORM_CLUSTERS, "network", NAMESPACE).deleting
    door.patch(kind.infrastructure, "infra", NAMESPACE, {"metadata": {"finalizers": None}})
    until(lambda: not exists(door, CLUSTERS, "prod"))
    assert not exists(door, TERRAFORM_CLUSTERS, "network")
    assert not exists(door, kind.resource, "worker")


def test_the_machines_of_another_cluster_are_left_alone(door: Door) -> None:
    cluster(door)
    worker(door, MACHINE, clusterName="another")
    until(lambda: get(door, MACHINE).metadata.finalizers)
    until(lambda: door.get(CLUSTERS, "prod", NAMESPACE).metadata.finalizers)
    door.delete(CLUSTERS, "prod", NAMESPACE)
    until(lambda: not exists(door, CLUSTERS, "prod"))
    assert not get(door, MACHINE).deleting


@KINDS
def test_it_is_left_alone_while_its_cluster_is_paused(door: Door, kind: WorkerKind) -> None:
    cluster(door, paused=True)
    infrastructure(door, kind)
    worker(door, kind)
    create(door, CLUSTERS, {"metadata": {"name": "other"}, "spec": {}})
    until(lambda: door.get(CLUSTERS, "other", NAMESPACE).metadata.finalizers)
    assert infra(door, kind).metadata.owner_references == []
    door.patch(CLUSTERS, "prod", NAMESPACE, {"spec": {"paused": False}})
    until(lambda: infra(door, kind).metadata.controller)


def test_a_machine_of_another_provider_is_left_alone(door: Door) -> None:
    ref = {"apiGroup": INFRASTRUCTURE, "kind": "SomeMachine", "name": "infra"}
    worker(door, MACHINE, infrastructureRef=ref)
    infrastructure(door, MACHINE)
    create(door, CLUSTERS, {"metadata": {"name": "other"}, "spec": {}})
    until(lambda: door.get(CLUSTERS, "other", NAMESPACE).metadata.finalizers)
    assert get(door, MACHINE).metadata.finalizers == []
    assert infra(door, MACHINE).metadata.owner_references == []
