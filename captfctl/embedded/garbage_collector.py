"""The garbage collector of the embedded control plane: owner references and dying namespaces.

It does what Kubernetes' own does: an object whose owners are all gone (by UID, not by name) is
deleted; an owner deleted in the foreground stays until its dependents that block it are gone; one
deleted with orphaning gives its dependents free first; a namespace being deleted is emptied (see
`captfctl.embedded.namespaces`). Left out: pods of a node that is gone, and old finished pods.
"""

import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import msgspec

from captfctl.clock import Clock
from captfctl.cluster.door import Door, Propagation
from captfctl.cluster.errors import NotFound
from captfctl.controller import Controller, Handler, Informer, Result
from captfctl.embedded.namespaces import NamespaceController
from captfctl.model.keys import FOREGROUND_DELETION, ORPHAN
from captfctl.model.meta import ObjectMeta, OwnerReference, PartialObject
from captfctl.model.resource import Resource
from captfctl.model.resources import CRDS

_BY_OWNER = "owner"
_NOT_COLLECTED = frozenset({"events", "events.events.k8s.io"})
_REFRESH_SECONDS = 5.0
"""How often the served resources are looked at when no CRD has changed."""

_UNKNOWN_RETRY = 5.0
_SYNC_RETRY = 0.2
_UNHEARD_RETRY = 0.5

log = logging.getLogger(__name__)
Resources = Callable[[], Iterable[Resource[Any]]]


@dataclass(frozen=True)
class Key:
    """One object of any kind."""

    resource: str
    namespace: str
    name: str


class _Owner(Enum):
    SOLID = auto()
    GONE = auto()
    WAITING = auto()
    """It is being deleted and waits for its dependents."""
    UNKNOWN = auto()


@dataclass(frozen=True)
class _Kind:
    resource: Resource[PartialObject]
    informer: Informer[PartialObject]


class GarbageCollector:
    """`resources` tells what is served now, one version of each; it is asked again and again."""

    def __init__(self, door: Door, resources: Resources, clock: Clock, *, workers: int = 2) -> None:
        self._door = door
        self._resources = resources
        self._clock = clock
        self._lock = threading.Lock()
        self._kinds: dict[str, _Kind] = {}
        self._controller: Controller[Key] = Controller(
            "garbage-collector", self.reconcile, clock, workers=workers
        )
        self._definitions = Informer(door, CRDS.metadata_only(), clock)
        self._namespaces = NamespaceController(door, resources, clock)
        self._changed = threading.Event()
        self._stopping = False
        self._follower = threading.Thread(target=self._follow, name="served-kinds", daemon=True)

    def start(self) -> None:
        """Follow everything that is served from now on."""
        self._refresh()
        wake = self._changed.set
        self._definitions.add_handler(
            Handler(
                on_add=lambda _: wake(), on_update=lambda *_: wake(), on_delete=lambda _: wake()
            )
        )
        self._definitions.start()
        self._follower.start()
        self._controller.start()
        self._namespaces.start()

    def stop(self, timeout: float) -> bool:
        """Tell whether everything ended; each part gets `timeout` seconds."""
        self._stopping = True
        self._changed.set()
        stopped = [self._controller.stop(timeout), self._definitions.stop(timeout)]
        stopped.append(self._namespaces.stop(timeout))
        if self._follower.ident is not None:
            self._follower.join(timeout)
            stopped.append(not self._follower.is_alive())
        return all([*stopped, *(kind.informer.stop(timeout) for kind in self._all())])

    # What is served.

    def _follow(self) -> None:
        while not self._stopping:
            self._clock.wait(self._changed, _REFRESH_SECONDS)
            self._changed.clear()
            if not self._stopping:
                self._refresh()

    def _refresh(self) -> None:
        """Watch what is served now, and nothing else."""
        served = {
            resource.name: resource.metadata_only()
            for resource in self._resources()
            if resource.name not in _NOT_COLLECTED
        }
        with self._lock:
            gone = [self._kinds.pop(name) for name in set(self._kinds) - set(served)]
            new = [served[name] for name in served if name not in self._kinds]
            for resource in new:
                self._kinds[resource.name] = self._watch(resource)
        for kind in gone:
            kind.informer.stop(0)

    def _watch(self, resource: Resource[PartialObject]) -> _Kind:
        informer = Informer(self._door, resource, self._clock, indexes={_BY_OWNER: _owner_uids})
        informer.add_handler(
            Handler(
                on_add=lambda obj: self._seen(resource, obj),
                on_update=lambda old, new: self._updated(resource, old, new),
                on_delete=lambda obj: self._deleted(obj),
            )
        )
        informer.start()
        return _Kind(resource, informer)

    def _all(self) -> list[_Kind]:
        with self._lock:
            return list(self._kinds.values())

    def _of_reference(self, ref: OwnerReference) -> _Kind | None:
        group = ref.api_version.rpartition("/")[0]
        return next(
            (k for k in self._all() if (k.resource.group, k.resource.kind) == (group, ref.kind)),
            None,
        )

    # Changes. Called from the informers' threads.

    def _seen(self, resource: Resource[PartialObject], obj: PartialObject) -> None:
        if obj.metadata.owner_references or obj.deleting:
            self._add(resource, obj.metadata)

    def _updated(
        self, resource: Resource[PartialObject], old: PartialObject, new: PartialObject
    ) -> None:
        if old.metadata.uid != new.metadata.uid:
            self._deleted(old)
        self._seen(resource, new)
        if old.metadata.owner_references != new.metadata.owner_references:
            self._add_owners(old)

    def _deleted(self, obj: PartialObject) -> None:
        for kind, dependent in self._dependents(obj.metadata.uid):
            self._add(kind.resource, dependent.metadata)
        self._add_owners(obj)

    def _add_owners(self, obj: PartialObject) -> None:
        """An owner may be waiting for this one to go."""
        for ref in obj.metadata.owner_references:
            kind = self._of_reference(ref)
            if kind is not None:
                namespace = obj.metadata.namespace if kind.resource.namespaced else ""
                self._controller.queue.add(Key(kind.resource.name, namespace, ref.name))

    def _add(self, resource: Resource[PartialObject], metadata: ObjectMeta) -> None:
        self._controller.queue.add(Key(resource.name, metadata.namespace, metadata.name))

    def _dependents(self, uid: str) -> list[tuple[_Kind, PartialObject]]:
        return [
            (kind, obj) for kind in self._all() for obj in kind.informer.by_index(_BY_OWNER, uid)
        ]

    def _live_dependents(self, owner: PartialObject) -> list[tuple[_Kind, PartialObject]]:
        """As the store has them: an informer may not have seen the newest, and letting the owner go
        without them would get them deleted, orphaned or not."""
        uid, namespace = owner.metadata.uid, owner.metadata.namespace
        return [
            (kind, obj)
            for kind in self._all()
            if kind.resource.namespaced or not namespace
            for obj in self._listed(kind, namespace)
            if uid in _owner_uids(obj)
        ]

    def _listed(self, kind: _Kind, namespace: str) -> list[PartialObject]:
        try:
            return self._door.list(kind.resource, namespace).items
        except NotFound:  # it is not served any more
            return []

    # The work.

    def reconcile(self, key: Key) -> Result:
        """One look at one object. Raises what the door raises."""
        with self._lock:
            kind = self._kinds.get(key.resource)
        if kind is None:
            return Result()
        try:
            obj = self._door.get(kind.resource, key.name, key.namespace)
        except NotFound:
            return Result()
        if not obj.deleting:
            return self._judge(kind, obj) if obj.metadata.owner_references else Result()
        if not all(other.informer.synced for other in self._all()):
            return Result(requeue_after=_SYNC_RETRY)
        if ORPHAN in obj.metadata.finalizers:
            self._orphan(kind, obj)
        elif FOREGROUND_DELETION in obj.metadata.finalizers:
            return self._wait_for_dependents(kind, obj)
        return Result()

    def _judge(self, kind: _Kind, obj: PartialObject) -> Result:
        """Delete `obj` when it has lost its owners; take off the references that mean nothing."""
        refs = obj.metadata.owner_references
        found = [(ref, self._look_up(kind, obj, ref)) for ref in refs]
        states = {state for _, state in found}
        if _Owner.SOLID in states:
            if states & {_Owner.GONE, _Owner.WAITING}:
                self._keep_references(
                    kind, obj, [r for r, s in found if s in (_Owner.SOLID, _Owner.UNKNOWN)]
                )
            return Result()
        if _Owner.UNKNOWN in states:
            return Result(requeue_after=_UNKNOWN_RETRY)
        waiting = _Owner.WAITING in states and self._dependents(obj.metadata.uid)
        self._delete(kind, obj, Propagation.FOREGROUND if waiting else _own_policy(obj))
        return Result()

    def _look_up(self, kind: _Kind, obj: PartialObject, ref: OwnerReference) -> _Owner:
        owners = self._of_reference(ref)
        if owners is None or (owners.resource.namespaced and not kind.resource.namespaced):
            return _Owner.UNKNOWN
        namespace = obj.metadata.namespace if owners.resource.namespaced else ""
        try:
            owner = self._door.get(owners.resource, ref.name, namespace)
        except NotFound:
            return _Owner.GONE
        if owner.metadata.uid != ref.uid:
            return _Owner.GONE
        if owner.deleting and FOREGROUND_DELETION in owner.metadata.finalizers:
            return _Owner.WAITING
        return _Owner.SOLID

    def _delete(self, kind: _Kind, obj: PartialObject, policy: Propagation) -> None:
        metadata = obj.metadata
        try:
            self._door.delete(
                kind.resource,
                metadata.name,
                metadata.namespace,
                uid=metadata.uid,
                resource_version=metadata.resource_version,
                propagation=policy,
            )
        except NotFound:
            return
        log.info("%s %s/%s lost its owners", kind.resource.kind, metadata.namespace, metadata.name)

    def _wait_for_dependents(self, kind: _Kind, obj: PartialObject) -> Result:
        uid = obj.metadata.uid
        heard = [(k, d) for k, d in self._dependents(uid) if _blocks(d, uid)]
        blocking = heard or [(k, d) for k, d in self._live_dependents(obj) if _blocks(d, uid)]
        if not blocking:
            self._drop_finalizer(kind, obj, FOREGROUND_DELETION)
        for dependents, dependent in blocking:
            if not dependent.deleting:
                self._add(dependents.resource, dependent.metadata)
        # One that was never heard of may go unheard as well.
        return Result(requeue_after=_UNHEARD_RETRY if blocking and not heard else 0.0)

    def _orphan(self, kind: _Kind, obj: PartialObject) -> None:
        uid = obj.metadata.uid
        for dependents, dependent in self._live_dependents(obj):
            rest = [ref for ref in dependent.metadata.owner_references if ref.uid != uid]
            self._keep_references(dependents, dependent, rest)
        self._drop_finalizer(kind, obj, ORPHAN)

    def _keep_references(self, kind: _Kind, obj: PartialObject, refs: list[OwnerReference]) -> None:
        self._patch(kind, obj, {"ownerReferences": msgspec.to_builtins(refs) or None})

    def _drop_finalizer(self, kind: _Kind, obj: PartialObject, name: str) -> None:
        rest = [finalizer for finalizer in obj.metadata.finalizers if finalizer != name]
        self._patch(kind, obj, {"finalizers": rest or None})

    def _patch(self, kind: _Kind, obj: PartialObject, metadata: dict[str, Any]) -> None:
        try:
            self._door.patch(
                kind.resource,
                obj.metadata.name,
                obj.metadata.namespace,
                {"metadata": metadata},
                resource_version=obj.metadata.resource_version,
            )
        except NotFound:
            return


def _owner_uids(obj: PartialObject) -> list[str]:
    return [ref.uid for ref in obj.metadata.owner_references]


def _blocks(obj: PartialObject, owner_uid: str) -> bool:
    return any(
        ref.uid == owner_uid and ref.block_owner_deletion for ref in obj.metadata.owner_references
    )


def _own_policy(obj: PartialObject) -> Propagation:
    """What an earlier delete of the object asked for stays."""
    if ORPHAN in obj.metadata.finalizers:
        return Propagation.ORPHAN
    if FOREGROUND_DELETION in obj.metadata.finalizers:
        return Propagation.FOREGROUND
    return Propagation.BACKGROUND
