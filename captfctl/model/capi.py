"""The kinds of Cluster API, with the fields captfctl reads (contract v1beta2;
api.md: Cluster API)."""

import msgspec

from captfctl.model.meta import ApiObject, Condition, Part


class InfrastructureRef(Part):
    api_group: str = ""
    kind: str = ""
    name: str = ""


class Endpoint(Part):
    host: str = ""
    port: int = 0

    @property
    def valid(self) -> bool:
        """A host and a port that is not zero (module-contract.md: The control plane endpoint)."""
        return bool(self.host) and self.port != 0


class CidrBlocks(Part):
    cidr_blocks: list[str] = msgspec.field(default_factory=list)


class ClusterNetwork(Part):
    pods: CidrBlocks | None = None
    services: CidrBlocks | None = None
    service_domain: str = ""
    api_server_port: int = 0


class Topology(Part):
    version: str = ""


class ClusterSpec(Part):
    paused: bool = False
    infrastructure_ref: InfrastructureRef | None = None
    control_plane_endpoint: Endpoint | None = None
    cluster_network: ClusterNetwork | None = None
    topology: Topology | None = None


class ClusterInitialization(Part):
    infrastructure_provisioned: bool | None = None
    control_plane_initialized: bool | None = None


class ClusterStatus(Part):
    phase: str = ""
    initialization: ClusterInitialization | None = None
    conditions: list[Condition] = msgspec.field(default_factory=list)
    observed_generation: int = 0


class Cluster(ApiObject):
    spec: ClusterSpec = msgspec.field(default_factory=ClusterSpec)
    status: ClusterStatus = msgspec.field(default_factory=ClusterStatus)

    @property
    def infrastructure(self) -> InfrastructureRef | None:
        """The object that it says it owns."""
        return self.spec.infrastructure_ref

    @property
    def cluster_name(self) -> str:
        """The Cluster that it belongs to."""
        return self.metadata.name


class MachineBootstrap(Part):
    data_secret_name: str = ""


class MachineSpec(Part):
    cluster_name: str = ""
    provider_id: str = msgspec.field(name="providerID", default="")
    version: str = ""
    failure_domain: str = ""
    infrastructure_ref: InfrastructureRef | None = None
    bootstrap: MachineBootstrap | None = None

    @property
    def bootstrap_secret(self) -> str:
        """The Secret with the bootstrap data; empty while none is named."""
        return self.bootstrap.data_secret_name if self.bootstrap is not None else ""


class Machine(ApiObject):
    spec: MachineSpec = msgspec.field(default_factory=MachineSpec)

    @property
    def infrastructure(self) -> InfrastructureRef | None:
        """The object that it says it owns."""
        return self.spec.infrastructure_ref

    @property
    def cluster_name(self) -> str:
        """The Cluster that it belongs to."""
        return self.spec.cluster_name

    @property
    def bootstrap_secret(self) -> str:
        """The Secret with its bootstrap data; empty while none is named."""
        return self.spec.bootstrap_secret


class MachineTemplateMeta(Part):
    labels: dict[str, str] = msgspec.field(default_factory=dict)


class MachineTemplateSpec(Part):
    metadata: MachineTemplateMeta = msgspec.field(default_factory=MachineTemplateMeta)
    spec: MachineSpec = msgspec.field(default_factory=MachineSpec)


class MachinePoolSpec(Part):
    cluster_name: str = ""
    replicas: int | None = None
    failure_domains: list[str] = msgspec.field(default_factory=list)
    template: MachineTemplateSpec = msgspec.field(default_factory=MachineTemplateSpec)


class MachinePool(ApiObject):
    spec: MachinePoolSpec = msgspec.field(default_factory=MachinePoolSpec)

    @property
    def infrastructure(self) -> InfrastructureRef | None:
        """The object that it says it owns."""
        return self.spec.template.spec.infrastructure_ref

    @property
    def cluster_name(self) -> str:
        """The Cluster that it belongs to."""
        return self.spec.cluster_name

    @property
    def bootstrap_secret(self) -> str:
        """The Secret with the bootstrap data of its members; empty while none is named."""
        return self.spec.template.spec.bootstrap_secret
