"""What would become of the infrastructure of objects that are deleted, told beforehand from what is
stored (deletion.md: Before a deletion)."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

from captfctl.cluster.door import Door, find
from captfctl.install.deletion_protection import how_to_unprotect
from captfctl.model import keys, names
from captfctl.model.capi import Cluster, Machine, MachinePool
from captfctl.model.core import Secret
from captfctl.model.kinds import INFRASTRUCTURE, KINDS, Kind
from captfctl.model.owner import Owner
from captfctl.model.resource import Resource
from captfctl.model.resources import CAPI, CLUSTERS, MACHINE_POOLS, MACHINES, OWNERS, SECRETS
from captfctl.model.terraform import DeletionPolicy, TerraformObject
from captfctl.reconcile.cache import DoorCache
from captfctl.reconcile.held import held_by_state
from captfctl.reconcile.kinds import RULES, owner_of, paused_by
from captfctl.terraform.contract.effective import Config, Flags
from captfctl.terraform.state.contents import (
    Contents,
    contents_of,
    kept_addresses,
    read_contents,
)
from captfctl.terraform.state.lock import read_lock
from captfctl.terraform.state.reader import StateProblem, Unreadable
from captfctl.terraform.state.records import read_records
from captfctl.terraform.state.unsaved import KeptState, find_kept

T = TypeVar("T")


class Fate(StrEnum):
    """What becomes of what an object manages."""

    DESTROYED = "destroyed"
    FORGOTTEN = "forgotten"
    """It goes on, and nothing manages it any more."""
    NOTHING = "nothing"
    HELD = "held"
    """The deletion waits for a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What deleting one object would do.

    `resources` are addresses in its state; None where there is a state that cannot be listed.
    `why` is told for all but what is simply destroyed. `unprotect` is the command without which the
    deletion is refused or held; empty for an object that is not protected.
    """

    kind: str
    namespace: str
    name: str
    fate: Fate
    resources: tuple[str, ...] | None
    why: str = ""
    unprotect: str = ""
    paused: bool = False


Key = tuple[str, str]
"""Namespace and name."""


def preview_all(door: Door, objects: Iterable[tuple[Resource[Any], Key]]) -> list[Preview]:
    """What deleting these objects would do to infrastructure, clusters first; objects that do not
    exist, and those that have none, are left out.

    With a Cluster, Machine or MachinePool goes what it owns: of a Cluster also its machines and
    pools.
    """
    cache = _Remembering(door)
    found: dict[tuple[str, str, str], Preview] = {}

    def add(new: Iterable[Preview]) -> None:
        for one in new:
            found.setdefault((one.kind, one.namespace, one.name), one)

    named = list(objects)
    for resource, key in named:
        if resource.group == CAPI:
            add(_with_owner(door, cache, resource, key))
    for resource, key in named:
        if resource.group == INFRASTRUCTURE and resource.kind in RULES:
            add(_one(door, cache, KINDS[resource.kind], key, with_owner=False))
    return sorted(found.values(), key=lambda one: not KINDS[one.kind].leads)


def _with_owner(
    door: Door, cache: "_Remembering", resource: Resource[Any], key: Key
) -> Iterator[Preview]:
    """Of what an object of Cluster API takes along."""
    kind = next((kind for kind in KINDS.values() if kind.owner == resource.kind), None)
    if kind is None:
        return
    owner = cache.own(OWNERS[kind.name], *key)
    if owner is None:
        return
    ref = owner.infrastructure
    if ref is not None and (ref.api_group, ref.kind) == (INFRASTRUCTURE, kind.name):
        yield from _one(door, cache, kind, (key[0], ref.name), with_owner=True)
    if isinstance(owner, Cluster):
        yield from _workers(door, cache, owner)


def _one(
    door: Door, cache: "_Remembering", kind: Kind, key: Key, *, with_owner: bool
) -> Iterator[Preview]:
    obj = cache.own(RULES[kind.name].resource, *key)
    if obj is not None:
        yield _preview(door, cache, kind, obj, None, with_owner=with_owner)


def _workers(door: Door, cache: "_Remembering", cluster: Cluster) -> Iterator[Preview]:
    """Of a Cluster's machines and pools: as many requests for all of them as for one, but for
    states that cannot be read or have nothing, and for those that are not stored."""
    namespace, name = cluster.metadata.namespace, cluster.metadata.name
    labels = f"{keys.CLUSTER_NAME}={names.label_value(name)}"
    stored: _Stored | None = None
    for kind in (kind for kind in KINDS.values() if not kind.leads):
        found = door.list(RULES[kind.name].resource, namespace, labels=labels).items
        if not found:
            continue
        cache.read_all(OWNERS[kind.name], namespace)
        stored = stored or _Stored.read(door, namespace, labels)
        for obj in sorted(found, key=lambda obj: str(obj.metadata.name)):
            yield _preview(door, cache, kind, obj, stored, with_owner=True)


class _Remembering(DoorCache):
    """Asks for each object once: many machines have one Cluster."""

    def __init__(self, door: Door) -> None:
        super().__init__(door)
        self._door = door
        self._known: dict[tuple[str, str, str], Any] = {}
        self._complete: set[tuple[str, str]] = set()

    def read_all(self, resource: Resource[Any], namespace: str) -> None:
        """Ask for all objects of a kind at once."""
        for obj in self._door.list(resource, namespace).items:
            self._known[resource.name, namespace, obj.metadata.name] = obj
        self._complete.add((resource.name, namespace))

    def _find(self, resource: Resource[T], namespace: str, name: str) -> T | None:
        key = (resource.name, namespace, name)
        if key not in self._known and key[:2] not in self._complete:
            self._known[key] = find(self._door, resource, namespace, name)
        return self._known.get(key)

    def own(self, resource: Resource[T], namespace: str, name: str) -> T | None:
        return self._find(resource, namespace, name)

    def cluster(self, namespace: str, name: str) -> Cluster | None:
        return self._find(CLUSTERS, namespace, name)

    def machine(self, namespace: str, name: str) -> Machine | None:
        return self._find(MACHINES, namespace, name)

    def machine_pool(self, namespace: str, name: str) -> MachinePool | None:
        return self._find(MACHINE_POOLS, namespace, name)


def _preview(
    door: Door,
    cache: _Remembering,
    kind: Kind,
    obj: TerraformObject,
    stored: "_Stored | None",
    *,
    with_owner: bool,
) -> Preview:
    """`stored` None: it is to be read."""
    rules = RULES[kind.name](obj, cache)
    config, owner = rules.config(Flags()), owner_of(rules)
    secrets = stored.states.get(owner.suffix) if stored else None
    found = contents_of(secrets, owner) if secrets else read_contents(door, owner)
    kept = find_kept(door, owner) if stored is None or owner.suffix in stored.kept else None
    judged = _judged(door, obj, owner, config, found, kept)
    own = obj.spec.deletion_protection is True
    protected = own or (config.deletion_protection and not with_owner)
    meta = obj.metadata
    return Preview(
        kind=kind.name,
        namespace=meta.namespace,
        name=meta.name,
        fate=judged.fate,
        resources=judged.resources,
        why=judged.why,
        unprotect=how_to_unprotect(kind.plural, meta.namespace, meta.name) if protected else "",
        paused=bool(paused_by(rules)),
    )


@dataclass(frozen=True, slots=True)
class _Judged:
    fate: Fate
    resources: tuple[str, ...] | None
    why: str = ""


def _judged(
    door: Door,
    obj: TerraformObject,
    owner: Owner,
    config: Config,
    found: Contents | Unreadable,
    kept: KeptState | None,
) -> _Judged:
    resources = found.addresses if isinstance(found, Contents) else None
    if keys.MANAGED_BY in obj.metadata.annotations:
        return _Judged(Fate.FORGOTTEN, resources, "somebody else manages it")
    if isinstance(found, Contents) and _kept_by_another(found, owner):
        return _Judged(Fate.NOTHING, (), "its state is one that an earlier object kept; that stays")
    held = held_by_state(door, obj, owner, found, kept)
    told = found.message if isinstance(found, Unreadable) else ""
    if kept is not None:
        resources = kept_addresses(door, owner, kept)
        told = f"Job {kept.job} could not store its state, which is kept and stored first: {kept}"
    elif not held and _has_nothing(found):
        told = _not_all_is_known(door, obj, owner)
        if not told:
            return _Judged(Fate.NOTHING, (), "nothing is in its state, or it has none")
        resources = None
    if config.deletion_policy is None:
        why = "spec.deletionPolicy is not set, and the TerraformCluster to inherit it from is gone"
        return _Judged(Fate.HELD, resources, why)
    if config.deletion_policy is DeletionPolicy.RETAIN:
        return _Judged(Fate.FORGOTTEN, resources, "its deletionPolicy is Retain")
    if held:
        return _Judged(Fate.HELD, resources, held)
    return _Judged(Fate.DESTROYED, resources, told)


def _has_nothing(found: Contents | Unreadable) -> bool:
    if isinstance(found, Contents):
        return not found.state.resources
    return found.problem is StateProblem.NO_STATE


def _not_all_is_known(door: Door, obj: TerraformObject, owner: Owner) -> str:
    """Why there may be something to destroy though no state tells of it; empty when there is not
    (deletion.md: Nothing to destroy)."""
    active = obj.status.active_job
    if active is not None:
        return f"Job {active.name} runs, and may create more"
    interrupted = read_records(door, owner).marks.interrupted_apply
    if interrupted:
        return f"the apply Job {interrupted} ended without telling what it created"
    lock = read_lock(door, owner)
    if lock.in_use:
        return f"{lock.who or 'somebody'} holds the lock of the state and may create more"
    return ""


def _kept_by_another(found: Contents, owner: Owner) -> bool:
    marks = (chunk.labels.get(keys.RETAINED_FROM_UID) for chunk in found.state.chunks)
    return any(uid and uid != owner.uid for uid in marks)


@dataclass(frozen=True, slots=True)
class _Stored:
    """What is stored of many objects, by the suffix of their names: the Secrets of their states,
    and which of them have a state that could not be stored."""

    states: Mapping[str, list[Secret]]
    kept: frozenset[str]

    @classmethod
    def read(cls, door: Door, namespace: str, labels: str) -> "_Stored":
        """Of all objects with these labels."""
        selector = f"{keys.TFSTATE}={keys.TRUE},{keys.TFSTATE_WORKSPACE}=default,{labels}"
        states: dict[str, list[Secret]] = {}
        for secret in door.list(SECRETS, namespace, labels=selector).items:
            suffix = secret.metadata.labels.get(keys.TFSTATE_SUFFIX, "")
            states.setdefault(suffix, []).append(secret)
        selector = f"{keys.UNSAVED_STATE},{labels}"
        kept = door.list(SECRETS.metadata_only(), namespace, labels=selector).items
        return cls(states, frozenset(one.metadata.labels[keys.UNSAVED_STATE] for one in kept))
