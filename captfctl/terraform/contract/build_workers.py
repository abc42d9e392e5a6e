"""Building the inputs of machines and pools from the objects (module-contract.md: Inputs)."""

from base64 import b64encode
from dataclasses import dataclass, field

from captfctl.model import keys
from captfctl.model.capi import Cluster, Machine, MachinePool
from captfctl.model.core import Secret
from captfctl.model.machine import TerraformMachine, TerraformMachinePool
from captfctl.terraform.contract.build import read_tfvars
from captfctl.terraform.contract.jsontext import Json
from captfctl.terraform.contract.values import Autoscaling, MachineInputs, MachinePoolInputs

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


def build_pool_inputs(
    obj: TerraformMachinePool,
    cluster: Cluster,
    pool: MachinePool,
    exports: Json,
    failure_domains: tuple[str, ...],
    bootstrap: Bootstrap,
    autoscaling: Autoscaling,
) -> MachinePoolInputs:
    """The inputs that the pool would be applied with now. `exports` and `failure_domains` are the
    cluster's."""
    template = pool.spec.template
    return MachinePoolInputs(
        cluster_name=cluster.metadata.name,
        cluster_namespace=cluster.metadata.namespace,
        name=obj.metadata.name,
        namespace=obj.metadata.namespace,
        template=obj.metadata.annotations.get(keys.CLONED_FROM_NAME, ""),
        cluster_outputs=exports,
        machinepool_name=pool.metadata.name,
        replicas=_replicas(obj, pool, autoscaling),
        bootstrap_data=bootstrap.data,
        bootstrap_format=bootstrap.format,
        failure_domains=tuple(pool.spec.failure_domains),
        cluster_failure_domains=failure_domains,
        kubernetes_version=template.spec.version or None,
        node_labels=dict(template.metadata.labels),
        autoscaling=autoscaling,
    )


def applied_exports(tfvars: bytes) -> Json:
    """The cluster's exports in recorded inputs. Raises `ContractError` when they cannot be read."""
    return read_tfvars(tfvars).get("captf_cluster_outputs")


def _replicas(obj: TerraformMachinePool, pool: MachinePool, autoscaling: Autoscaling) -> int:
    """What is asked for; with an autoscaler what it made of it, within its limits."""
    wanted = 1 if pool.spec.replicas is None else pool.spec.replicas
    if not autoscaling.enabled:
        return wanted
    seen = obj.status.replicas
    return min(max(wanted if seen is None else seen, autoscaling.min), autoscaling.max)
