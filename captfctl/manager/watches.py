"""Which change makes which object be reconciled (manager.md: Watches)."""

from collections.abc import Callable, Iterable
from typing import Any

from captfctl.controller import Handler, Informer, WorkQueue
from captfctl.manager.caches import (
    BY_CLUSTER,
    BY_COPY,
    BY_IDENTITY,
    BY_LABEL,
    BY_VARIABLES,
    Caches,
    local_secrets,
)
from captfctl.model import keys, names
from captfctl.model.capi import Cluster, Machine, MachinePool
from captfctl.model.core import Job
from captfctl.model.identity import TerraformClusterIdentity
from captfctl.model.kinds import INFRASTRUCTURE, KINDS, Kind
from captfctl.model.meta import ApiObject
from captfctl.model.ops import MUTATING
from captfctl.model.plan import TerraformPlan
from captfctl.model.reasons import WaitReason
from captfctl.model.terraform import TerraformCluster, TerraformObject
from captfctl.reconcile.cache import target_of
from captfctl.runs.jobs import is_bookkept, is_finished, operation_of
from captfctl.runs.slots import Slots

Key = tuple[str, str]


def connect(caches: Caches, kind: Kind, queue: WorkQueue[Key]) -> None:
    """Everything that wakes an object of a kind."""
    own = caches.own[kind.name]

    def wake(found: Iterable[Key]) -> None:
        for key in found:
            # With a watch filter or a namespace, some of the objects are another manager's.
            if key in own:
                queue.add(key)

    def wakes(mapping: Callable[[Any], Iterable[Key]]) -> Callable[[Any], None]:
        return lambda obj: wake(mapping(obj))

    def indexed(index: str, value: str) -> Iterable[Key]:
        return own.keys_by_index(index, value)

    _own(own, queue)
    _asked_for(own, queue)
    referenced = wakes(lambda owner: _referenced(kind, owner))
    _when_it_matters(caches.owners[kind.name], referenced)
    _any_change(caches.jobs, wakes(lambda job: _controlled(kind, job)))
    _any_change(
        caches.secrets, wakes(lambda secret: _secret_users(kind, own, secret)), mirrors=False
    )
    _any_change(caches.plans, wakes(lambda plan: _planned(kind, plan)))
    _when_credentials_change(caches, kind, wake)
    caches.namespaces.add_handler(
        Handler(
            on_update=lambda old, new: (
                wake(own.keys(new.metadata.name))
                if old.metadata.labels != new.metadata.labels
                else None
            )
        )
    )
    for source, informer in (
        ("Secret", caches.variable_secrets),
        ("ConfigMap", caches.variable_maps),
    ):
        _any_change(informer, wakes(_variables_users(indexed, source)))
    siblings = wakes(lambda obj: _siblings(indexed, obj))
    _when_a_gate_opens(caches.jobs, kind, lambda job: _waiting(own, _siblings(indexed, job)), wake)
    if kind.leads:
        for informer in caches.dependents:
            informer.add_handler(Handler(on_delete=siblings))
        return
    _when_it_matters(caches.capi_clusters, wakes(lambda obj: _members(indexed, obj)))
    caches.clusters.add_handler(
        Handler(on_add=siblings, on_update=lambda old, new: _inherited(siblings, old, new))
    )


def _when_it_matters(owners: Informer[Any], wake: Callable[[Any], None]) -> None:
    """What objects depend on of those of Cluster API; they change often without it."""
    owners.add_handler(
        Handler(
            on_add=wake,
            on_update=lambda old, new: (
                wake(new) if _depended_on(old) != _depended_on(new) else None
            ),
            on_delete=wake,
        )
    )


def _when_credentials_change(
    caches: Caches, kind: Kind, wake: Callable[[Iterable[Key]], None]
) -> None:
    """Objects that name the identity, and those that have a copy of it because they inherit it."""

    def users(identity: TerraformClusterIdentity) -> Iterable[Key]:
        name = identity.metadata.name
        yield from caches.own[kind.name].keys_by_index(BY_IDENTITY, name)
        if not kind.leads:
            for copy in caches.secrets.by_index(BY_COPY, name):
                yield from _secret_users(kind, caches.own[kind.name], copy)

    caches.identities.add_handler(
        Handler(
            on_add=lambda obj: wake(users(obj)),
            on_update=lambda old, new: wake(users(new)) if _credentials_changed(old, new) else None,
            on_delete=lambda obj: wake(users(obj)),
        )
    )


def _inherited(
    siblings: Callable[[Any], None], old: TerraformCluster, new: TerraformCluster
) -> None:
    """What machines and pools take from their cluster: its spec, that it is provisioned, and the
    exports in its state."""
    if _given(old) != _given(new):
        siblings(new)


def _given(cluster: TerraformCluster) -> tuple[object, ...]:
    status = cluster.status
    return cluster.metadata.generation, status.initialization, status.observed_state_serial


def _when_a_gate_opens(
    jobs: Informer[Job],
    kind: Kind,
    waiting: Callable[[Job], Iterable[Key]],
    wake: Callable[[Iterable[Key]], None],
) -> None:
    """Jobs on the other side of the operation gate have given their leases back once they were
    read, or are gone.

    An object whose wait is not in the cache yet is woken by that: it shows what the pass wrote.
    """

    def over(job: Job) -> None:
        other = KINDS.get(job.metadata.labels.get(keys.OWNER_KIND, ""))
        if other is not None and other.leads != kind.leads and operation_of(job) in MUTATING:
            wake(waiting(job))

    def read(old: Job, new: Job) -> None:
        if is_bookkept(new) and not is_bookkept(old):
            over(new)

    jobs.add_handler(Handler(on_update=read, on_delete=over))


_AT_THE_GATE = frozenset({WaitReason.CLUSTER_OPERATION, WaitReason.MACHINE_OPERATIONS})


def _waiting(own: Informer[Any], among: Iterable[Key]) -> Iterable[Key]:
    """Those that wait at the operation gate."""
    for key in among:
        obj = own.get(*key)
        if obj is not None and any(c.reason in _AT_THE_GATE for c in obj.status.conditions):
            yield key


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

    def wake_local(user: TerraformObject) -> None:
        for text in local_secrets(user):
            namespace, _, name = text.partition("/")
            queue.add((namespace, name))

    _own(caches.identities, queue)
    _any_change(caches.secrets, wake)
    _own(caches.local_secrets, queue)
    for own in caches.own.values():
        own.add_handler(Handler(on_update=lambda old, _: wake_local(old), on_delete=wake_local))


def connect_templates(caches: Caches, queue: WorkQueue[Key]) -> None:
    """A template is reconciled when it changes."""
    if caches.templates is not None:
        _own(caches.templates, queue)


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


def _referenced(kind: Kind, owner: Cluster | Machine | MachinePool) -> list[Key]:
    ref = owner.infrastructure
    if ref is None or (ref.api_group, ref.kind) != (INFRASTRUCTURE, kind.name):
        return []
    return [(owner.metadata.namespace, ref.name)]


def _depended_on(owner: Cluster | Machine | MachinePool) -> tuple[object, ...]:
    """What of its owner an object depends on."""
    if not isinstance(owner, Cluster):
        return owner.spec, owner.deleting, owner.metadata.labels, owner.metadata.annotations
    spec, started = owner.spec, owner.status.initialization
    return (
        spec.paused,
        started,
        spec.topology.version if spec.topology else "",
        spec.control_plane_endpoint,
        spec.cluster_network,
        spec.infrastructure_ref,
    )


def _members(indexed: Callable[[str, str], Iterable[Key]], cluster: Cluster) -> Iterable[Key]:
    meta = cluster.metadata
    return indexed(BY_CLUSTER, f"{meta.namespace}/{names.label_value(meta.name)}")


def _credentials_changed(old: TerraformClusterIdentity, new: TerraformClusterIdentity) -> bool:
    """Who may use them, or what its Secret holds."""
    before = old.metadata.generation, old.status.secret_version
    return before != (new.metadata.generation, new.status.secret_version)


def _controlled(kind: Kind, job: Job) -> list[Key]:
    owner = job.metadata.controller
    if owner is None or owner.kind != kind.name:
        return []
    return [(job.metadata.namespace, owner.name)]


def _planned(kind: Kind, plan: TerraformPlan) -> list[Key]:
    wanted, name = target_of(plan)
    return [(plan.metadata.namespace, name)] if wanted == kind.name else []


_STATES = frozenset({keys.TFSTATE, keys.UNSAVED_STATE})


def _secret_users(kind: Kind, own: Informer[Any], secret: ApiObject) -> Iterable[Key]:
    """The owners; of a state that nobody owns yet, the object whose labels it carries."""
    meta = secret.metadata
    owners = [(meta.namespace, ref.name) for ref in meta.owner_references if ref.kind == kind.name]
    state = not _STATES.isdisjoint(meta.labels)
    if owners or not state or meta.labels.get(keys.OWNER_KIND) != kind.name:
        return owners
    name = meta.labels.get(keys.OWNER_NAME, "")
    return own.keys_by_index(BY_LABEL, f"{meta.namespace}/{name}")


def _variables_users(
    indexed: Callable[[str, str], Iterable[Key]], kind: str
) -> Callable[[ApiObject], Iterable[Key]]:
    def users(obj: ApiObject) -> Iterable[Key]:
        namespace, name = obj.key
        return indexed(BY_VARIABLES, f"{namespace}/{kind}/{name}")

    return users


def _siblings(indexed: Callable[[str, str], Iterable[Key]], obj: ApiObject) -> Iterable[Key]:
    """The objects of the same Cluster: those that a deleted machine may have blocked, or that take
    something from a changed cluster."""
    label = obj.metadata.labels.get(keys.CLUSTER_NAME, "")
    return indexed(BY_CLUSTER, f"{obj.metadata.namespace}/{label}") if label else []
