"""A machine or pool with all it belongs to: its owner, its Cluster, and the cluster's
`TerraformCluster`, whose infrastructure is there."""

from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec

from captfctl.model import keys
from captfctl.model.capi import (
    InfrastructureRef,
    Machine,
    MachineBootstrap,
    MachinePool,
    MachinePoolSpec,
    MachineSpec,
    MachineTemplateMeta,
    MachineTemplateSpec,
)
from captfctl.model.core import Job, Secret
from captfctl.model.kinds import CLUSTER, INFRASTRUCTURE, MACHINE, MACHINE_POOL, Kind
from captfctl.model.machine import (
    TerraformMachine,
    TerraformMachinePool,
    TerraformMachinePoolSpec,
    TerraformMachineSpec,
)
from captfctl.model.meta import ObjectMeta, OwnerReference
from captfctl.model.resource import Resource
from captfctl.model.resources import (
    CLUSTERS,
    MACHINE_POOLS,
    MACHINES,
    SECRETS,
    TERRAFORM_CLUSTERS,
    TERRAFORM_MACHINE_POOLS,
    TERRAFORM_MACHINES,
)
from captfctl.model.terraform import Source
from captfctl.reconcile.kinds import RULES, KindRules
from captfctl.reconcile.passes import reconcile
from tests.support.cluster_world import KEY, NAME, NAMESPACE, World

MACHINE_NAME = "prod-md-0-x7k2p"
MACHINE_IMAGE = "registry.example.com/machine-module:v1"

MACHINE_OUTPUTS: Mapping[str, Any] = {
    "provider_id": "cloud:///zone-a/i-1",
    "addresses": [{"type": "InternalIP", "address": "10.0.0.7"}],
    "failure_domain": "zone-a",
    "interruptible": False,
    "health": {"state": "running", "healthy": True},
}


def machine_outputs(state: str = "running", healthy: bool = True, **other: Any) -> dict[str, Any]:
    return {**MACHINE_OUTPUTS, "health": {"state": state, "healthy": healthy}, **other}


POOL_NAME = "prod-workers"
POOL_OUTPUTS: Mapping[str, Any] = {
    "provider_id": "cloud:///pools/p-1",
    "provider_id_list": ["cloud:///zone-a/i-2", "cloud:///zone-a/i-1"],
    "replicas": 2,
    "instances": [{"provider_id": "cloud:///zone-a/i-1", "state": "running"}],
    "health": {"state": "running", "healthy": True},
}


@dataclass
class WorkerWorld(World):
    """A world with a cluster whose infrastructure is there."""

    outputs: ClassVar[Mapping[str, Any]] = MACHINE_OUTPUTS

    def run_cluster(self) -> None:
        """One pass of the `TerraformCluster`."""
        reconcile(CLUSTER, KEY, self.env())

    def provision_cluster(self) -> None:
        """Its first apply, and what Cluster API then writes."""
        for _ in range(2):
            self.run_cluster()
        self.runner.succeed(self.active_job())
        for _ in range(2):
            self.run_cluster()
        status = {"status": {"initialization": {"infrastructureProvisioned": True}}}
        self.door.patch(CLUSTERS, NAME, NAMESPACE, status, subresource="status")

    def provision_again(self, outputs: Mapping[str, Any]) -> None:
        """The cluster's variables change, and so do its outputs."""
        serial = len(self.jobs())
        change = {"spec": {"variables": {"change": f"{serial}"}}}
        self.door.patch(TERRAFORM_CLUSTERS, NAME, NAMESPACE, change)
        self.run_cluster()
        self.runner.succeed(self.active_job(), outputs)
        for _ in range(2):
            self.run_cluster()

    def rules_of_now(self) -> KindRules:
        """What is particular about the object as it is."""
        return RULES[self.kind.name](self.obj, self.cache)

    def apply(self, outputs: Mapping[str, Any] | None = None, **result: Any) -> Job:
        return super().apply(outputs=self.outputs if outputs is None else outputs, **result)

    def refresh(self, outputs: Mapping[str, Any]) -> None:
        """The refresh that is due now, and the pass that reads it."""
        self.settle(1)
        self.runner.succeed(self.active_job(), outputs)
        self.settle(1)


@dataclass
class MachineWorld(WorkerWorld):
    key: tuple[str, str] = (NAMESPACE, MACHINE_NAME)

    kind: ClassVar[Kind] = MACHINE
    resource: ClassVar[Resource[Any]] = TERRAFORM_MACHINES

    def populate(self) -> "MachineWorld":
        """The cluster is provisioned; the machine has bootstrap data and was not looked at."""
        super().populate()
        self.provision_cluster()
        self.create(SECRETS, bootstrap_secret())
        owner = self.create(MACHINES, machine())
        self.create(TERRAFORM_MACHINES, terraform_machine(owner))
        return self

    @property
    def machine(self) -> Machine:
        return self.door.get(MACHINES, MACHINE_NAME, NAMESPACE)

    def edit_machine(self, change: Callable[[Machine], None]) -> None:
        obj = self.machine
        change(obj)
        self.door.update(MACHINES, obj)


def bootstrap_secret(owner: str = MACHINE_NAME, **data: bytes) -> Secret:
    meta = ObjectMeta(name=f"{owner}-bootstrap", namespace=NAMESPACE)
    return Secret(
        metadata=meta, type="cluster.x-k8s.io/secret", data=data or {"value": b"#cloud-config"}
    )


def machine(**spec: Any) -> Machine:
    wanted: dict[str, Any] = {
        "cluster_name": NAME,
        "version": "v1.34.0",
        "infrastructure_ref": InfrastructureRef(
            api_group=INFRASTRUCTURE, kind=MACHINE.name, name=MACHINE_NAME
        ),
        "bootstrap": MachineBootstrap(data_secret_name=f"{MACHINE_NAME}-bootstrap"),
    }
    meta = ObjectMeta(name=MACHINE_NAME, namespace=NAMESPACE, labels={keys.CLUSTER_NAME: NAME})
    return Machine(metadata=meta, spec=MachineSpec(**(wanted | spec)))


def terraform_machine(owner: Machine | None = None, **spec: Any) -> TerraformMachine:
    """`owner` as created: its UID goes into the owner reference."""
    meta = ObjectMeta(name=MACHINE_NAME, namespace=NAMESPACE)
    if owner is not None:
        meta.labels[keys.CLUSTER_NAME] = NAME
        meta.owner_references.append(
            OwnerReference(
                api_version=MACHINES.api_version,
                kind=MACHINE.owner,
                name=owner.metadata.name,
                uid=owner.metadata.uid,
            )
        )
    wanted: dict[str, Any] = {
        "source": Source(image=MACHINE_IMAGE),
        "variables": msgspec.Raw(b'{"size":"small"}'),
    }
    return TerraformMachine(metadata=meta, spec=TerraformMachineSpec(**(wanted | spec)))


@dataclass
class PoolWorld(WorkerWorld):
    key: tuple[str, str] = (NAMESPACE, POOL_NAME)

    kind: ClassVar[Kind] = MACHINE_POOL
    resource: ClassVar[Resource[Any]] = TERRAFORM_MACHINE_POOLS
    outputs: ClassVar[Mapping[str, Any]] = POOL_OUTPUTS

    def populate(self) -> "PoolWorld":
        """The cluster is provisioned; the pool has bootstrap data and was not looked at."""
        super().populate()
        self.provision_cluster()
        self.create(SECRETS, bootstrap_secret(POOL_NAME))
        owner = self.create(MACHINE_POOLS, machine_pool())
        self.create(TERRAFORM_MACHINE_POOLS, terraform_machine_pool(owner))
        return self

    @property
    def pool(self) -> MachinePool:
        return self.door.get(MACHINE_POOLS, POOL_NAME, NAMESPACE)

    def edit_pool(self, change: Callable[[MachinePool], None]) -> None:
        obj = self.pool
        change(obj)
        self.door.update(MACHINE_POOLS, obj)

    def rotate(self, text: bytes) -> None:
        """Other bootstrap data."""
        name = f"{POOL_NAME}-bootstrap"
        data = {"data": {"value": b64encode(text).decode()}}
        self.door.patch(SECRETS, name, NAMESPACE, data)


def machine_pool(**spec: Any) -> MachinePool:
    reference = InfrastructureRef(api_group=INFRASTRUCTURE, kind=MACHINE_POOL.name, name=POOL_NAME)
    template = MachineTemplateSpec(
        metadata=MachineTemplateMeta(labels={"tier": "web"}),
        spec=MachineSpec(
            cluster_name=NAME,
            version="v1.34.0",
            infrastructure_ref=reference,
            bootstrap=MachineBootstrap(data_secret_name=f"{POOL_NAME}-bootstrap"),
        ),
    )
    wanted: dict[str, Any] = {"cluster_name": NAME, "replicas": 2, "template": template}
    meta = ObjectMeta(name=POOL_NAME, namespace=NAMESPACE, labels={keys.CLUSTER_NAME: NAME})
    return MachinePool(metadata=meta, spec=MachinePoolSpec(**(wanted | spec)))


def terraform_machine_pool(owner: MachinePool, **spec: Any) -> TerraformMachinePool:
    """`owner` as created: its UID goes into the owner reference."""
    meta = ObjectMeta(name=POOL_NAME, namespace=NAMESPACE, labels={keys.CLUSTER_NAME: NAME})
    meta.owner_references.append(
        OwnerReference(
            api_version=MACHINE_POOLS.api_version,
            kind=MACHINE_POOL.owner,
            name=owner.metadata.name,
            uid=owner.metadata.uid,
        )
    )
    wanted: dict[str, Any] = {"source": Source(image="registry.example.com/pool-module:v1")}
    return TerraformMachinePool(metadata=meta, spec=TerraformMachinePoolSpec(**(wanted | spec)))
