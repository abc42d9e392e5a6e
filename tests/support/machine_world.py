"""A `TerraformMachine` with all it belongs to: its Machine, its Cluster, and the cluster's
`TerraformCluster`, whose infrastructure is there."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec

from captfctl.model import keys
from captfctl.model.capi import InfrastructureRef, Machine, MachineBootstrap, MachineSpec
from captfctl.model.core import Job, Secret
from captfctl.model.kinds import CLUSTER, INFRASTRUCTURE, MACHINE, Kind
from captfctl.model.machine import TerraformMachine, TerraformMachineSpec
from captfctl.model.meta import ObjectMeta, OwnerReference
from captfctl.model.resource import Resource
from captfctl.model.resources import CLUSTERS, MACHINES, SECRETS, TERRAFORM_MACHINES
from captfctl.model.terraform import Source
from captfctl.reconcile import reconcile
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


@dataclass
class MachineWorld(World):
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

    def apply(self, outputs: Mapping[str, Any] = MACHINE_OUTPUTS, **result: Any) -> Job:
        return super().apply(outputs=outputs, **result)

    def refresh(self, outputs: Mapping[str, Any]) -> None:
        """The refresh that is due now, and the pass that reads it."""
        self.settle(1)
        self.runner.succeed(self.active_job(), outputs)
        self.settle(1)

    @property
    def machine(self) -> Machine:
        return self.door.get(MACHINES, MACHINE_NAME, NAMESPACE)

    def edit_machine(self, change: Callable[[Machine], None]) -> None:
        obj = self.machine
        change(obj)
        self.door.update(MACHINES, obj)


def bootstrap_secret(**data: bytes) -> Secret:
    meta = ObjectMeta(name=f"{MACHINE_NAME}-bootstrap", namespace=NAMESPACE)
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
