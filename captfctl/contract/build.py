"""Building the inputs of the cluster role from the objects (60 §4.3)."""

from dataclasses import dataclass
from enum import StrEnum

from captfctl.contract.values import ClusterInputs
from captfctl.model.capi import Cluster
from captfctl.model.terraform import TerraformCluster


class EndpointSourceChange(StrEnum):
    """What to do with the annotation `captf.io/endpoint-source`, once every gate has passed."""

    KEEP = "Keep"
    RECORD_USER = "RecordUser"
    REMOVE = "Remove"


@dataclass(frozen=True, kw_only=True)
class ClusterBuild:
    inputs: ClusterInputs
    endpoint_source: EndpointSourceChange


def build_cluster_inputs(
    obj: TerraformCluster, cluster: Cluster, previous_tfvars: bytes | None
) -> ClusterBuild:
    """The inputs the cluster would be applied with now.

    `previous_tfvars` is `terraform.tfvars.json` of the attempt record, None when that Secret does
    not exist yet. Raises `ContractError` when it is there and cannot be read.
    """
    raise NotImplementedError


def endpoint_input_was_null(previous_tfvars: bytes | None) -> bool:
    """Whether the last rendered `control_plane_endpoint` was null; False when nothing was rendered."""
    raise NotImplementedError
