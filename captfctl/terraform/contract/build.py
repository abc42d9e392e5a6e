"""Building the inputs of the cluster role from the objects (module-contract.md: Inputs)."""

from dataclasses import dataclass
from enum import StrEnum

from captfctl.model import keys
from captfctl.model.capi import Cluster, ClusterNetwork, Endpoint
from captfctl.model.terraform import TerraformCluster
from captfctl.terraform.contract.errors import ContractError
from captfctl.terraform.contract.jsontext import Json, NotJson, parse
from captfctl.terraform.contract.values import ClusterInputs, Network

SOURCE_USER = "user"
SOURCE_MODULE = "module"


class EndpointSourceChange(StrEnum):
    """What to do with the annotation `captf.io/endpoint-source`, once every gate has passed."""

    KEEP = "Keep"
    RECORD_USER = "RecordUser"
    REMOVE = "Remove"


@dataclass(frozen=True, kw_only=True)
class ClusterBuild:
    """The inputs, and what becomes of the annotation about the endpoint."""

    inputs: ClusterInputs
    endpoint_source: EndpointSourceChange


def build_cluster_inputs(
    obj: TerraformCluster, cluster: Cluster, previous_tfvars: bytes | None
) -> ClusterBuild:
    """The inputs the cluster would be applied with now.

    `previous_tfvars` is `terraform.tfvars.json` of the attempt record, None when that Secret does
    not exist yet. Raises `ContractError` when it is there and cannot be read.
    """
    previous = None if previous_tfvars is None else read_tfvars(previous_tfvars)
    endpoint = _endpoint_input(obj, cluster)
    topology = cluster.spec.topology
    inputs = ClusterInputs(
        cluster_name=cluster.metadata.name,
        cluster_namespace=cluster.metadata.namespace,
        name=obj.metadata.name,
        namespace=obj.metadata.namespace,
        template=obj.metadata.annotations.get(keys.CLONED_FROM_NAME, ""),
        control_plane_endpoint=endpoint,
        kubernetes_version=(topology.version if topology else "") or None,
        control_plane_initialized=_initialized(cluster, previous),
        cluster_network=_network(cluster.spec.cluster_network),
    )
    change = _endpoint_source(obj, endpoint, first=previous is None)
    return ClusterBuild(inputs=inputs, endpoint_source=change)


def endpoint_input_was_null(previous_tfvars: bytes | None) -> bool:
    """Whether the last rendered `control_plane_endpoint` was null; False when none was rendered.

    Raises `ContractError` when the record cannot be read.
    """
    if previous_tfvars is None:
        return False
    return read_tfvars(previous_tfvars).get("control_plane_endpoint") is None


def read_tfvars(tfvars: bytes) -> dict[str, Json]:
    """Recorded inputs. Raises `ContractError` when they cannot be read."""
    try:
        value = parse(tfvars)
    except NotJson as error:
        raise ContractError(
            "the recorded inputs of the last apply cannot be read",
            where="terraform.tfvars.json",
            why=error.what,
            do="restore the inputs Secret, or delete it: the next apply is recorded again",
        ) from None
    if not isinstance(value, dict):
        raise ContractError(
            "the recorded inputs of the last apply are not a JSON object",
            where="terraform.tfvars.json",
        )
    return value


def _endpoint_input(obj: TerraformCluster, cluster: Cluster) -> Endpoint | None:
    """An endpoint that the module itself reported is never fed back to it: that would change the
    inputs and apply again."""
    if obj.metadata.annotations.get(keys.ENDPOINT_SOURCE) == SOURCE_MODULE:
        return None
    for endpoint in (cluster.spec.control_plane_endpoint, obj.spec.control_plane_endpoint):
        if endpoint is not None and endpoint.valid:
            return Endpoint(host=endpoint.host, port=endpoint.port)
    return None


def _endpoint_source(
    obj: TerraformCluster, endpoint: Endpoint | None, first: bool
) -> EndpointSourceChange:
    source = obj.metadata.annotations.get(keys.ENDPOINT_SOURCE, "")
    if first and endpoint is not None and not source:
        return EndpointSourceChange.RECORD_USER
    if first and endpoint is None and source == SOURCE_USER:
        # The user took the endpoint back before anything was applied.
        return EndpointSourceChange.REMOVE
    return EndpointSourceChange.KEEP


def _initialized(cluster: Cluster, previous: dict[str, Json] | None) -> bool:
    """Once rendered true it stays true: the Cluster's status does not survive a move."""
    if previous is not None and previous.get("control_plane_initialized") is True:
        return True
    initialization = cluster.status.initialization
    return initialization is not None and initialization.control_plane_initialized is True


def _network(network: ClusterNetwork | None) -> Network | None:
    if network is None:
        return None
    found = Network(
        pods=tuple(network.pods.cidr_blocks) if network.pods else (),
        services=tuple(network.services.cidr_blocks) if network.services else (),
        service_domain=network.service_domain or None,
        api_server_port=network.api_server_port or None,
    )
    return None if found == Network() else found
