"""The stand-in for Cluster API: what our objects read of it
(local-mode.md: The stand-in for Cluster API)."""

from collections.abc import Iterator
from typing import Any

import pytest

from captfctl.clock import SystemClock
from captfctl.cluster.door import Door
from captfctl.cluster.errors import Invalid
from captfctl.embedded.capi import CapiStandIn, capi_crds, capi_policies
from captfctl.embedded.capi.clusters import FINALIZER
from captfctl.model.capi import Cluster
from captfctl.model.crds import crds
from captfctl.model.kinds import INFRASTRUCTURE
from captfctl.model.resources import ADMISSION_POLICIES, CLUSTERS, TERRAFORM_CLUSTERS
from captfctl.model.resources import ADMISSION_POLICY_BINDINGS as BINDINGS
from captfctl.model.terraform import TerraformCluster
from tests.embedded.support import NAMESPACE, create, exists, install, new_store, running, until

REFERENCE = {"apiGroup": INFRASTRUCTURE, "kind": "TerraformCluster", "name": "infra"}


@pytest.fixture
def door() -> Iterator[Door]:
    store = new_store()
    door = store.door()
    install(door, [*crds(), *capi_crds()])
    with running(CapiStandIn(door, SystemClock())):
        yield door
    store.close()


def infrastructure(door: Door, name: str = "infra", **metadata: Any) -> None:
    spec = {"source": {"image": "example.com/a:v1"}, "identityRef": {"name": "account"}}
    create(door, TERRAFORM_CLUSTERS, {"metadata": {"name": name, **metadata}, "spec": spec})


def cluster(door: Door, **spec: Any) -> None:
    create(
        door,
        CLUSTERS,
        {"metadata": {"name": "prod"}, "spec": {"infrastructureRef": REFERENCE, **spec}},
    )


def get(door: Door) -> Cluster:
    return door.get(CLUSTERS, "prod", NAMESPACE)


def infra(door: Door) -> TerraformCluster:
    return door.get(TERRAFORM_CLUSTERS, "infra", NAMESPACE)


def test_the_infrastructure_object_gets_owner_and_label(door: Door) -> None:
    infrastructure(door)
    cluster(door)
    owner = until(lambda: infra(door).metadata.controller)
    assert (owner.kind, owner.name, owner.uid) == ("Cluster", "prod", get(door).metadata.uid)
    assert owner.block_owner_deletion
    assert infra(door).metadata.labels["cluster.x-k8s.io/cluster-name"] == "prod"
    assert FINALIZER in get(door).metadata.finalizers
    until(lambda: get(door).status.phase == "Provisioning")


def test_an_infrastructure_object_that_comes_later_is_taken(door: Door) -> None:
    cluster(door)
    until(lambda: get(door).status.conditions)
    assert get(door).status.conditions[0].reason == "DoesNotExist"
    infrastructure(door)
    until(lambda: infra(door).metadata.controller)


def test_what_is_provisioned_is_mirrored(door: Door) -> None:
    infrastructure(door)
    cluster(door)
    until(lambda: infra(door).metadata.controller)
    endpoint = {"host": "api.example.com", "port": 6443}
    door.patch(TERRAFORM_CLUSTERS, "infra", NAMESPACE, {"spec": {"controlPlaneEndpoint": endpoint}})
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "Ready",
        "message": "all good",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    status = {"initialization": {"provisioned": True}, "conditions": [ready]}
    door.patch(TERRAFORM_CLUSTERS, "infra", NAMESPACE, {"status": status}, subresource="status")
    until(lambda: get(door).status.phase == "Provisioned")
    found = get(door)
    assert found.spec.control_plane_endpoint is not None
    assert found.spec.control_plane_endpoint.host == "api.example.com"
    assert found.status.initialization is not None
    assert found.status.initialization.infrastructure_provisioned
    condition = found.status.conditions[0]
    assert (condition.type, condition.status) == ("InfrastructureReady", "True")
    assert (condition.reason, condition.message) == ("Ready", "all good")


def test_our_conditions_reason_is_shown_while_it_is_not_ready(door: Door) -> None:
    infrastructure(door)
    cluster(door)
    waiting = {
        "type": "Ready",
        "status": "False",
        "reason": "NotReady",
        "message": "apply failed",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    door.patch(
        TERRAFORM_CLUSTERS,
        "infra",
        NAMESPACE,
        {"status": {"conditions": [waiting]}},
        subresource="status",
    )
    until(lambda: [c.message for c in get(door).status.conditions] == ["apply failed"])


def test_the_cluster_goes_when_its_infrastructure_is_gone(door: Door) -> None:
    infrastructure(door, finalizers=["example.com/x"])
    cluster(door)
    until(lambda: infra(door).metadata.controller)
    door.delete(CLUSTERS, "prod", NAMESPACE)
    until(lambda: infra(door).deleting)
    assert get(door).status.phase == "Deleting"
    assert exists(door, CLUSTERS, "prod")
    door.patch(TERRAFORM_CLUSTERS, "infra", NAMESPACE, {"metadata": {"finalizers": None}})
    until(lambda: not exists(door, CLUSTERS, "prod"))


def test_a_paused_cluster_is_left_alone_until_it_is_unpaused(door: Door) -> None:
    infrastructure(door)
    cluster(door, paused=True)
    create(door, CLUSTERS, {"metadata": {"name": "other"}, "spec": {}})
    until(lambda: FINALIZER in door.get(CLUSTERS, "other", NAMESPACE).metadata.finalizers)
    assert infra(door).metadata.owner_references == []
    door.patch(CLUSTERS, "prod", NAMESPACE, {"spec": {"paused": False}})
    until(lambda: infra(door).metadata.controller)


def test_an_infrastructure_object_of_another_cluster_is_not_taken(door: Door) -> None:
    owner = {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Cluster",
        "name": "another",
        "uid": "another-uid",
        "controller": True,
    }
    infrastructure(door, ownerReferences=[owner])
    cluster(door)
    until(lambda: get(door).status.conditions)
    assert [ref.uid for ref in infra(door).metadata.owner_references] == ["another-uid"]
    door.delete(CLUSTERS, "prod", NAMESPACE)
    until(lambda: not exists(door, CLUSTERS, "prod"))
    assert not infra(door).deleting


def test_a_cluster_whose_name_no_label_holds_is_refused_and_an_earlier_one_can_go(
    door: Door,
) -> None:
    early, late = "e" * 64, "l" * 64
    create(door, CLUSTERS, {"metadata": {"name": early}, "spec": {}})
    resources = {found.kind: found.untyped() for found in (ADMISSION_POLICIES, BINDINGS)}
    for document in capi_policies():
        door.create(resources[document["kind"]], document)

    with pytest.raises(Invalid, match="at most 63 characters, not 64"):
        create(door, CLUSTERS, {"metadata": {"name": late}, "spec": {}})
    create(door, CLUSTERS, {"metadata": {"name": "l" * 63}, "spec": {}})
    patch = {"spec": {"paused": False}, "metadata": {"finalizers": []}}
    door.patch(CLUSTERS, early, NAMESPACE, patch)
    door.delete(CLUSTERS, early, NAMESPACE)
