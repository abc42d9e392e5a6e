"""`TerraformClusterTemplate` and `TerraformMachineTemplate` (api.md: Templates).

That `spec.template.spec` never changes is an admission policy, not a rule of the schema: a
ClusterClass asks with changed templates what would become of them.
"""

from typing import ClassVar

import msgspec

from captfctl.model.machine import TerraformMachineSpec
from captfctl.model.meta import ApiObject, Part
from captfctl.model.schema import NOT_EMPTY, Schema
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


class TerraformMachineTemplateSpec(Part):
    template: MachineFromTemplate


class TerraformMachineTemplate(ApiObject, kw_only=True):
    """What MachineDeployments, MachineSets and control planes make TerraformMachines from."""

    spec: TerraformMachineTemplateSpec
