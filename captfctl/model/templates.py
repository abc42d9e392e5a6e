"""`TerraformClusterTemplate`, `TerraformMachineTemplate` and `TerraformMachinePoolTemplate`
(api.md: Templates).

That `spec.template.spec` never changes is an admission policy, not a rule of the schema: a
ClusterClass asks with changed templates what would become of them.
"""

from enum import StrEnum
from typing import Annotated, ClassVar

import msgspec

from captfctl.model.machine import TerraformMachinePoolSpec, TerraformMachineSpec
from captfctl.model.meta import ApiObject, Part
from captfctl.model.schema import NOT_EMPTY, Schema, rule
from captfctl.model.status import Conditions
from captfctl.model.terraform import TerraformClusterSpec


class TemplateMeta(Part):
    """Labels and annotations of what is made from the template."""

    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)


class ClusterFromTemplateSpec(TerraformClusterSpec):
    """The spec of the clusters that are made from the template."""

    SCHEMA: ClassVar[Schema] = NOT_EMPTY


class ClusterFromTemplate(Part, kw_only=True):
    metadata: TemplateMeta | None = None
    spec: ClusterFromTemplateSpec


class TerraformClusterTemplateSpec(Part):
    template: ClusterFromTemplate


class TerraformClusterTemplate(ApiObject, kw_only=True):
    """What a ClusterClass makes TerraformClusters from."""

    spec: TerraformClusterTemplateSpec


class MachineFromTemplateSpec(TerraformMachineSpec):
    """The spec of the machines that are made from the template."""

    SCHEMA: ClassVar[Schema] = NOT_EMPTY


class MachineFromTemplate(Part, kw_only=True):
    metadata: TemplateMeta | None = None
    spec: MachineFromTemplateSpec


Quantity = Annotated[
    int | str,
    rule(pattern=r"^[0-9]+(\.[0-9]*)?([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$|^\.[0-9]+"),
]
Capacity = Annotated[dict[str, Quantity], rule(minProperties=1, maxProperties=64)]


class Architecture(StrEnum):
    """Processors that Cluster API knows."""

    AMD64 = "amd64"
    ARM64 = "arm64"
    S390X = "s390x"
    PPC64LE = "ppc64le"


class NodeInfo(Part):
    SCHEMA: ClassVar[Schema] = NOT_EMPTY

    architecture: Architecture | None = None
    operating_system: Annotated[str, rule(minLength=1, maxLength=64)] = ""


class TerraformMachineTemplateSpec(Part):
    template: MachineFromTemplate
    capacity: Capacity = msgspec.field(default_factory=dict)
    """What a Node made from the template offers: cpu, memory and the like. An autoscaler needs it
    to grow from no Node."""
    node_info: NodeInfo | None = None
    """What else an autoscaler may need to know of such a Node."""


class TerraformMachineTemplateStatus(Part):
    SCHEMA: ClassVar[Schema] = NOT_EMPTY

    capacity: Capacity = msgspec.field(default_factory=dict)
    """Read by autoscalers."""
    node_info: NodeInfo | None = None
    conditions: Conditions = msgspec.field(default_factory=list)
    observed_generation: Annotated[int, rule(minimum=1)] = 0


class TerraformMachineTemplate(ApiObject, kw_only=True):
    """What MachineDeployments, MachineSets and control planes make TerraformMachines from."""

    spec: TerraformMachineTemplateSpec
    status: TerraformMachineTemplateStatus = msgspec.field(
        default_factory=TerraformMachineTemplateStatus
    )


class PoolFromTemplateSpec(TerraformMachinePoolSpec):
    """The spec of the pools that are made from the template."""

    SCHEMA: ClassVar[Schema] = NOT_EMPTY


class PoolFromTemplate(Part, kw_only=True):
    metadata: TemplateMeta | None = None
    spec: PoolFromTemplateSpec


class TerraformMachinePoolTemplateSpec(Part):
    template: PoolFromTemplate


class TerraformMachinePoolTemplate(ApiObject, kw_only=True):
    """What a ClusterClass makes TerraformMachinePools from."""

    spec: TerraformMachinePoolTemplateSpec
