"""The CustomResourceDefinitions of our kinds and of the Cluster API stand-in (api.md: Kinds)."""

import copy
from datetime import UTC, datetime

import pytest

from captfctl.cluster.errors import Invalid
from captfctl.embedded.capi import capi_crds
from captfctl.embedded.store import EmbeddedStore
from captfctl.model.crds import crds
from captfctl.model.resources import (
    CLUSTERS,
    CRDS,
    MACHINE_POOLS,
    MACHINES,
    TERRAFORM_CLUSTER_IDENTITIES,
    TERRAFORM_CLUSTERS,
)
from tests.support.clock import FakeClock

DEFINITIONS = crds() + capi_crds()
BY_NAME = {definition["metadata"]["name"]: definition for definition in DEFINITIONS}


def schema(definition):
    (version,) = definition["spec"]["versions"]
    return version["schema"]["openAPIV3Schema"]


def nodes(node, path="", arrays=()):
    """Every node of a schema with its path and the arrays and maps above it."""
    yield path, node, arrays
    for name, child in node.get("properties", {}).items():
        yield from nodes(child, f"{path}.{name}", arrays)
    for keyword in ("items", "additionalProperties"):
        if keyword in node:
            yield from nodes(node[keyword], f"{path}[]", (*arrays, node))


@pytest.fixture(params=DEFINITIONS, ids=list(BY_NAME))
def definition(request):
    return request.param


def test_every_node_is_structural(definition):
    for path, node, _ in nodes(schema(definition)):
        free = node.get("x-kubernetes-preserve-unknown-fields") or node.get(
            "x-kubernetes-int-or-string"
        )
        assert node.get("type") or free, path
        assert not ("properties" in node and "additionalProperties" in node), path
        assert node.get("type") != "array" or "items" in node, path
        assert "default" not in node, path


def test_the_server_keeps_the_metadata_to_itself(definition):
    assert schema(definition)["properties"]["metadata"] == {"type": "object"}


def test_the_keys_of_a_list_map_are_required(definition):
    for path, node, _ in nodes(schema(definition)):
        match node.get("x-kubernetes-list-type"):
            case "map":
                keys = node["x-kubernetes-list-map-keys"]
                assert set(keys) <= set(node["items"]["required"]), path
            case "set":
                assert node["items"]["type"] == "string", path


def test_rules_stand_only_where_their_cost_is_bounded(definition):
    for path, node, above in nodes(schema(definition)):
        if "x-kubernetes-validations" in node:
            assert all("maxItems" in parent for parent in above), path


def test_field_paths_of_rules_exist(definition):
    for path, node, _ in nodes(schema(definition)):
        for rule in node.get("x-kubernetes-validations", []):
            found = node
            for part in rule.get("fieldPath", "").split(".")[1:]:
                found = found["properties"][part]
            assert rule["rule"] and rule["message"], path


def test_ours_say_which_contract_they_implement():
    for definition in crds():
        assert definition["metadata"]["labels"]["cluster.x-k8s.io/v1beta2"] == "v1alpha1"
        assert definition["spec"]["names"]["categories"] == ["cluster-api"]
        assert definition["spec"]["conversion"] == {"strategy": "None"}
        (version,) = definition["spec"]["versions"]
        assert (version["served"], version["storage"]) == (True, True)
        if not definition["spec"]["names"]["kind"].endswith("Template"):
            assert version["subresources"] == {"status": {}}


def columns(name):
    (version,) = BY_NAME[name]["spec"]["versions"]
    return [
        column["name"] + ("*" if column.get("priority") else "")
        for column in version["additionalPrinterColumns"]
    ]


def test_the_cluster_kind():
    spec = BY_NAME["terraformclusters.infrastructure.cluster.x-k8s.io"]["spec"]
    assert spec["scope"] == "Namespaced"
    assert spec["names"]["shortNames"] == ["tfc"]
    assert spec["names"]["singular"] == "terraformcluster"
    assert columns("terraformclusters.infrastructure.cluster.x-k8s.io") == [
        "Cluster",
        "Ready",
        "Provisioned",
        "Endpoint",
        "Image*",
        "InputsApplied*",
        "Age",
    ]


def test_the_identity_kind_moves_with_its_users():
    definition = BY_NAME["terraformclusteridentities.infrastructure.cluster.x-k8s.io"]
    labels = definition["metadata"]["labels"]
    assert labels["clusterctl.cluster.x-k8s.io/move-hierarchy"] == ""
    assert definition["spec"]["scope"] == "Cluster"
    assert definition["spec"]["names"]["shortNames"] == ["tfci"]
    assert columns("terraformclusteridentities.infrastructure.cluster.x-k8s.io") == [
        "Secret",
        "Namespace",
        "Ready",
        "Age",
    ]


def test_fields_are_described_without_citing_what_the_reader_of_a_schema_does_not_have():
    spec = schema(BY_NAME["terraformclusters.infrastructure.cluster.x-k8s.io"])["properties"][
        "spec"
    ]
    for field in ("drift", "jobs", "variablesFrom", "deletionPolicy", "applyPolicy"):
        node = spec["properties"][field]
        assert node.get("description") or node.get("items", {}).get("description"), field
    assert (
        "0 switches them off"
        in (spec["properties"]["drift"]["properties"]["intervalSeconds"]["description"])
    )
    for definition in DEFINITIONS:
        for path, node, _ in nodes(schema(definition)):
            assert ".md" not in node.get("description", ""), path


def test_a_definition_may_be_changed_without_touching_the_next_one():
    before = copy.deepcopy(crds())
    crds()[0]["spec"]["names"]["plural"] = "changed"
    schema(crds()[0])["properties"].clear()
    assert crds() == before


@pytest.fixture(scope="module")
def door():
    door = EmbeddedStore.in_memory(FakeClock(datetime(2026, 9, 25, 12, tzinfo=UTC))).door()
    for definition in DEFINITIONS:
        door.create(CRDS.untyped(), copy.deepcopy(definition))
    return door


def cluster(name="prod", **spec):
    base = {"source": {"image": "ghcr.io/example/cluster:v1"}, "identityRef": {"name": "cloud"}}
    return {
        "apiVersion": TERRAFORM_CLUSTERS.api_version,
        "kind": "TerraformCluster",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {key: value for key, value in (base | spec).items() if value is not None},
    }


def create(door, document, resource=TERRAFORM_CLUSTERS):
    document["metadata"]["generateName"] = f"{document['metadata'].pop('name')}-"
    return door.create(resource.untyped(), document)


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"identityRef": None}, "spec.identityRef"),
        ({"source": None}, "spec.source"),
        ({"source": {}}, "spec.source.image"),
        ({"source": {"image": ""}}, "spec.source.image"),
        ({"source": {"image": "x", "imagePullPolicy": "Sometimes"}}, "spec.source.imagePullPolicy"),
        ({"variables": {}}, "spec.variables"),
        ({"variables": []}, "spec.variables"),
        ({"variables": {f"v{i}": 1 for i in range(257)}}, "spec.variables"),
        ({"variablesFrom": []}, "spec.variablesFrom"),
        ({"variablesFrom": [{"secretRef": {"name": "a"}}] * 17}, "spec.variablesFrom"),
        ({"variablesFrom": [{"optional": True}]}, "spec.variablesFrom[0]"),
        (
            {"variablesFrom": [{"secretRef": {"name": "a"}, "configMapRef": {"name": "a"}}]},
            "spec.variablesFrom[0]",
        ),
        (
            {"variablesFrom": [{"secretRef": {"name": "A_b"}}]},
            "spec.variablesFrom[0].secretRef.name",
        ),
        ({"jobs": {}}, "spec.jobs"),
        ({"jobs": {"lockTimeoutSeconds": 3601}}, "spec.jobs.lockTimeoutSeconds"),
        ({"jobs": {"activeDeadlineSeconds": 0}}, "spec.jobs.activeDeadlineSeconds"),
        ({"jobs": {"failedJobsHistoryLimit": 101}}, "spec.jobs.failedJobsHistoryLimit"),
        ({"jobs": {"env": [{"name": "A"}, {"name": "A"}]}}, "spec.jobs.env[1]"),
        ({"jobs": {"imagePullSecrets": [{"name": "a"}] * 11}}, "spec.jobs.imagePullSecrets"),
        ({"jobs": {"resources": {"limits": {"cpu": 1.5}}}}, "spec.jobs.resources.limits"),
        ({"controlPlaneEndpoint": {"host": "a"}}, "spec.controlPlaneEndpoint"),
        ({"controlPlaneEndpoint": {"host": "a", "port": 65536}}, "spec.controlPlaneEndpoint.port"),
        ({"drift": {"intervalSeconds": -1}}, "spec.drift.intervalSeconds"),
        ({"drift": {"action": "Ignore"}}, "spec.drift.action"),
        ({"maxActiveJobs": 0}, "spec.maxActiveJobs"),
        ({"applyPolicy": "Never"}, "spec.applyPolicy"),
        ({"deletionPolicy": "Orphan"}, "spec.deletionPolicy"),
        (
            {"defaults": {"membershipRefreshIntervalSeconds": 14}},
            "spec.defaults.membershipRefreshIntervalSeconds",
        ),
        (
            {"defaults": {"remediation": {"unhealthyThreshold": 101}}},
            "spec.defaults.remediation.unhealthyThreshold",
        ),
    ],
)
def test_a_cluster_that_breaks_a_rule_is_refused_at_the_field(door, spec, field):
    with pytest.raises(Invalid) as caught:
        create(door, cluster(**spec))
    assert any(cause.field.startswith(field) for cause in caught.value.causes), caught.value.causes


def test_a_cluster_that_uses_every_field_is_admitted(door):
    created = create(
        door,
        cluster(
            variables={"anything": {"goes": [1.5, None]}},
            variablesFrom=[{"secretRef": {"name": "a"}, "optional": True, "format": "JSON"}],
            jobs={
                "lockTimeoutSeconds": 0,
                "resources": {"limits": {"cpu": 1, "memory": "1Gi"}},
                "securityContext": {"runAsUser": 5},
                "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            },
            controlPlaneEndpoint={"host": "a", "port": 6443},
            drift={"intervalSeconds": 0, "action": "Remediate"},
            applyPolicy="Manual",
            deletionPolicy="Retain",
            adoptRetainedState=True,
            maxActiveJobs=1,
            defaults={"identityRef": {"name": "x"}, "jobs": {"failedJobsHistoryLimit": 0}},
        ),
    )
    assert created["spec"]["variables"] == {"anything": {"goes": [1.5, None]}}
    assert created["spec"]["jobs"]["env"][0]["valueFrom"]["fieldRef"]["fieldPath"]


@pytest.mark.parametrize(
    ("patch", "admitted"),
    [
        ({"controlPlaneEndpoint": {"host": "b"}}, False),
        ({"controlPlaneEndpoint": {"port": 2}}, False),
        ({"controlPlaneEndpoint": None}, False),
        ({"maxActiveJobs": 2}, True),
    ],
)
def test_a_whole_endpoint_is_written_once(door, patch, admitted):
    name = f"once-{abs(hash(str(patch)))}"
    created = door.create(
        TERRAFORM_CLUSTERS.untyped(),
        cluster(name, controlPlaneEndpoint={"host": "a", "port": 1}),
    )
    arguments = (TERRAFORM_CLUSTERS.untyped(), created["metadata"]["name"], "default")
    if admitted:
        door.patch(*arguments, {"spec": patch})
        return
    with pytest.raises(Invalid, match="immutable"):
        door.patch(*arguments, {"spec": patch})


def identity(**spec):
    return {
        "apiVersion": TERRAFORM_CLUSTER_IDENTITIES.api_version,
        "kind": "TerraformClusterIdentity",
        "metadata": {"name": "cloud"},
        "spec": spec,
    }


SECRET = {"name": "s", "namespace": "n"}


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({}, "spec"),
        ({"requiredKeys": ["A"]}, "spec.secretRef"),
        ({"type": "Vault"}, "spec.type"),
        ({"secretRef": {"name": "s"}}, "spec.secretRef.namespace"),
        ({"secretRef": {"name": "s", "namespace": "a.b"}}, "spec.secretRef.namespace"),
        ({"secretRef": SECRET, "allowedNamespaces": {}}, "spec.allowedNamespaces"),
        ({"secretRef": SECRET, "allowedNamespaces": {"list": []}}, "spec.allowedNamespaces.list"),
        (
            {"secretRef": SECRET, "allowedNamespaces": {"list": ["a", "a"]}},
            "spec.allowedNamespaces.list[1]",
        ),
        ({"secretRef": SECRET, "requiredKeys": ["a b"]}, "spec.requiredKeys[0]"),
    ],
)
def test_an_identity_that_breaks_a_rule_is_refused_at_the_field(door, spec, field):
    with pytest.raises(Invalid) as caught:
        create(door, identity(**spec), TERRAFORM_CLUSTER_IDENTITIES)
    assert any(cause.field.startswith(field) for cause in caught.value.causes), caught.value.causes


@pytest.mark.parametrize("allowed", [{"list": ["a"]}, {"selector": {}}, None])
def test_an_identity_says_who_may_use_it(door, allowed):
    spec = {"secretRef": SECRET} | ({"allowedNamespaces": allowed} if allowed else {})
    created = create(door, identity(**spec), TERRAFORM_CLUSTER_IDENTITIES)
    assert created["spec"].get("allowedNamespaces") == allowed


@pytest.mark.parametrize("resource", [CLUSTERS, MACHINES, MACHINE_POOLS])
def test_the_stand_in_keeps_fields_that_it_does_not_know(door, resource):
    document = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": "x", "namespace": "default"},
        "spec": {"clusterName": "c", "unknown": {"a": [1]}, "bootstrap": {"other": 1}},
    }
    created = create(door, document, resource)
    assert created["spec"]["unknown"] == {"a": [1]}
    assert created["spec"]["bootstrap"] == {"other": 1}


def test_the_stand_in_checks_the_fields_that_are_read(door):
    document = {
        "apiVersion": CLUSTERS.api_version,
        "kind": "Cluster",
        "metadata": {"name": "x", "namespace": "default"},
        "spec": {"controlPlaneEndpoint": {"port": "6443"}},
    }
    with pytest.raises(Invalid) as caught:
        create(door, document, CLUSTERS)
    assert caught.value.causes[0].field == "spec.controlPlaneEndpoint.port"
