"""Building the inputs of the machine role from the objects (module-contract.md: Inputs)."""

from base64 import b64encode
from dataclasses import dataclass, field

from captfctl.model import keys
from captfctl.model.capi import Cluster, Machine
from captfctl.model.core import Secret
from captfctl.model.machine import TerraformMachine
from captfctl.terraform.contract.jsontext import Json
from captfctl.terraform.contract.values import MachineInputs

DEFAULT_FORMAT = "cloud-config"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bootstrap:
    """What a bootstrap provider made. `data` is standard base64 with padding: it may be binary."""

    data: str = field(repr=False)
    format: str


def bootstrap_of(secret: Secret) -> Bootstrap | None:
    """What a bootstrap Secret holds; None while that is nothing."""
    value = secret.data.get("value", b"")
    if not value:
        return None
    form = secret.data.get("format", b"").decode(errors="replace")
    return Bootstrap(data=b64encode(value).decode(), format=form or DEFAULT_FORMAT)


def build_machine_inputs(
    obj: TerraformMachine, cluster: Cluster, machine: Machine, exports: Json, bootstrap: Bootstrap
) -> MachineInputs:
    """The inputs that the machine would be applied with now. `exports` are the cluster's."""
    return MachineInputs(
        cluster_name=cluster.metadata.name,
        cluster_namespace=cluster.metadata.namespace,
        name=obj.metadata.name,
        namespace=obj.metadata.namespace,
        template=obj.metadata.annotations.get(keys.CLONED_FROM_NAME, ""),
        cluster_outputs=exports,
        machine_name=machine.metadata.name,
        bootstrap_data=bootstrap.data,
        bootstrap_format=bootstrap.format,
        failure_domain=machine.spec.failure_domain or None,
        kubernetes_version=machine.spec.version or None,
        control_plane=keys.CONTROL_PLANE in machine.metadata.labels,
    )
