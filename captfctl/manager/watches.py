"""Which change makes which object be reconciled (manager.md: Watches)."""

from collections.abc import Callable, Iterable
from typing import Any

from captfctl.controller import Handler, Informer, WorkQueue
from captfctl.manager.caches import (
    BY_CLUSTER,
    BY_IDENTITY,
    BY_LABEL,
    BY_VARIABLES,
    Caches,
    local_secrets,
)
from captfctl.model import keys
from captfctl.model.capi import Cluster
from captfctl.model.core import Job
from captfctl.model.identity import TerraformClusterIdentity
from captfctl.model.kinds import CLUSTER, INFRASTRUCTURE
from captfctl.model.meta import ApiObject
from captfctl.model.terraform import TerraformCluster
from captfctl.runs.jobs import is_bookkept, is_finished
from captfctl.runs.slots import Slots

Key = tuple[str, str]
KIND = CLUSTER.name


def connect_clusters(caches: Caches, queue: WorkQueue[Key]) -> None:
    """Everything that wakes a `TerraformCluster`."""

    def wake(found: Iterable[Key]) -> None:
        for key in found:
            # With a watch filter or a namespace, some of the objects are another manager's.
            if key in caches.clusters:
                queue.add(key)

    def wakes(mapping: Callable[[Any], Iterable[Key]]) -> Callable[[Any], None]:
        return lambda obj: wake(mapping(obj))

    def indexed(index: str, value: str) -> Iterable[Key]:
        return caches.clusters.keys_by_index(index, value)

    _own(caches.clusters, queue)
    _asked_for(caches.clusters, queue)
    caches.capi_clusters.add_handler(
        Handler(
            on_add=wakes(_referenced),
            on_update=lambda old, new: wake(_referenced(new)) if _concerns(old, new) else None,
            on_delete=wakes(_referenced),
        )
    )
    _any_change(caches.jobs, wakes(_controller))
    _any_change(caches.secrets, wakes(_secret_users(indexed)), mirrors=False)
    caches.identities.add_handler(
        Handler(
            on_add=wakes(lambda obj: indexed(BY_IDENTITY, obj.metadata.name)),
            on_update=lambda old, new: (
                wake(indexed(BY_IDENTITY, new.metadata.name))
                if _credentials_changed(old, new)
                else None
            ),
            on_delete=wakes(lambda obj: indexed(BY_IDENTITY, obj.metadata.name)),
        )
    )
    caches.namespaces.add_handler(
        Handler(
            on_update=lambda old, new: (
                wake(caches.clusters.keys(new.metadata.name))
                if old.metadata.labels != new.metadata.labels
                else None
            )
        )
    )
    for kind, informer in (
        ("Secret", caches.variable_secrets),
        ("ConfigMap", caches.variable_maps),
    ):
        _any_change(informer, wakes(_variables_users(indexed, kind)))
    for informer in caches.dependents:
        informer.add_handler(Handler(on_delete=wakes(lambda obj: _siblings(indexed, obj))))


def connect_slots(caches: Caches, slots: Slots) -> None:
    """A Job that ends, or goes before it ends, leaves its slot to the next."""

    def updated(old: Job, new: Job) -> None:
        if is_finished(new) and not is_finished(old):
            slots.freed()

    caches.jobs.add_handler(Handler(on_update=updated, on_delete=lambda _: slots.freed()))


def connect_identities(caches: Caches, queue: WorkQueue[Key]) -> None:
    """An identity is reconciled when it, its mirrors or its users change. One without a namespace
    is a TerraformClusterIdentity, any other a Secret of that namespace."""

    def wake(secret: ApiObject) -> None:
        meta = secret.metadata
        key = ("", meta.annotations.get(keys.IDENTITY, ""))
        # Records name an identity too, and change with every apply.
        if meta.labels.get(keys.MIRRORED) == keys.TRUE and key in caches.identities:
            queue.add(key)

    def wake_local(user: TerraformCluster) -> None:
        for text in local_secrets(user):
            namespace, _, name = text.partition("/")
            queue.add((namespace, name))

    _own(caches.identities, queue)
    _any_change(caches.secrets, wake)
    _own(caches.local_secrets, queue)
    caches.clusters.add_handler(
        Handler(on_update=lambda old, _: wake_local(old), on_delete=wake_local)
    )


def connect_pods(caches: Caches, queue: WorkQueue[Key]) -> None:
    """A Job's pods may go once it was read, or is gone. Those from before the start are found by
    the sweep."""

    def read(old: Job, new: Job) -> None:
        if is_bookkept(new) and not is_bookkept(old):
            queue.add(new.key)

    caches.jobs.add_handler(Handler(on_update=read, on_delete=lambda job: queue.add(job.key)))


def _own(informer: Informer[Any], queue: WorkQueue[Key]) -> None:
    def add(obj: ApiObject) -> None:
        queue.add(obj.key)

    informer.add_handler(
        Handler(on_add=add, on_update=lambda _, new: queue.add(new.key), on_delete=add)
    )


def _asked_for(informer: Informer[Any], queue: WorkQueue[Key]) -> None:
    """What people do to an object comes before what is due by itself. Those that were there before
    are no news."""

    def added(obj: ApiObject) -> None:
        if not replayed:
            queue.add(obj.key, urgent=True)

    def updated(old: ApiObject, new: ApiObject) -> None:
        if _asked(old) != _asked(new):
            queue.add(new.key, urgent=True)

    replayed = True
    informer.add_handler(Handler(on_add=added, on_update=updated))
    replayed = False


def _asked(obj: ApiObject) -> tuple[object, ...]:
    """What people say in an object; the hold on moves is a pass's own."""
    meta = obj.metadata
    notes = {key: text for key, text in meta.annotations.items() if key != keys.BLOCK_MOVE}
    return meta.generation, obj.deleting, notes


def _any_change(
    informer: Informer[Any], wake: Callable[[Any], None], *, mirrors: bool = True
) -> None:
    """`mirrors` False: a copied credential counts when it goes, not on each of its changes."""

    def changed(obj: Any) -> None:
        if mirrors or obj.metadata.labels.get(keys.MIRRORED) != keys.TRUE:
            wake(obj)

    informer.add_handler(
        Handler(on_add=changed, on_update=lambda _, new: changed(new), on_delete=wake)
    )


def _referenced(cluster: Cluster) -> list[Key]:
    ref = cluster.spec.infrastructure_ref
    if ref is None or (ref.api_group, ref.kind) != (INFRASTRUCTURE, KIND):
        return []
    return [(cluster.metadata.namespace, ref.name)]


def _concerns(old: Cluster, new: Cluster) -> bool:
    """What of a Cluster an object depends on."""
    return _depended_on(old) != _depended_on(new)


def _depended_on(cluster: Cluster) -> tuple[object, ...]:
    spec, started = cluster.spec, cluster.status.initialization
    return (
        spec.paused,
        started.control_plane_initialized if started else None,
        spec.topology.version if spec.topology else "",
        spec.control_plane_endpoint,
        spec.cluster_network,
        spec.infrastructure_ref,
    )


def _credentials_changed(old: TerraformClusterIdentity, new: TerraformClusterIdentity) -> bool:
    """Who may use them, or what its Secret holds."""
    before = old.metadata.generation, old.status.secret_version
    return before != (new.metadata.generation, new.status.secret_version)


def _controller(job: Job) -> list[Key]:
    owner = job.metadata.controller
    if owner is None or owner.kind != KIND:
        return []
    return [(job.metadata.namespace, owner.name)]


_STATES = frozenset({keys.TFSTATE, keys.UNSAVED_STATE})


def _secret_users(
    indexed: Callable[[str, str], Iterable[Key]],
) -> Callable[[ApiObject], Iterable[Key]]:
    def users(secret: ApiObject) -> Iterable[Key]:
        """The owners; of a state that nobody owns yet, the object whose labels it carries."""
        meta = secret.metadata
        owners = [(meta.namespace, ref.name) for ref in meta.owner_references if ref.kind == KIND]
        state = not _STATES.isdisjoint(meta.labels)
        if owners or not state or meta.labels.get(keys.OWNER_KIND) != KIND:
            return owners
        return indexed(BY_LABEL, f"{meta.namespace}/{meta.labels.get(keys.OWNER_NAME, '')}")

    return users


def _variables_users(
    indexed: Callable[[str, str], Iterable[Key]], kind: str
) -> Callable[[ApiObject], Iterable[Key]]:
    def users(obj: ApiObject) -> Iterable[Key]:
        namespace, name = obj.key
        return indexed(BY_VARIABLES, f"{namespace}/{kind}/{name}")

    return users


def _siblings(indexed: Callable[[str, str], Iterable[Key]], obj: ApiObject) -> Iterable[Key]:
    """The clusters that a deleted machine or pool may have blocked."""
    label = obj.metadata.labels.get(keys.CLUSTER_NAME, "")
    return indexed(BY_CLUSTER, f"{obj.metadata.namespace}/{label}") if label else []
