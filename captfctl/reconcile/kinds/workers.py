"""What machines and pools have in common: the Cluster they belong to, what it exports, and the
data they start from (reconcile.md: Machines)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from captfctl.cluster.door import Door, find
from captfctl.cluster.errors import ApiError
from captfctl.model import keys
from captfctl.model.capi import Cluster, Machine, MachinePool
from captfctl.model.conditions import ConditionValue
from captfctl.model.kinds import CLUSTER, INFRASTRUCTURE, MACHINE, MACHINE_POOL, Kind
from captfctl.model.meta import OwnerReference
from captfctl.model.owner import Owner
from captfctl.model.reasons import DependenciesReady
from captfctl.model.resources import SECRETS, TERRAFORM_CLUSTERS
from captfctl.model.terraform import TerraformCluster, TerraformObject
from captfctl.reconcile.cache import CacheReader, version
from captfctl.reconcile.kinds.rules import OwnerLookup, owner_gate, owner_reference, values_of
from captfctl.terraform.contract.build_workers import Bootstrap, bootstrap_of
from captfctl.terraform.contract.hashing import hashable
from captfctl.terraform.contract.jsontext import Json
from captfctl.terraform.contract.outputs import decode_cluster
from captfctl.terraform.state.reader import Unreadable, read_state

_NOT_OWNED = {
    MACHINE.name: DependenciesReady.WAITING_FOR_OWNER_MACHINE,
    MACHINE_POOL.name: DependenciesReady.WAITING_FOR_OWNER_MACHINE_POOL,
}


@dataclass(frozen=True, slots=True)
class Exports:
    """What the cluster's module hands to machines and pools."""

    exports: Json
    failure_domains: tuple[str, ...] = ()


T = TypeVar("T", Machine, MachinePool)


@dataclass(frozen=True, slots=True)
class Given(Generic[T]):
    """What the inputs of a machine or pool are made of."""

    owner: T
    cluster: Cluster
    exports: Exports
    bootstrap: Bootstrap


class Belongings(Generic[T]):
    """What a machine or pool belongs to, from the caches.

    `owner` is the one that its owner reference names, None when it is gone. `find_owner` gives it
    by namespace and name.
    """

    def __init__(
        self,
        cache: CacheReader,
        kind: Kind,
        obj: TerraformObject,
        find_owner: Callable[[str, str], T | None],
    ) -> None:
        self._cache = cache
        reference = owner_reference(obj, kind)
        namespace = obj.metadata.namespace
        self.owner: T | None = (
            find_owner(namespace, reference.name) if reference is not None else None
        )
        self.lookup = _look_up(cache, kind, obj, reference, self.owner)
        self.infrastructure = _infrastructure_of(cache, obj, self.lookup.cluster)

    @property
    def owner_ends(self) -> bool:
        """Whether the owner that the object once got is being deleted or is gone."""
        if self.lookup.reference is None:
            return False
        return self.owner is None or self.owner.deleting

    def given(self, door: Door) -> Given[T] | ConditionValue:
        """What the inputs are made of, read live; or the first gate that is closed."""
        cluster, infrastructure = self.lookup.cluster, self.infrastructure
        if self.lookup.gate is not None or self.owner is None:
            return self.lookup.missing
        if cluster is None:
            return _waiting_for_cluster(self.lookup.cluster_name)
        gate = _cluster_gate(cluster, infrastructure)
        if gate is not None or infrastructure is None:
            return gate or self.lookup.missing
        exports = _read_exports(door, infrastructure)
        if isinstance(exports, ConditionValue):
            return exports
        bootstrap = _read_bootstrap(door, self.owner)
        if isinstance(bootstrap, ConditionValue):
            return bootstrap
        return Given(self.owner, cluster, exports, bootstrap)

    def given_versions(self, door: Door) -> object | None:
        """Which exports and bootstrap data `given` would read. None: some are missing.

        The Secret of the bootstrap data is in no cache, so its metadata are read live.
        """
        if self.owner is None or self.infrastructure is None:
            return None
        bootstrap = _bootstrap_version(door, self.owner)
        if bootstrap is None:
            return None
        return _exports_versions(self._cache, self.infrastructure), bootstrap


def _look_up(
    cache: CacheReader,
    kind: Kind,
    obj: TerraformObject,
    reference: OwnerReference | None,
    owner: Machine | MachinePool | None,
) -> OwnerLookup:
    """The Cluster that the object's label names, and whether the owner may own the object."""
    name = obj.metadata.labels.get(keys.CLUSTER_NAME, "")
    cluster = cache.cluster(obj.metadata.namespace, name) if name else None
    if reference is None:
        return OwnerLookup(None, cluster, _without_owner(obj, kind), name)
    gate = owner_gate(kind, obj, reference, owner) if owner is not None else None
    return OwnerLookup(reference, cluster, gate or _not_terraform(cluster), name)


def _without_owner(obj: TerraformObject, kind: Kind) -> ConditionValue:
    if obj.metadata.owner_references:
        return _NOT_OWNED[kind.name].says(
            f"Cluster API has not set the owner reference of a {kind.owner} yet"
        )
    return DependenciesReady.WAITING_FOR_OWNER.says(
        f"Cluster API has not set the owner reference of a {kind.owner} yet"
    )


def _not_terraform(cluster: Cluster | None) -> ConditionValue | None:
    if cluster is None:
        return None
    ref = cluster.spec.infrastructure_ref
    if ref is None or (ref.api_group, ref.kind) == (INFRASTRUCTURE, CLUSTER.name):
        return None
    return DependenciesReady.CLUSTER_NOT_TERRAFORM.says(
        f"infrastructureRef of Cluster {cluster.metadata.name} names a {ref.kind} of "
        f"{ref.api_group or 'the core group'}"
    )


def _infrastructure_of(
    cache: CacheReader, obj: TerraformObject, cluster: Cluster | None
) -> TerraformCluster | None:
    """The `TerraformCluster` of the object's Cluster.

    Where the Cluster is gone it is the only one with the object's label: for what is inherited.
    """
    namespace = obj.metadata.namespace
    if cluster is not None:
        ref = cluster.spec.infrastructure_ref
        return cache.own(TERRAFORM_CLUSTERS, namespace, ref.name) if ref is not None else None
    name = obj.metadata.labels.get(keys.CLUSTER_NAME, "")
    found = cache.labelled_clusters(namespace, name) if name else ()
    return found[0] if len(found) == 1 else None


def _cluster_gate(
    cluster: Cluster, infrastructure: TerraformCluster | None
) -> ConditionValue | None:
    """Why nothing of the Cluster can be used yet."""
    started = cluster.status.initialization
    if infrastructure is None:
        text = f"Cluster {cluster.metadata.name} has no TerraformCluster"
    elif started is None or not started.infrastructure_provisioned:
        text = f"the infrastructure of Cluster {cluster.metadata.name} is not provisioned yet"
    else:
        return None
    return DependenciesReady.WAITING_FOR_CLUSTER_INFRASTRUCTURE.says(text)


def _read_exports(door: Door, cluster: TerraformCluster) -> Exports | ConditionValue:
    """From the cluster's state, live; or the gate that is closed
    (module-contract.md: Inputs)."""
    meta = cluster.metadata
    if keys.MANAGED_BY in meta.annotations:
        return Exports({}, tuple(domain.name for domain in cluster.status.failure_domains))
    state = read_state(door, _owner_of_state(cluster))
    if isinstance(state, Unreadable):
        return _no_exports(f"the state of {CLUSTER.name} {meta.name} cannot be read")
    outputs = decode_cluster(values_of(state))
    for name in ("exports", "failure_domains"):
        if outputs.findings.concerns(name):
            return _no_exports(f"the output {name} of {CLUSTER.name} {meta.name} cannot be used")
    if not hashable(outputs.exports):
        return _no_exports(
            f"the output exports of {CLUSTER.name} {meta.name} has a number that is no integer"
        )
    domains = sorted(domain.name for domain in outputs.failure_domains)
    return Exports(outputs.exports, tuple(domains))


def _exports_versions(cache: CacheReader, cluster: TerraformCluster) -> object:
    """The status tells of a new state while the caches may still show the Secrets of the one
    before."""
    meta, status = cluster.metadata, cluster.status
    managed_by = meta.annotations.get(keys.MANAGED_BY)
    secrets = [version(one.metadata) for one in cache.state_secrets(_owner_of_state(cluster))]
    told = managed_by, status.failure_domains, status.observed_state_serial
    return meta.uid, cluster.spec, told, secrets


def _owner_of_state(cluster: TerraformCluster) -> Owner:
    meta = cluster.metadata
    return Owner(CLUSTER.name, meta.namespace, meta.name, meta.uid)


def _no_exports(text: str) -> ConditionValue:
    return DependenciesReady.WAITING_FOR_CLUSTER_EXPORTS.says(text)


def _read_bootstrap(door: Door, owner: Machine | MachinePool) -> Bootstrap | ConditionValue:
    """From the Secret that a bootstrap provider made, live; or the gate that is closed."""
    secret = owner.bootstrap_secret
    found = find(door, SECRETS, owner.metadata.namespace, secret) if secret else None
    bootstrap = bootstrap_of(found) if found is not None else None
    if bootstrap is not None:
        return bootstrap
    if not secret:
        text = f"{owner.kind} {owner.metadata.name} names no bootstrap Secret yet"
    elif found is None:
        text = f"Secret {secret} with the bootstrap data does not exist"
    else:
        text = f"Secret {secret} has no bootstrap data under the key value"
    return DependenciesReady.WAITING_FOR_BOOTSTRAP_DATA.says(text)


def _bootstrap_version(door: Door, owner: Machine | MachinePool) -> object | None:
    """None: there is none, or it cannot be read, and a whole pass says so."""
    secret, metadata = owner.bootstrap_secret, SECRETS.metadata_only()
    try:
        found = find(door, metadata, owner.metadata.namespace, secret) if secret else None
    except ApiError:
        return None
    return version(found.metadata) if found is not None else None


def _waiting_for_cluster(name: str) -> ConditionValue:
    text = f"Cluster {name} does not exist" if name else f"the label {keys.CLUSTER_NAME} is not set"
    return DependenciesReady.WAITING_FOR_OWNER.says(text)
