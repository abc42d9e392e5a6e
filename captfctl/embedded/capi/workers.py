"""A `Machine` with its `TerraformMachine`, a `MachinePool` with its `TerraformMachinePool`."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import msgspec

from captfctl.clock import Clock
from captfctl.cluster.door import Door, find
from captfctl.embedded.capi.owning import Owners, provisioned
from captfctl.model.capi import (
    ClusterInitialization,
    Machine,
    MachinePool,
    MachinePoolSpec,
)
from captfctl.model.keys import CLUSTER_NAME, PAUSED
from captfctl.model.machine import MachineAddress, TerraformMachine, TerraformMachinePool
from captfctl.model.meta import Condition, Part
from captfctl.model.resource import Resource
from captfctl.model.resources import (
    CLUSTERS,
    MACHINE_POOLS,
    MACHINES,
    TERRAFORM_MACHINE_POOLS,
    TERRAFORM_MACHINES,
)

Changes: TypeAlias = dict[str, Any]


class _Status(Part):
    """What only Cluster API writes, and so only its stand-in."""

    phase: str = ""
    initialization: ClusterInitialization | None = None
    conditions: list[Condition] = msgspec.field(default_factory=list)
    observed_generation: int = 0
    addresses: list[MachineAddress] = msgspec.field(default_factory=list)
    failure_domain: str = ""
    replicas: int | None = None

    @property
    def provisioned(self) -> bool:
        started = self.initialization
        return started is not None and bool(started.infrastructure_provisioned)


class _MachineWithStatus(Machine):
    status: _Status = msgspec.field(default_factory=_Status)


class _PoolSpec(MachinePoolSpec):
    provider_id_list: list[str] = msgspec.field(name="providerIDList", default_factory=list)


class _PoolWithStatus(MachinePool):
    spec: _PoolSpec = msgspec.field(default_factory=_PoolSpec)
    status: _Status = msgspec.field(default_factory=_Status)


Worker: TypeAlias = _MachineWithStatus | _PoolWithStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerKind:
    """What is particular about machines, and about pools.

    `mirrored` gives the fields of spec and of status that follow from provisioned infrastructure.
    """

    resource: Resource[Any]
    infrastructure: Resource[Any]
    finalizer: str
    mirrored: Callable[[Any], tuple[Changes, Changes]]


def _of_machine(infrastructure: TerraformMachine) -> tuple[Changes, Changes]:
    status = infrastructure.status
    return (
        {"providerID": infrastructure.spec.provider_id or None},
        {
            "addresses": msgspec.to_builtins(status.addresses) or None,
            "failureDomain": status.failure_domain or None,
        },
    )


def _of_pool(infrastructure: TerraformMachinePool) -> tuple[Changes, Changes]:
    spec = {"providerIDList": infrastructure.spec.provider_id_list or None}
    return spec, {"replicas": infrastructure.status.replicas or 0}


MACHINE: Final = WorkerKind(
    resource=replace(MACHINES, type=_MachineWithStatus),
    infrastructure=TERRAFORM_MACHINES,
    finalizer="machine.cluster.x-k8s.io",
    mirrored=_of_machine,
)
MACHINE_POOL: Final = WorkerKind(
    resource=replace(MACHINE_POOLS, type=_PoolWithStatus),
    infrastructure=TERRAFORM_MACHINE_POOLS,
    finalizer="machinepool.cluster.x-k8s.io",
    mirrored=_of_pool,
)
WORKERS: Final = (MACHINE, MACHINE_POOL)


class Workers:
    """Takes the infrastructure object, and mirrors what it reports. A deleted one deletes its
    infrastructure first."""

    def __init__(self, door: Door, clock: Clock, kind: WorkerKind) -> None:
        self._door, self._kind = door, kind
        self._owners: Owners[Any, Any] = Owners(
            door, clock, kind.resource, kind.infrastructure, kind.finalizer
        )

    def reconcile(self, namespace: str, name: str) -> None:
        """One look at one object, read again. Raises what the door raises."""
        worker = find(self._door, self._kind.resource, namespace, name)
        if worker is None or self._paused(worker):
            return
        ref = worker.infrastructure
        if not self._owners.names_ours(ref):
            return
        infrastructure = self._owners.infrastructure_of(worker, ref)
        if worker.deleting:
            worker = self._owners.write_status(worker, worker.status, {"phase": "Deleting"})
            self._owners.let_go(worker, infrastructure)
            return
        cluster = worker.spec.cluster_name
        worker = self._owners.hold(worker, {CLUSTER_NAME: cluster})
        if infrastructure is not None:
            self._owners.adopt(worker, infrastructure, cluster)
        self._mirror(worker, infrastructure)

    def _paused(self, worker: Worker) -> bool:
        if PAUSED in worker.metadata.annotations:
            return True
        cluster = find(self._door, CLUSTERS, worker.metadata.namespace, worker.spec.cluster_name)
        return cluster is not None and cluster.spec.paused

    def _mirror(
        self, worker: Worker, infrastructure: TerraformMachine | TerraformMachinePool | None
    ) -> None:
        ready = provisioned(infrastructure) or worker.status.provisioned
        status: Changes = {"phase": self._phase(worker, ready)}
        if provisioned(infrastructure):
            spec, reported = self._kind.mirrored(infrastructure)
            worker = self._write_spec(worker, spec)
            status |= reported
        conditions = self._owners.ready_condition(
            worker, worker.status.conditions, infrastructure, ready
        )
        status["conditions"] = msgspec.to_builtins(conditions)
        status["observedGeneration"] = worker.metadata.generation
        if ready:
            status["initialization"] = {"infrastructureProvisioned": True}
        self._owners.write_status(worker, worker.status, status)

    def _write_spec(self, worker: Worker, spec: Changes) -> Worker:
        current = msgspec.to_builtins(worker.spec)
        changed = {name: value for name, value in spec.items() if current.get(name) != value}
        return self._owners.patch(worker, {"spec": changed}) if changed else worker

    def _phase(self, worker: Worker, ready: bool) -> str:
        """Without Nodes, `Provisioned` is as far as one gets."""
        if ready:
            return "Provisioned"
        return "Provisioning" if worker.bootstrap_secret else "Pending"
