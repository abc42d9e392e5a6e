"""Objects and inputs that the tests of the contract start from."""

from typing import Any

import msgspec

from captfctl.model.capi import Cluster
from captfctl.model.terraform import IdentityRef, Source, TerraformCluster, TerraformClusterSpec
from captfctl.terraform.contract.jsontext import Json, parse
from captfctl.terraform.contract.values import (
    Autoscaling,
    ClusterInputs,
    MachineInputs,
    MachinePoolInputs,
)

BOOTSTRAP = "I2Nsb3VkLWNvbmZpZw=="
EXPORTS: Json = parse('{"network_id":"net-1","subnets":["a","b"],"mtu":1500}')


def cluster_inputs(**fields: Any) -> ClusterInputs:
    base: dict[str, Any] = {
        "cluster_name": "prod",
        "cluster_namespace": "team-a",
        "name": "prod",
        "namespace": "team-a",
    }
    return ClusterInputs(**base | fields)


def machine_inputs(**fields: Any) -> MachineInputs:
    base: dict[str, Any] = {
        "cluster_name": "prod",
        "cluster_namespace": "team-a",
        "name": "prod-md-0-abcde",
        "namespace": "team-a",
        "template": "prod-md-0",
        "cluster_outputs": EXPORTS,
        "machine_name": "prod-md-0-abcde-xyz12",
        "bootstrap_data": BOOTSTRAP,
        "bootstrap_format": "cloud-config",
        "failure_domain": "zone-a",
        "kubernetes_version": "v1.36.2",
    }
    return MachineInputs(**base | fields)


def pool_inputs(**fields: Any) -> MachinePoolInputs:
    base: dict[str, Any] = {
        "cluster_name": "prod",
        "cluster_namespace": "team-a",
        "name": "prod-pool",
        "namespace": "team-a",
        "cluster_outputs": EXPORTS,
        "machinepool_name": "prod-pool",
        "replicas": 3,
        "bootstrap_data": BOOTSTRAP,
        "bootstrap_format": "cloud-config",
        "autoscaling": Autoscaling(),
    }
    return MachinePoolInputs(**base | fields)


def terraform_cluster(**spec: Any) -> TerraformCluster:
    base: dict[str, Any] = {
        "source": Source(image="ghcr.io/example/cluster:v1"),
        "identity_ref": IdentityRef(name="cloud"),
    }
    obj = TerraformCluster(spec=TerraformClusterSpec(**base | spec))
    obj.metadata.name, obj.metadata.namespace, obj.metadata.generation = "prod", "team-a", 1
    obj.status.observed_generation = 1
    return obj


def capi_cluster(document: dict[str, Any] | None = None) -> Cluster:
    """A Cluster with the given spec and status."""
    base = {"metadata": {"name": "prod", "namespace": "team-a"}}
    return msgspec.convert(base | (document or {}), Cluster)


def raw(document: dict[str, str]) -> dict[str, msgspec.Raw]:
    """Outputs of a state by name, as JSON texts."""
    return {name: msgspec.Raw(text.encode()) for name, text in document.items()}
