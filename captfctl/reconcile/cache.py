"""Cached reads: what a pass may see a moment late (reconcile.md: Cached and live reads).

What must be true now is read through the door instead. An object of our kinds handed out here is
the caller's own; everything else may be shared and must be copied before it is changed.
"""

from collections.abc import Sequence
from typing import Protocol, TypeVar

from captfctl.cluster.door import Door, find
from captfctl.model import keys, names
from captfctl.model.capi import Cluster, Machine, MachinePool
from captfctl.model.core import Lease, RoleBinding, ServiceAccount
from captfctl.model.identity import TerraformClusterIdentity
from captfctl.model.meta import ApiObject, ObjectMeta, PartialObject
from captfctl.model.owner import Owner
from captfctl.model.plan import TerraformPlan
from captfctl.model.resource import Resource
from captfctl.model.resources import (
    CLUSTERS,
    CONFIG_MAPS,
    MACHINE_POOLS,
    MACHINES,
    NAMESPACES,
    ROLE_BINDINGS,
    SECRETS,
    SERVICE_ACCOUNTS,
    TERRAFORM_CLUSTER_IDENTITIES,
    TERRAFORM_CLUSTERS,
    TERRAFORM_PLANS,
)
from captfctl.model.terraform import TerraformCluster, TerraformObject
from captfctl.runs.reader import DoorJobs, JobsReader
from captfctl.terraform.contract.variables import SourceKind
from captfctl.terraform.state.lock import find_lock
from captfctl.terraform.state.reader import state_selector

T = TypeVar("T")


def version(meta: ObjectMeta) -> tuple[str, str, str]:
    """What differs between an object and any other, and after each of its changes."""
    return meta.name, meta.uid, meta.resource_version


class CacheReader(JobsReader, Protocol):
    """Jobs (see `JobsReader`) and single objects; None is the answer for one that is not there."""

    def own(self, resource: Resource[T], namespace: str, name: str) -> T | None:
        """An object of one of our kinds, the caller's own."""
        ...

    def cluster(self, namespace: str, name: str) -> Cluster | None:
        """A Cluster of Cluster API."""
        ...

    def machine(self, namespace: str, name: str) -> Machine | None:
        """A Machine of Cluster API."""
        ...

    def machine_pool(self, namespace: str, name: str) -> MachinePool | None:
        """A MachinePool of Cluster API."""
        ...

    def labelled_clusters(self, namespace: str, cluster: str) -> Sequence[TerraformCluster]:
        """The `TerraformCluster` objects that carry the label of a Cluster."""
        ...

    def plans(self, owner: Owner) -> Sequence[TerraformPlan]:
        """The plans of the object of that name; those of an earlier namesake may be among them."""
        ...

    def service_account(self, namespace: str, name: str) -> ServiceAccount | None:
        """Of those that carry `captf.io/managed=true`."""
        ...

    def role_binding(self, namespace: str, name: str) -> RoleBinding | None:
        """Of those that carry `captf.io/managed=true`."""
        ...

    def secret(self, namespace: str, name: str) -> PartialObject | None:
        """Of those that carry `captf.io/managed=true`: metadata only."""
        ...

    def state_secrets(self, owner: Owner) -> Sequence[PartialObject]:
        """The Secrets that hold chunks of the owner's state: metadata only."""
        ...

    def state_lock(self, owner: Owner) -> Lease | None:
        """Terraform's lock on the owner's state."""
        ...

    def identity(self, name: str) -> TerraformClusterIdentity | None:
        """The cluster-scoped identity of that name."""
        ...

    def namespace(self, name: str) -> PartialObject | None:
        """Metadata only."""
        ...

    def variables(self, kind: SourceKind, namespace: str, name: str) -> PartialObject | None:
        """Of the ConfigMaps and Secrets that carry `captf.io/variables`: metadata only."""
        ...

    def copied_identities(self, owner: Owner) -> Sequence[str]:
        """The identities of whose copies in its namespace the owner is named as a user."""
        ...

    def wrote(self, obj: TerraformObject) -> None:
        """Take note of a version this process wrote: later reads are not older than it."""
        ...


class DoorCache(DoorJobs):
    """Cached reads answered by the door itself: for one-shot mode and tests, never late."""

    def __init__(self, door: Door) -> None:
        super().__init__(door)
        self._source = door

    def own(self, resource: Resource[T], namespace: str, name: str) -> T | None:
        return find(self._source, resource, namespace, name)

    def cluster(self, namespace: str, name: str) -> Cluster | None:
        return find(self._source, CLUSTERS, namespace, name)

    def machine(self, namespace: str, name: str) -> Machine | None:
        return find(self._source, MACHINES, namespace, name)

    def machine_pool(self, namespace: str, name: str) -> MachinePool | None:
        return find(self._source, MACHINE_POOLS, namespace, name)

    def labelled_clusters(self, namespace: str, cluster: str) -> Sequence[TerraformCluster]:
        labels = f"{keys.CLUSTER_NAME}={names.label_value(cluster)}"
        return self._source.list(TERRAFORM_CLUSTERS, namespace, labels=labels).items

    def service_account(self, namespace: str, name: str) -> ServiceAccount | None:
        found = find(self._source, SERVICE_ACCOUNTS, namespace, name)
        return found if found and _managed(found.metadata.labels) else None

    def role_binding(self, namespace: str, name: str) -> RoleBinding | None:
        found = find(self._source, ROLE_BINDINGS, namespace, name)
        return found if found and _managed(found.metadata.labels) else None

    def plans(self, owner: Owner) -> Sequence[TerraformPlan]:
        found = self._source.list(TERRAFORM_PLANS, owner.namespace).items
        return [plan for plan in found if target_of(plan) == (owner.kind, owner.name)]

    def secret(self, namespace: str, name: str) -> PartialObject | None:
        found = find(self._source, SECRETS.metadata_only(), namespace, name)
        return found if found and _managed(found.metadata.labels) else None

    def state_secrets(self, owner: Owner) -> Sequence[PartialObject]:
        metadata, labels = SECRETS.metadata_only(), state_selector(owner)
        return self._source.list(metadata, owner.namespace, labels=labels).items

    def state_lock(self, owner: Owner) -> Lease | None:
        return find_lock(self._source, owner)

    def identity(self, name: str) -> TerraformClusterIdentity | None:
        return find(self._source, TERRAFORM_CLUSTER_IDENTITIES, "", name)

    def namespace(self, name: str) -> PartialObject | None:
        return find(self._source, NAMESPACES.metadata_only(), "", name)

    def variables(self, kind: SourceKind, namespace: str, name: str) -> PartialObject | None:
        resource = SECRETS if kind is SourceKind.SECRET else CONFIG_MAPS
        found = find(self._source, resource.metadata_only(), namespace, name)
        return found if found and keys.VARIABLES in found.metadata.labels else None

    def copied_identities(self, owner: Owner) -> Sequence[str]:
        marked = f"{keys.MIRRORED}={keys.TRUE}"
        found = self._source.list(SECRETS.metadata_only(), owner.namespace, labels=marked).items
        return [copied_identity(s) for s in found if owner.uid in users_of_copy(s)]

    def wrote(self, obj: TerraformObject) -> None:
        pass


def target_of(plan: TerraformPlan) -> tuple[str, str]:
    """Kind and name of the object that a plan is for."""
    return plan.spec.target_ref.kind, plan.spec.target_ref.name


def users_of_copy(secret: ApiObject) -> list[str]:
    """The UIDs of the objects that use a copy of an identity's Secret; none of any other Secret."""
    meta = secret.metadata
    if meta.labels.get(keys.MIRRORED) != keys.TRUE:
        return []
    return [reference.uid for reference in meta.owner_references]


def copied_identity(secret: ApiObject) -> str:
    """The identity that a copy is of."""
    return secret.metadata.annotations.get(keys.IDENTITY, "")


def _managed(labels: dict[str, str]) -> bool:
    return labels.get(keys.MANAGED) == keys.TRUE
