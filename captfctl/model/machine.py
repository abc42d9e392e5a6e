"""`TerraformMachine` and `TerraformMachinePool` (api.md: TerraformMachine)."""

from enum import StrEnum
from typing import Annotated, ClassVar

import msgspec

from captfctl.model.interface import HealthState
from captfctl.model.meta import Part
from captfctl.model.schema import ATOMIC, NOT_EMPTY, Schema, cel, rule
from captfctl.model.status import CommonStatus, PendingPlanRef
from captfctl.model.terraform import ClusterDrift, Remediation, TerraformObject, TerraformSpec

ProviderID = Annotated[str, rule(minLength=1, maxLength=512)]


class AddressType(StrEnum):
    """In the order in which addresses are published."""

    INTERNAL_IP = "InternalIP"
    INTERNAL_DNS = "InternalDNS"
    EXTERNAL_IP = "ExternalIP"
    EXTERNAL_DNS = "ExternalDNS"
    HOSTNAME = "Hostname"


class MachineAddress(Part):
    """One address of a machine."""

    type: AddressType
    address: Annotated[str, rule(minLength=1, maxLength=256)]


Addresses = Annotated[list[MachineAddress], rule(minItems=1, maxItems=256, **ATOMIC)]


class MachineDrift(Part):
    """When drift of a machine is looked for. It is only ever reported."""

    SCHEMA: ClassVar[Schema] = NOT_EMPTY

    interval_seconds: Annotated[int | None, rule(minimum=0)] = None
    """Between two checks; 0 switches them off."""


def _fixed(field: str) -> Schema:
    return cel(
        f"has(self.{field}) == has(oldSelf.{field}) && "
        f"(!has(self.{field}) || self.{field} == oldSelf.{field})",
        f"{field} is immutable: create another machine with the changed {field}",
        f".{field}",
    )


class TerraformMachineSpec(TerraformSpec):
    # That of spec.variables is an admission policy: CEL in a schema cannot see free-form fields.
    SCHEMA: ClassVar[Schema] = {
        **NOT_EMPTY,
        "x-kubernetes-validations": [
            _fixed("source"),
            _fixed("identityRef"),
            _fixed("variablesFrom"),
            cel(
                "!has(oldSelf.providerID) || "
                "(has(self.providerID) && self.providerID == oldSelf.providerID)",
                "providerID is immutable once it is set",
                ".providerID",
            ),
        ],
    }

    provider_id: ProviderID = msgspec.field(name="providerID", default="")
    """Set by the controller, once, from the module's output."""
    drift: MachineDrift | None = None
    remediation: Remediation | None = None


class TerraformMachineStatus(CommonStatus):
    SCHEMA: ClassVar[Schema] = NOT_EMPTY

    addresses: Addresses = msgspec.field(default_factory=list)
    failure_domain: Annotated[str, rule(minLength=1, maxLength=256)] = ""
    """Where the module placed the machine."""
    interruptible: bool | None = None
    """Whether the provider may take the machine away at any time."""
    unhealthy_samples: Annotated[int, rule(minimum=1)] = 0
    """Unhealthy readings in a row."""


class TerraformMachine(TerraformObject, kw_only=True):
    """The infrastructure of one Machine. It is never changed, only replaced."""

    spec: TerraformMachineSpec
    status: TerraformMachineStatus = msgspec.field(default_factory=TerraformMachineStatus)


class PoolDrift(ClusterDrift):
    """When drift of a pool is looked for and what is done about it."""

    interval_seconds: Annotated[int | None, rule(minimum=1)] = None
    """Between two checks, which cannot be switched off."""


class TerraformMachinePoolSpec(TerraformSpec):
    SCHEMA: ClassVar[Schema] = NOT_EMPTY

    provider_id: ProviderID = msgspec.field(name="providerID", default="")
    """Of the pool itself; set by the controller from the module's output."""
    provider_id_list: Annotated[list[ProviderID], rule(minItems=1, maxItems=10_000, **ATOMIC)] = (
        msgspec.field(name="providerIDList", default_factory=list)
    )
    """Of the members; set by the controller from the module's output."""
    drift: PoolDrift | None = None
    membership_refresh_interval_seconds: Annotated[int, rule(minimum=15, maximum=86400)] = 0
    """Between two looks at the members; 60 when it is not set."""


class PoolInstance(Part):
    """One member of a pool, as the module reports it."""

    provider_id: ProviderID = msgspec.field(name="providerID")
    instance_id: Annotated[str, rule(minLength=1, maxLength=256)] = msgspec.field(
        name="instanceID", default=""
    )
    addresses: Addresses = msgspec.field(default_factory=list)
    failure_domain: Annotated[str, rule(minLength=1, maxLength=256)] = ""
    state: HealthState | None = None


class TerraformMachinePoolStatus(CommonStatus):
    SCHEMA: ClassVar[Schema] = NOT_EMPTY

    ready: bool = False
    """Set once the infrastructure is there, and never unset."""
    replicas: Annotated[int | None, rule(minimum=0)] = None
    """How many members the module reports."""
    instances: Annotated[list[PoolInstance], rule(minItems=1, maxItems=1_000, **ATOMIC)] = (
        msgspec.field(default_factory=list)
    )
    pending_plan_ref: PendingPlanRef | None = None


class TerraformMachinePool(TerraformObject, kw_only=True):
    """The infrastructure of one MachinePool."""

    spec: TerraformMachinePoolSpec
    status: TerraformMachinePoolStatus = msgspec.field(default_factory=TerraformMachinePoolStatus)
