"""What a cluster's outputs change on its objects (60 §8.1, §8.4, §8.5)."""

from dataclasses import dataclass

from captfctl.contract.outputs import ClusterOutputs, Health
from captfctl.model.capi import Cluster, Endpoint
from captfctl.model.conditions import ConditionValue
from captfctl.model.events import Note
from captfctl.model.terraform import FailureDomain, TerraformCluster


@dataclass(frozen=True, kw_only=True)
class ClusterMapping:
    """The new values; the caller writes them to the object.

    `endpoint` None leaves `spec.controlPlaneEndpoint` as it is; otherwise it is written together
    with the annotation `captf.io/endpoint-source: module`. `exports` is compact JSON, empty when
    the field is to be cleared. `endpoint_available` None leaves that condition as it is.
    """

    outputs_valid: ConditionValue
    infrastructure_healthy: ConditionValue | None
    """None keeps the present one: nothing was applied successfully yet."""
    endpoint_available: ConditionValue | None
    provisioned: bool
    endpoint: Endpoint | None
    failure_domains: tuple[FailureDomain, ...]
    exports: bytes
    notes: tuple[Note, ...] = ()


def map_cluster(
    obj: TerraformCluster,
    cluster: Cluster | None,
    outputs: ClusterOutputs,
    *,
    state_has_hash: bool,
    endpoint_input_was_null: bool,
) -> ClusterMapping:
    """Everything the state's outputs say about the objects.

    `endpoint_input_was_null`: the last rendered `control_plane_endpoint` input (attempt record) was
    null. Pure: `obj` is not changed.
    """
    raise NotImplementedError


def infrastructure_healthy(health: Health | None) -> ConditionValue:
    """60 §8.4. None is an absent, null or invalid health."""
    raise NotImplementedError
