"""Objects of every kind survive the way to a server and back."""

import json
from datetime import UTC, datetime

import msgspec
import pytest

from captfctl.model import capi, core, identity, resources, terraform
from captfctl.model.meta import (
    LabelSelector,
    ObjectMeta,
    OwnerReference,
    micro_time,
    parse_time,
    whole_seconds,
)
from captfctl.model.resource import Resource
from captfctl.model.resources import (
    CONFIG_MAPS,
    JOBS,
    NODES,
    PODS,
    SECRETS,
    TERRAFORM_CLUSTER_IDENTITIES,
    TERRAFORM_CLUSTERS,
)

ALL = [value for value in vars(resources).values() if isinstance(value, Resource)]

CLUSTER = {
    "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1",
    "kind": "TerraformCluster",
    "metadata": {"name": "prod", "namespace": "team-a", "generation": 2},
    "spec": {
        "source": {"image": "ghcr.io/example/cluster:v1", "imagePullPolicy": "Always"},
        "identityRef": {"kind": "Secret", "name": "cloud"},
        "variables": {"ratio": 1.50, "nested": {"a": [None, True]}},
        "variablesFrom": [{"secretRef": {"name": "s"}, "optional": True, "format": "JSON"}],
        "jobs": {
            "lockTimeoutSeconds": 0,
            "failedJobsHistoryLimit": 0,
            "resources": {"requests": {"cpu": 1, "memory": "1Gi"}},
            "env": [{"name": "A", "value": "1"}],
            "securityContext": {"runAsUser": 1000},
        },
        "drift": {"intervalSeconds": 0, "action": "Remediate"},
        "applyPolicy": "Manual",
        "deletionPolicy": "Retain",
        "adoptRetainedState": True,
        "controlPlaneEndpoint": {"host": "api.example.com", "port": 6443},
    },
    "status": {
        "initialization": {"provisioned": True},
        "exports": {"ratio": 1.50},
        "failureDomains": [{"name": "a", "controlPlane": False}],
        "lastRefresh": "2026-09-25T12:00:00Z",
        "lastRun": {
            "job": "j",
            "steps": [{"name": "init", "exitCode": 0, "durationMilliseconds": 0}],
        },
    },
}


def there_and_back(resource, document):
    body = json.dumps(document).encode()
    return json.loads(resource.encode(resource.decode(body)))


def test_a_cluster_keeps_every_field():
    assert there_and_back(TERRAFORM_CLUSTERS, CLUSTER) == CLUSTER


def test_free_form_fields_keep_their_text():
    body = json.dumps(CLUSTER).replace("1.5", "1.500e0").encode()
    again = TERRAFORM_CLUSTERS.encode(TERRAFORM_CLUSTERS.decode(body))
    assert again.count(b"1.500e0") == 2


def test_unset_fields_are_not_written():
    obj = terraform.TerraformCluster(
        spec=terraform.TerraformClusterSpec(source=terraform.Source(image="x"))
    )
    assert json.loads(TERRAFORM_CLUSTERS.encode(obj)) == {
        "metadata": {},
        "spec": {"source": {"image": "x"}},
        "status": {},
    }


def test_a_limit_of_zero_is_not_the_same_as_none():
    policy = terraform.JobPolicy(lock_timeout_seconds=0)
    assert msgspec.json.encode(policy) == b'{"lockTimeoutSeconds":0}'
    assert msgspec.json.encode(terraform.JobPolicy()) == b"{}"


def test_an_empty_selector_is_kept_because_it_means_everybody():
    allowed = identity.AllowedNamespaces(selector=LabelSelector())
    assert msgspec.json.encode(allowed) == b'{"selector":{}}'


def test_an_identity_keeps_every_field():
    document = {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1",
        "kind": "TerraformClusterIdentity",
        "metadata": {"name": "cloud"},
        "spec": {
            "type": "Secret",
            "secretRef": {"name": "s", "namespace": "n"},
            "requiredKeys": ["A"],
            "allowedNamespaces": {
                "list": ["a"],
                "selector": {"matchExpressions": [{"key": "k", "operator": "Exists"}]},
            },
        },
        "status": {"namespaces": ["a"]},
    }
    assert there_and_back(TERRAFORM_CLUSTER_IDENTITIES, document) == document


def test_the_bytes_of_a_secret_are_base64_on_the_wire_only():
    secret = core.Secret(metadata=ObjectMeta(name="s"), data={"k": b"\xff\x00"})
    assert json.loads(SECRETS.encode(secret))["data"] == {"k": "/wA="}
    assert SECRETS.decode(SECRETS.encode(secret)) == secret
    config = core.ConfigMap(data={"a": "ä"}, binary_data={"b": b"\xff"})
    assert CONFIG_MAPS.decode(CONFIG_MAPS.encode(config)) == config


def test_zeros_that_mean_something_are_written():
    terminated = core.ContainerStateTerminated(exit_code=0)
    assert msgspec.json.encode(terminated) == b'{"exitCode":0}'
    job = core.Job(spec=core.JobSpec(backoff_limit=0))
    assert json.loads(JOBS.encode(job))["spec"]["backoffLimit"] == 0
    assert msgspec.json.encode(core.Volume(name="w", empty_dir=core.EmptyDir())) == (
        b'{"name":"w","emptyDir":{}}'
    )


def test_fields_that_are_not_ours_are_ignored():
    pod = PODS.decode(b'{"spec": {"unknown": [1]}, "status": {"qosClass": "Burstable"}}')
    assert pod == core.Pod()


def test_a_wrong_type_names_the_field():
    with pytest.raises(msgspec.ValidationError, match=r"\$.spec.source.image"):
        TERRAFORM_CLUSTERS.decode(b'{"spec": {"source": {"image": 1}}}')


def test_a_copy_is_independent():
    original = TERRAFORM_CLUSTERS.decode(json.dumps(CLUSTER).encode())
    copy = TERRAFORM_CLUSTERS.copy(original)
    assert copy == original
    copy.metadata.labels["x"] = "y"
    copy.status.failure_domains.clear()
    assert original.metadata.labels == {}
    assert len(original.status.failure_domains) == 1


@pytest.mark.parametrize("resource", ALL, ids=lambda resource: resource.name)
def test_every_resource_has_a_path_and_reads_metadata_alone(resource):
    assert resource.path().endswith(f"/{resource.plural}")
    partial = resource.metadata_only()
    obj = partial.decode(b'{"metadata": {"name": "x"}, "spec": {"a": 1}}')
    assert obj.metadata.name == "x"
    assert resource.untyped().decode(b'{"spec": {"a": 1}}') == {"spec": {"a": 1}}


def test_no_two_resources_share_a_path():
    assert len({resource.path() for resource in ALL}) == len(ALL)


def test_paths_are_those_of_the_api():
    assert PODS.path("team-a", "p", "log") == "/api/v1/namespaces/team-a/pods/p/log"
    assert PODS.path() == "/api/v1/pods"
    assert NODES.path("ignored", "n") == "/api/v1/nodes/n"
    assert JOBS.path("team-a") == "/apis/batch/v1/namespaces/team-a/jobs"
    assert (JOBS.name, PODS.name) == ("jobs.batch", "pods")
    assert (JOBS.api_version, PODS.api_version) == ("batch/v1", "v1")


def test_the_controller_is_the_marked_owner():
    owner = OwnerReference(kind="Job", name="j", uid="1", controller=True)
    meta = ObjectMeta(owner_references=[OwnerReference(kind="X", name="x"), owner])
    assert meta.controller is owner
    assert ObjectMeta().controller is None


@pytest.mark.parametrize(
    ("endpoint", "valid"),
    [({"host": "a", "port": 1}, True), ({"host": "a"}, False), ({"port": 1}, False), ({}, False)],
)
def test_an_endpoint_needs_host_and_port(endpoint, valid):
    assert capi.Endpoint(**endpoint).valid is valid


def test_times_are_written_as_kubernetes_expects_them():
    moment = datetime(2026, 9, 25, 12, 0, 0, 1000, tzinfo=UTC)
    assert micro_time(moment) == "2026-09-25T12:00:00.001000Z"
    assert msgspec.json.encode(whole_seconds(moment)) == b'"2026-09-25T12:00:00Z"'
    assert parse_time(micro_time(moment)) == moment
    assert parse_time("2026-09-25T14:00:00+02:00") == whole_seconds(moment)
    assert parse_time("2026-09-25T12:00:00") == whole_seconds(moment)
    assert parse_time("yesterday") is None


@pytest.mark.parametrize("field", ["variables", "exports"])
def test_a_free_form_field_that_is_cleared_is_left_out(field):
    obj = TERRAFORM_CLUSTERS.decode(json.dumps(CLUSTER).encode())
    part = obj.spec if field == "variables" else obj.status
    setattr(part, field, terraform.NO_JSON)
    written = json.loads(TERRAFORM_CLUSTERS.encode(obj))
    assert field not in written["spec"] | written["status"]
    assert TERRAFORM_CLUSTERS.copy(obj) == TERRAFORM_CLUSTERS.copy(TERRAFORM_CLUSTERS.copy(obj))
