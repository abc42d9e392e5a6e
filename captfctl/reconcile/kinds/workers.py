"""What machines and pools have in common: the Cluster they belong to, what it exports, and the
data they start from (reconcile.md: Machines)."""

from dataclasses import dataclass

from captfctl.cluster.door import Door, find
from captfctl.model import keys
from captfctl.model.capi import Cluster, InfrastructureRef
from captfctl.model.conditions import ConditionValue
from captfctl.model.kinds import CLUSTER, INFRASTRUCTURE, MACHINE, MACHINE_POOL, Kind
from captfctl.model.meta import ApiObject, OwnerReference
from captfctl.model.owner import Owner
from captfctl.model.reasons import DependenciesReady
from captfctl.model.resources import SECRETS, TERRAFORM_CLUSTERS
from captfctl.model.terraform import TerraformCluster, TerraformObject
from captfctl.reconcile.cache import CacheReader
from captfctl.reconcile.kinds.rules import OwnerLookup, owner_reference, values_of
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
class Claim:
    """What the owner of Cluster API says of the object that it owns."""

    back: InfrastructureRef | None
    cluster: str


def look_up(
    cache: CacheReader, kind: Kind, obj: TerraformObject, owner: ApiObject | None, claim: Claim
) -> OwnerLookup:
    """The Cluster that the object's label names, and whether the owner may own the object.

    `owner` is the one that its owner reference names, None when it is gone.
    """
    reference = owner_reference(obj, kind)
    name = obj.metadata.labels.get(keys.CLUSTER_NAME, "")
    cluster = cache.cluster(obj.metadata.namespace, name) if name else None
    if reference is None:
        return OwnerLookup(None, cluster, _without_owner(obj, kind), name)
    if owner is not None and (problem := _mismatch(kind, obj, reference, owner, claim)):
        message = f"{reference.kind} {reference.name}: {problem}"
        gate = DependenciesReady.OWNER_MISMATCH.says(message)
        return OwnerLookup(reference, cluster, gate, name)
    return OwnerLookup(reference, cluster, _not_terraform(cluster), name)


def _without_owner(obj: TerraformObject, kind: Kind) -> ConditionValue:
    if obj.metadata.owner_references:
        return _NOT_OWNED[kind.name].says(
            f"Cluster API has not set the owner reference of a {kind.owner} yet"
        )
    return DependenciesReady.WAITING_FOR_OWNER.says(
        f"Cluster API has not set the owner reference of a {kind.owner} yet"
    )


def _mismatch(
    kind: Kind, obj: TerraformObject, reference: OwnerReference, owner: ApiObject, claim: Claim
) -> str:
    """Which of the three owner checks fails, in words."""
    wanted = (INFRASTRUCTURE, kind.name, obj.metadata.name)
    back = claim.back
    if back is None or (back.api_group, back.kind, back.name) != wanted:
        return f"its infrastructureRef does not name {kind.name} {obj.metadata.name}"
    if reference.uid and reference.uid != owner.metadata.uid:
        return f"its UID {owner.metadata.uid} is not {reference.uid}, the owner reference's"
    label = obj.metadata.labels.get(keys.CLUSTER_NAME, "")
    if label and label != claim.cluster:
        return (
            f"its clusterName is {claim.cluster}, but the label {keys.CLUSTER_NAME} names {label}"
        )
    return ""


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


def infrastructure_of(
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


def cluster_gate(
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


@dataclass(frozen=True, slots=True)
class Exports:
    """What the cluster's module hands to machines and pools."""

    exports: Json
    failure_domains: tuple[str, ...] = ()


def read_exports(door: Door, cluster: TerraformCluster) -> Exports | ConditionValue:
    """From the cluster's state, live; or the gate that is closed
    (module-contract.md: Inputs)."""
    meta = cluster.metadata
    if keys.MANAGED_BY in meta.annotations:
        return Exports({}, tuple(domain.name for domain in cluster.status.failure_domains))
    state = read_state(door, Owner(CLUSTER.name, meta.namespace, meta.name, meta.uid))
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


def _no_exports(text: str) -> ConditionValue:
    return DependenciesReady.WAITING_FOR_CLUSTER_EXPORTS.says(text)


def read_bootstrap(
    door: Door, owner: ApiObject, namespace: str, secret: str
) -> Bootstrap | ConditionValue:
    """From the Secret that a bootstrap provider made, live; or the gate that is closed."""
    found = find(door, SECRETS, namespace, secret) if secret else None
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


@dataclass(frozen=True, slots=True)
class Given:
    """What a machine or pool is given from what it belongs to."""

    cluster: Cluster
    exports: Exports
    bootstrap: Bootstrap


def given(
    door: Door,
    lookup: OwnerLookup,
    infrastructure: TerraformCluster | None,
    owner: ApiObject | None,
    bootstrap_secret: str,
) -> Given | ConditionValue:
    """All of it, or the first gate that is closed."""
    cluster = lookup.cluster
    if lookup.gate is not None or owner is None:
        return lookup.missing
    if cluster is None:
        return _waiting_for_cluster(lookup.cluster_name)
    gate = cluster_gate(cluster, infrastructure)
    if gate is not None or infrastructure is None:
        return gate or lookup.missing
    exports = read_exports(door, infrastructure)
    if isinstance(exports, ConditionValue):
        return exports
    bootstrap = read_bootstrap(door, owner, owner.metadata.namespace, bootstrap_secret)
    if isinstance(bootstrap, ConditionValue):
        return bootstrap
    return Given(cluster, exports, bootstrap)


def _waiting_for_cluster(name: str) -> ConditionValue:
    text = f"Cluster {name} does not exist" if name else f"the label {keys.CLUSTER_NAME} is not set"
    return DependenciesReady.WAITING_FOR_OWNER.says(text)
