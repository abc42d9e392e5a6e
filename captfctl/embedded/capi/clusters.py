"""A `Cluster` and its `TerraformCluster`."""

from collections.abc import Iterator
from typing import Any

import msgspec

from captfctl.clock import Clock
from captfctl.cluster.door import Door, find
from captfctl.embedded.capi.owning import Owners, provisioned
from captfctl.embedded.capi.workers import WORKERS, Worker
from captfctl.model.capi import Cluster
from captfctl.model.keys import PAUSED
from captfctl.model.resource import Resource
from captfctl.model.resources import CLUSTERS, TERRAFORM_CLUSTERS
from captfctl.model.terraform import TerraformCluster

FINALIZER = "cluster.cluster.x-k8s.io"


class Clusters:
    """Takes the infrastructure object, and mirrors endpoint, readiness and phase.

    A deleted Cluster deletes its machines and pools, then its infrastructure, then itself.
    """

    def __init__(self, door: Door, clock: Clock) -> None:
        self._door = door
        self._owners = Owners(door, clock, CLUSTERS, TERRAFORM_CLUSTERS, FINALIZER)

    def reconcile(self, namespace: str, name: str) -> None:
        """One look at one Cluster, read again. Raises what the door raises."""
        cluster = find(self._door, CLUSTERS, namespace, name)
        if cluster is None or cluster.spec.paused or PAUSED in cluster.metadata.annotations:
            return
        ref = cluster.spec.infrastructure_ref
        if ref is not None and not self._owners.names_ours(ref):
            return
        infrastructure = self._owners.infrastructure_of(cluster, ref)
        if cluster.deleting:
            self._delete(cluster, infrastructure)
            return
        cluster = self._owners.hold(cluster)
        if infrastructure is not None:
            self._owners.adopt(cluster, infrastructure, cluster.metadata.name)
            cluster = self._mirror_endpoint(cluster, infrastructure)
        self._mirror_status(cluster, infrastructure)

    def _mirror_endpoint(self, cluster: Cluster, infrastructure: TerraformCluster) -> Cluster:
        """The infrastructure's endpoint, once it is provisioned and the Cluster has none."""
        endpoint = infrastructure.spec.control_plane_endpoint
        own = cluster.spec.control_plane_endpoint
        if not provisioned(infrastructure) or endpoint is None or not endpoint.valid:
            return cluster
        if own is not None and own.valid:
            return cluster
        patch = {"spec": {"controlPlaneEndpoint": msgspec.to_builtins(endpoint)}}
        return self._owners.patch(cluster, patch)

    def _mirror_status(self, cluster: Cluster, infrastructure: TerraformCluster | None) -> None:
        ready = provisioned(infrastructure) or _was_provisioned(cluster)
        conditions = self._owners.ready_condition(
            cluster, cluster.status.conditions, infrastructure, ready
        )
        status: dict[str, Any] = {
            "conditions": msgspec.to_builtins(conditions),
            "phase": _phase(cluster, ready),
            "observedGeneration": cluster.metadata.generation,
        }
        if ready:
            status["initialization"] = {"infrastructureProvisioned": True}
        self._owners.write_status(cluster, cluster.status, status)

    def _delete(self, cluster: Cluster, infrastructure: TerraformCluster | None) -> None:
        cluster = self._owners.write_status(cluster, cluster.status, {"phase": "Deleting"})
        workers = list(self._workers(cluster))
        for resource, worker in workers:
            self._owners.delete(resource, worker)
        if not workers:
            self._owners.let_go(cluster, infrastructure)

    def _workers(self, cluster: Cluster) -> Iterator[tuple[Resource[Worker], Worker]]:
        """The machines and pools that belong to the Cluster."""
        for kind in WORKERS:
            for worker in self._door.list(kind.resource, cluster.metadata.namespace).items:
                if worker.spec.cluster_name == cluster.metadata.name:
                    yield kind.resource, worker


def _was_provisioned(cluster: Cluster) -> bool:
    initialization = cluster.status.initialization
    return initialization is not None and bool(initialization.infrastructure_provisioned)


def _phase(cluster: Cluster, ready: bool) -> str:
    if cluster.spec.infrastructure_ref is None:
        return "Pending"
    endpoint = cluster.spec.control_plane_endpoint
    return "Provisioned" if ready and endpoint is not None and endpoint.valid else "Provisioning"
