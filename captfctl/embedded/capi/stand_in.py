"""The stand-in as one controller over a door."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from captfctl.clock import Clock
from captfctl.cluster.door import Door
from captfctl.controller import Controller, Handler, Informer, Result
from captfctl.embedded.capi.clusters import Clusters
from captfctl.embedded.capi.workers import WORKERS, Worker, WorkerKind, Workers
from captfctl.model.capi import Cluster
from captfctl.model.meta import ApiObject
from captfctl.model.resources import CLUSTERS, TERRAFORM_CLUSTERS
from captfctl.model.terraform import TerraformObject

Key = tuple[str, str, str]
"""Kind, namespace and name."""

_BY_INFRASTRUCTURE, _BY_CLUSTER = "infrastructure", "cluster"


class CapiStandIn:
    """Follows Clusters, Machines and MachinePools, and what they name of ours."""

    def __init__(self, door: Door, clock: Clock, *, workers: int = 1) -> None:
        self._door, self._clock = door, clock
        self._controller: Controller[Key] = Controller(
            "cluster-api", self.reconcile, clock, workers=workers
        )
        self._passes: dict[str, Callable[[str, str], None]] = {
            CLUSTERS.kind: Clusters(door, clock).reconcile
        }
        self._clusters = self._follow_clusters()
        self._workers: dict[str, Informer[Worker]] = {}
        self._informers: list[Informer[Any]] = [
            self._clusters,
            self._follow_infrastructure(TERRAFORM_CLUSTERS, self._clusters, CLUSTERS.kind),
        ]
        for kind in WORKERS:
            self._add(kind)

    def start(self) -> None:
        """Follow them from now on."""
        for informer in self._informers:
            informer.start()
        self._controller.start()

    def stop(self, timeout: float) -> bool:
        """Tell whether everything ended; each part gets `timeout` seconds."""
        stopped = [self._controller.stop(timeout)]
        return all([*stopped, *(informer.stop(timeout) for informer in self._informers)])

    def reconcile(self, key: Key) -> Result:
        """One look at one object, read again. Raises what the door raises."""
        kind, namespace, name = key
        self._passes[kind](namespace, name)
        return Result()

    def _add(self, kind: WorkerKind) -> None:
        name = kind.resource.kind
        self._passes[name] = Workers(self._door, self._clock, kind).reconcile
        workers = self._workers[name] = self._follow_workers(kind)
        self._informers += [
            workers,
            self._follow_infrastructure(kind.infrastructure, workers, name),
        ]

    def _follow_clusters(self) -> Informer[Cluster]:
        informer = Informer(
            self._door, CLUSTERS, self._clock, indexes={_BY_INFRASTRUCTURE: _named_infrastructure}
        )
        changed = self._cluster_changed
        informer.add_handler(Handler(on_add=changed, on_update=lambda _, new: changed(new)))
        return informer

    def _follow_workers(self, kind: WorkerKind) -> Informer[Worker]:
        def cluster(worker: Worker) -> Sequence[str]:
            return (f"{worker.metadata.namespace}/{worker.spec.cluster_name}",)

        informer: Informer[Worker] = Informer(
            self._door,
            kind.resource,
            self._clock,
            indexes={_BY_INFRASTRUCTURE: _named_infrastructure, _BY_CLUSTER: cluster},
        )
        name = kind.resource.kind
        informer.add_handler(
            Handler(
                on_add=lambda worker: self._enqueue(name, worker.key),
                on_update=lambda _, worker: self._enqueue(name, worker.key),
                on_delete=self._worker_gone,
            )
        )
        return informer

    def _follow_infrastructure(self, resource: Any, owners: Informer[Any], kind: str) -> Any:
        """Look at the owner in `owners`, of `kind`, whenever its infrastructure changes."""

        def changed(obj: TerraformObject) -> None:
            for key in owners.keys_by_index(_BY_INFRASTRUCTURE, _joined(obj)):
                self._enqueue(kind, key)

        informer: Informer[Any] = Informer(self._door, resource, self._clock)
        informer.add_handler(
            Handler(on_add=changed, on_update=lambda _, new: changed(new), on_delete=changed)
        )
        return informer

    def _cluster_changed(self, cluster: Cluster) -> None:
        """It may be paused no more, which its machines and pools wait for."""
        self._enqueue(CLUSTERS.kind, cluster.key)
        for name, workers in self._workers.items():
            for key in workers.keys_by_index(_BY_CLUSTER, _joined(cluster)):
                self._enqueue(name, key)

    def _worker_gone(self, worker: Worker) -> None:
        """Its Cluster may wait for that."""
        self._enqueue(CLUSTERS.kind, (worker.metadata.namespace, worker.spec.cluster_name))

    def _enqueue(self, kind: str, key: tuple[str, str]) -> None:
        self._controller.queue.add((kind, *key))


def _named_infrastructure(obj: Cluster | Worker) -> Iterable[str]:
    """An index by the infrastructure object that is named."""
    found = obj.infrastructure
    return (f"{obj.metadata.namespace}/{found.name}",) if found is not None else ()


def _joined(obj: ApiObject) -> str:
    return "/".join(obj.key)
