"""The values of the contract inputs, one type per role (module-contract.md: Inputs)."""

from dataclasses import dataclass, field, replace
from typing import ClassVar

from captfctl.model.capi import Endpoint
from captfctl.model.kinds import CONTRACT_VERSION, Role
from captfctl.terraform.contract.jsontext import Json


@dataclass(frozen=True, kw_only=True)
class ContractInputs:
    """What every role is given. `template` is the name of the template that the object was cloned
    from, "" for none."""

    role: ClassVar[Role]

    cluster_name: str
    cluster_namespace: str
    name: str
    namespace: str
    template: str = ""

    def values(self) -> dict[str, Json]:
        """Every contract input of the role under its own name, null where it has no value."""
        return {
            "captf_contract": CONTRACT_VERSION,
            "captf_cluster": {"name": self.cluster_name, "namespace": self.cluster_namespace},
            "captf_object": {
                "kind": self.role.kind,
                "name": self.name,
                "namespace": self.namespace,
            },
            "captf_tags": self._tags(),
            **self._own(),
        }

    def hash_view(self) -> "ContractInputs":
        """What the inputs hash sees instead of what is rendered (api.md: The inputs hash)."""
        return self

    def approval_view(self) -> "ContractInputs":
        """What an approval is bound to."""
        return self.hash_view()

    def _own(self) -> dict[str, Json]:
        raise NotImplementedError

    def _tags(self) -> dict[str, Json]:
        """The tags that a module puts on everything it creates (module-contract.md: Tags)."""
        return {
            "captf.io/cluster": self.cluster_name,
            "captf.io/namespace": self.namespace,
            "captf.io/kind": self.role.kind,
            "captf.io/name": self.name,
            "captf.io/managed-by": "captf",
            "captf.io/template": self.template,
        }


@dataclass(frozen=True, kw_only=True)
class Network:
    """`Cluster.spec.clusterNetwork`, where at least one field is set."""

    pods: tuple[str, ...] = ()
    services: tuple[str, ...] = ()
    service_domain: str | None = None
    api_server_port: int | None = None

    def value(self) -> Json:
        """The value of the contract input."""
        return {
            "pods": list(self.pods),
            "services": list(self.services),
            "service_domain": self.service_domain,
            "api_server_port": self.api_server_port,
        }


@dataclass(frozen=True, kw_only=True)
class ClusterInputs(ContractInputs):
    """What the cluster role is given."""

    role: ClassVar[Role] = Role.CLUSTER

    control_plane_endpoint: Endpoint | None = None
    kubernetes_version: str | None = None
    control_plane_initialized: bool = False
    cluster_network: Network | None = None

    def _own(self) -> dict[str, Json]:
        endpoint, network = self.control_plane_endpoint, self.cluster_network
        return {
            "control_plane_endpoint": {"host": endpoint.host, "port": endpoint.port}
            if endpoint
            else None,
            "kubernetes_version": self.kubernetes_version,
            "control_plane_initialized": self.control_plane_initialized,
            "cluster_network": network.value() if network else None,
        }


@dataclass(frozen=True, kw_only=True)
class MachineInputs(ContractInputs):
    """`bootstrap_data` is standard base64 with padding."""

    role: ClassVar[Role] = Role.MACHINE

    cluster_outputs: Json
    machine_name: str
    bootstrap_data: str = field(repr=False)
    bootstrap_format: str
    failure_domain: str | None = None
    kubernetes_version: str | None = None
    control_plane: bool = False

    def _own(self) -> dict[str, Json]:
        return {
            "captf_cluster_outputs": self.cluster_outputs,
            "machine_name": self.machine_name,
            "bootstrap_data": self.bootstrap_data,
            "bootstrap_format": self.bootstrap_format,
            "failure_domain": self.failure_domain,
            "kubernetes_version": self.kubernetes_version,
            "control_plane": self.control_plane,
        }


@dataclass(frozen=True, kw_only=True)
class Autoscaling:
    """The limits of an autoscaled pool."""

    enabled: bool = False
    min: int = 0
    max: int = 0


@dataclass(frozen=True, kw_only=True)
class MachinePoolInputs(ContractInputs):
    """`bootstrap_data` is standard base64 with padding."""

    role: ClassVar[Role] = Role.MACHINE_POOL

    cluster_outputs: Json
    machinepool_name: str
    replicas: int
    bootstrap_data: str = field(repr=False)
    bootstrap_format: str
    failure_domains: tuple[str, ...] = ()
    cluster_failure_domains: tuple[str, ...] = ()
    kubernetes_version: str | None = None
    node_labels: dict[str, str] = field(default_factory=dict)
    autoscaling: Autoscaling = field(default_factory=Autoscaling)

    def hash_view(self) -> "MachinePoolInputs":
        # With autoscaling on, the number of replicas is an observation and not a wish.
        return replace(self, replicas=0) if self.autoscaling.enabled else self

    def approval_view(self) -> "MachinePoolInputs":
        # Bootstrap data rotates every few minutes: an approval would never live long enough.
        return replace(self.hash_view(), bootstrap_data="")

    def _own(self) -> dict[str, Json]:
        scaling = self.autoscaling
        return {
            "captf_cluster_outputs": self.cluster_outputs,
            "machinepool_name": self.machinepool_name,
            "replicas": self.replicas,
            "bootstrap_data": self.bootstrap_data,
            "bootstrap_format": self.bootstrap_format,
            "failure_domains": list(self.failure_domains),
            "cluster_failure_domains": list(self.cluster_failure_domains),
            "kubernetes_version": self.kubernetes_version,
            "node_labels": {**self.node_labels},
            "autoscaling": {
                "enabled": scaling.enabled,
                "min": scaling.min,
                "max": scaling.max,
            },
        }
