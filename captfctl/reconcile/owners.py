"""The Cluster an object belongs to, and the gates that depend on it
(reconcile.md: The owning Cluster)."""

from dataclasses import dataclass

from captfctl.model import keys
from captfctl.model.capi import Cluster
from captfctl.model.conditions import ConditionValue
from captfctl.model.kinds import CLUSTER, INFRASTRUCTURE
from captfctl.model.meta import OwnerReference
from captfctl.model.owner import Owner
from captfctl.model.reasons import DependenciesReady
from captfctl.model.resources import CAPI
from captfctl.model.terraform import TerraformCluster
from captfctl.reconcile.cache import CacheReader

CLUSTER_KIND = CLUSTER.owner
KIND = CLUSTER.name


@dataclass(frozen=True, slots=True)
class OwnerLookup:
    """`reference`: the object has an owner reference to a Cluster. `cluster`: that Cluster, when it
    exists and may own the object. `gate`: why it may not, for `DependenciesReady`."""

    reference: OwnerReference | None
    cluster: Cluster | None = None
    gate: ConditionValue | None = None

    @property
    def name(self) -> str:
        """The Cluster's name, also when the Cluster is gone."""
        return self.reference.name if self.reference else ""


WAITING_FOR_OWNER = DependenciesReady.WAITING_FOR_OWNER.says(
    "Cluster API has not set the owner reference of a Cluster yet"
)


def look_up(cache: CacheReader, obj: TerraformCluster) -> OwnerLookup:
    """Find and check the owning Cluster. A Cluster that is gone is not a gate here."""
    reference = _cluster_reference(obj)
    if reference is None:
        return OwnerLookup(None, gate=WAITING_FOR_OWNER)
    cluster = cache.cluster(obj.metadata.namespace, reference.name)
    if cluster is None:
        return OwnerLookup(reference)
    problem = _mismatch(obj, reference, cluster)
    if problem:
        message = f"{CLUSTER_KIND} {cluster.metadata.name}: {problem}"
        return OwnerLookup(reference, gate=DependenciesReady.OWNER_MISMATCH.says(message))
    return OwnerLookup(reference, cluster)


def owner_gone(reference: OwnerReference) -> ConditionValue:
    """The gate of an object whose Cluster does not exist."""
    return DependenciesReady.OWNER_NOT_FOUND.says(
        f"{CLUSTER_KIND} {reference.name}, which owns this object, does not exist"
    )


def paused_by(obj: TerraformCluster, cluster: Cluster | None) -> str:
    """What pauses the object, in words; empty when nothing does."""
    if keys.PAUSED in obj.metadata.annotations:
        return f"the object carries the annotation {keys.PAUSED}"
    if cluster is not None and cluster.spec.paused:
        return f"spec.paused of {CLUSTER_KIND} {cluster.metadata.name} is true"
    return ""


def owner_of(obj: TerraformCluster, lookup: OwnerLookup) -> Owner:
    """The object as the owner of its Jobs and Secrets."""
    meta = obj.metadata
    return Owner(KIND, meta.namespace, meta.name, meta.uid, cluster_name(obj, lookup))


def cluster_name(obj: TerraformCluster, lookup: OwnerLookup) -> str:
    """The object's own label, else the owning Cluster's name, else empty."""
    return obj.metadata.labels.get(keys.CLUSTER_NAME, "") or lookup.name


def _cluster_reference(obj: TerraformCluster) -> OwnerReference | None:
    for reference in obj.metadata.owner_references:
        group = reference.api_version.partition("/")[0]
        if reference.kind == CLUSTER_KIND and group == CAPI:
            return reference
    return None


def _mismatch(obj: TerraformCluster, reference: OwnerReference, cluster: Cluster) -> str:
    """Which of the three owner checks fails, in words."""
    back = cluster.spec.infrastructure_ref
    wanted = (INFRASTRUCTURE, KIND, obj.metadata.name)
    if back is None or (back.api_group, back.kind, back.name) != wanted:
        return f"its infrastructureRef does not name {KIND} {obj.metadata.name}"
    if reference.uid and reference.uid != cluster.metadata.uid:
        return f"its UID {cluster.metadata.uid} is not {reference.uid}, the owner reference's"
    label = obj.metadata.labels.get(keys.CLUSTER_NAME, "")
    if label and label != cluster.metadata.name:
        return f"the object's label {keys.CLUSTER_NAME} names {label}"
    return ""
