"""A stand-in for the Cluster API core provider: only what our objects read of it.

For a `Cluster` whose `infrastructureRef` names a `TerraformCluster` it sets the owner reference and
the cluster-name label there; mirrors `spec.controlPlaneEndpoint`,
`status.initialization.infrastructureProvisioned`, the `InfrastructureReady` condition and the phase
back; and keeps the deletion order: the infrastructure object first, the `Cluster` when it is gone.

Left out: everything else of Cluster API. Machines, pools, control planes, bootstrap, topology,
templates, admission, health checks, failure domains, moves, other providers, other conditions, and
waiting for machines before a cluster goes.
"""

import logging
from typing import Any

import msgspec

from captfctl.clock import Clock
from captfctl.cluster.door import Door
from captfctl.cluster.errors import Conflict, NotFound
from captfctl.controller import Controller, Handler, Informer, Result
from captfctl.model.capi import Cluster
from captfctl.model.conditions import find
from captfctl.model.keys import CLUSTER_NAME, PAUSED
from captfctl.model.kinds import CLUSTER, INFRASTRUCTURE
from captfctl.model.meta import Condition, OwnerReference, whole_seconds
from captfctl.model.resources import CLUSTERS, TERRAFORM_CLUSTERS
from captfctl.model.terraform import TerraformCluster

FINALIZER = "cluster.cluster.x-k8s.io"
_INFRASTRUCTURE_READY = "InfrastructureReady"

log = logging.getLogger(__name__)
Key = tuple[str, str]


class CapiStandIn:
    """The stand-in as a controller over a door."""

    def __init__(self, door: Door, clock: Clock) -> None:
        self._door = door
        self._clock = clock
        self._clusters = Informer(door, CLUSTERS, clock)
        self._infrastructure = Informer(door, TERRAFORM_CLUSTERS, clock)
        self._controller: Controller[Key] = Controller("cluster-api", self.reconcile, clock)

    def start(self) -> None:
        """Follow Clusters and TerraformClusters from now on."""
        queue = self._controller.queue
        self._clusters.add_handler(
            Handler(
                on_add=lambda cluster: queue.add(cluster.key),
                on_update=lambda _, cluster: queue.add(cluster.key),
            )
        )
        self._infrastructure.add_handler(
            Handler(
                on_add=self._infrastructure_changed,
                on_update=lambda _, new: self._infrastructure_changed(new),
                on_delete=self._infrastructure_changed,
            )
        )
        self._clusters.start()
        self._infrastructure.start()
        self._controller.start()

    def stop(self, timeout: float) -> bool:
        """Tell whether everything ended; each part gets `timeout` seconds."""
        stopped = [self._controller.stop(timeout), self._clusters.stop(timeout)]
        return all([*stopped, self._infrastructure.stop(timeout)])

    def _infrastructure_changed(self, changed: TerraformCluster) -> None:
        namespace = changed.metadata.namespace
        for cluster in self._clusters.list(namespace):
            ref = cluster.spec.infrastructure_ref
            if ref is not None and ref.name == changed.metadata.name:
                self._controller.queue.add(cluster.key)

    def reconcile(self, key: Key) -> Result:
        """One look at one Cluster, read again. Raises what the door raises."""
        namespace, name = key
        try:
            cluster = self._door.get(CLUSTERS, name, namespace)
        except NotFound:
            return Result()
        ref = cluster.spec.infrastructure_ref
        if ref is not None and (ref.api_group, ref.kind) != (INFRASTRUCTURE, CLUSTER.name):
            return Result()
        infrastructure = self._read(ref.name, namespace) if ref is not None else None
        if cluster.deleting:
            self._delete(cluster, infrastructure)
            return Result()
        if cluster.spec.paused or PAUSED in cluster.metadata.annotations:
            return Result()
        cluster = self._hold(cluster)
        if infrastructure is not None:
            self._adopt(cluster, infrastructure)
            cluster = self._mirror_endpoint(cluster, infrastructure)
        self._mirror_status(cluster, infrastructure)
        return Result()

    def _read(self, name: str, namespace: str) -> TerraformCluster | None:
        try:
            return self._door.get(TERRAFORM_CLUSTERS, name, namespace)
        except NotFound:
            return None

    def _hold(self, cluster: Cluster) -> Cluster:
        if FINALIZER in cluster.metadata.finalizers:
            return cluster
        return self._patch(
            cluster, {"metadata": {"finalizers": [*cluster.metadata.finalizers, FINALIZER]}}
        )

    def _adopt(self, cluster: Cluster, infrastructure: TerraformCluster) -> None:
        """Owner reference and label, unless another Cluster has it."""
        metadata, name = infrastructure.metadata, cluster.metadata.name
        controller = metadata.controller
        if controller is not None and controller.uid != cluster.metadata.uid:
            log.warning("%s belongs to %s %s", metadata.name, controller.kind, controller.name)
            return
        owner = OwnerReference(
            api_version=CLUSTERS.api_version,
            kind=CLUSTERS.kind,
            name=name,
            uid=cluster.metadata.uid,
            controller=True,
            block_owner_deletion=True,
        )
        owned = owner in metadata.owner_references
        if owned and metadata.labels.get(CLUSTER_NAME) == name:
            return
        others = [ref for ref in metadata.owner_references if ref.uid != owner.uid]
        self._door.patch(
            TERRAFORM_CLUSTERS,
            metadata.name,
            metadata.namespace,
            {
                "metadata": {
                    "labels": {CLUSTER_NAME: name},
                    "ownerReferences": msgspec.to_builtins([*others, owner]),
                }
            },
            resource_version=metadata.resource_version,
        )

    def _mirror_endpoint(self, cluster: Cluster, infrastructure: TerraformCluster) -> Cluster:
        """The infrastructure's endpoint, once it is provisioned and the Cluster has none."""
        endpoint = infrastructure.spec.control_plane_endpoint
        own = cluster.spec.control_plane_endpoint
        if not _provisioned(infrastructure) or endpoint is None or not endpoint.valid:
            return cluster
        if own is not None and own.valid:
            return cluster
        return self._patch(
            cluster, {"spec": {"controlPlaneEndpoint": msgspec.to_builtins(endpoint)}}
        )

    def _mirror_status(self, cluster: Cluster, infrastructure: TerraformCluster | None) -> None:
        ready = _provisioned(infrastructure) or _was_provisioned(cluster)
        condition = self._condition(cluster, infrastructure, ready)
        others = [c for c in cluster.status.conditions if c.type != _INFRASTRUCTURE_READY]
        status: dict[str, Any] = {
            "conditions": msgspec.to_builtins([*others, condition]),
            "phase": _phase(cluster, ready),
            "observedGeneration": cluster.metadata.generation,
        }
        if ready:
            status["initialization"] = {"infrastructureProvisioned": True}
        self._write_status(cluster, status)

    def _condition(
        self, cluster: Cluster, infrastructure: TerraformCluster | None, ready: bool
    ) -> Condition:
        """Our `Ready` under the name the Cluster gives it."""
        ours = find(infrastructure.status.conditions, "Ready") if infrastructure else None
        if infrastructure is None:
            gone = "Deleted" if ready else "DoesNotExist"
            status, reason, message = "False", gone, "the infrastructure object does not exist"
        elif ours is None:
            status, reason = ("True", "Ready") if ready else ("False", "NotReady")
            message = "" if ready else "the infrastructure object has no Ready condition yet"
        else:
            status, reason, message = ours.status, ours.reason, ours.message
        old = find(cluster.status.conditions, _INFRASTRUCTURE_READY)
        moved = old is None or old.status != status
        now = whole_seconds(self._clock.now())
        return Condition(
            type=_INFRASTRUCTURE_READY,
            status=status,
            reason=reason or "Unknown",
            message=message,
            last_transition_time=now if moved or old is None else old.last_transition_time,
            observed_generation=cluster.metadata.generation,
        )

    def _delete(self, cluster: Cluster, infrastructure: TerraformCluster | None) -> None:
        """Infrastructure first; the Cluster is let go when that is gone."""
        if FINALIZER not in cluster.metadata.finalizers:
            return
        self._write_status(cluster, {"phase": "Deleting"})
        owned = infrastructure is not None and (
            infrastructure.metadata.controller is None
            or infrastructure.metadata.controller.uid == cluster.metadata.uid
        )
        if infrastructure is not None and owned:
            self._delete_infrastructure(infrastructure)
            return
        rest = [name for name in cluster.metadata.finalizers if name != FINALIZER]
        fresh = self._door.get(CLUSTERS, cluster.metadata.name, cluster.metadata.namespace)
        self._patch(fresh, {"metadata": {"finalizers": rest or None}})

    def _delete_infrastructure(self, infrastructure: TerraformCluster) -> None:
        if infrastructure.deleting:
            return
        metadata = infrastructure.metadata
        try:
            self._door.delete(
                TERRAFORM_CLUSTERS, metadata.name, metadata.namespace, uid=metadata.uid
            )
        except (NotFound, Conflict):
            return

    def _write_status(self, cluster: Cluster, status: dict[str, Any]) -> None:
        """Only what differs."""
        current = msgspec.to_builtins(cluster.status)
        changed = {key: value for key, value in status.items() if current.get(key) != value}
        if changed:
            self._patch(cluster, {"status": changed}, subresource="status")

    def _patch(self, cluster: Cluster, patch: dict[str, Any], *, subresource: str = "") -> Cluster:
        return self._door.patch(
            CLUSTERS,
            cluster.metadata.name,
            cluster.metadata.namespace,
            patch,
            resource_version=cluster.metadata.resource_version,
            subresource=subresource,
        )


def _provisioned(infrastructure: TerraformCluster | None) -> bool:
    if infrastructure is None or infrastructure.status.initialization is None:
        return False
    return bool(infrastructure.status.initialization.provisioned)


def _was_provisioned(cluster: Cluster) -> bool:
    initialization = cluster.status.initialization
    return initialization is not None and bool(initialization.infrastructure_provisioned)


def _phase(cluster: Cluster, ready: bool) -> str:
    if cluster.spec.infrastructure_ref is None:
        return "Pending"
    endpoint = cluster.spec.control_plane_endpoint
    return "Provisioned" if ready and endpoint is not None and endpoint.valid else "Provisioning"
