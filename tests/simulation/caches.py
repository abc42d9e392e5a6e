"""A manager's caches that fall behind and catch up when the simulation says so."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from captfctl.cluster.door import Door
from captfctl.model import keys, names
from captfctl.model.capi import Cluster
from captfctl.model.core import Job
from captfctl.model.kinds import KINDS
from captfctl.model.meta import PartialObject
from captfctl.model.owner import Owner
from captfctl.model.plan import TerraformPlan
from captfctl.model.resource import Resource
from captfctl.model.resources import (
    CLUSTERS,
    JOBS,
    LEASES,
    MACHINE_POOLS,
    MACHINES,
    NAMESPACES,
    ROLE_BINDINGS,
    SECRETS,
    SERVICE_ACCOUNTS,
    TERRAFORM_CLUSTER_IDENTITIES,
    TERRAFORM_CLUSTERS,
    TERRAFORM_MACHINE_POOLS,
    TERRAFORM_MACHINES,
    TERRAFORM_PLANS,
)
from captfctl.model.terraform import TerraformObject
from captfctl.reconcile.cache import copied_identity, target_of, users_of_copy
from captfctl.runs.jobs import is_finished

Key = tuple[str, str]

FOLLOWED: tuple[Resource[Any], ...] = (
    TERRAFORM_CLUSTERS,
    TERRAFORM_MACHINES,
    TERRAFORM_MACHINE_POOLS,
    MACHINES,
    MACHINE_POOLS,
    CLUSTERS,
    JOBS,
    SERVICE_ACCOUNTS,
    ROLE_BINDINGS,
    SECRETS.metadata_only(),
    LEASES,
    TERRAFORM_CLUSTER_IDENTITIES,
    NAMESPACES.metadata_only(),
    TERRAFORM_PLANS,
)


class LaggingCache:
    """A `CacheReader`. Each resource shows the moment of its last `catch_up`."""

    def __init__(self, door: Door, *, own_writes: bool) -> None:
        self._door = door
        self._own_writes = own_writes
        self._seen: dict[str, dict[Key, Any]] = {r.plural: {} for r in FOLLOWED}
        self._written: dict[tuple[str, str, str], TerraformObject] = {}

    def catch_up(self, resource: Resource[Any]) -> Iterator[Key]:
        """See everything of one resource; the objects that this wakes."""
        old = self._seen[resource.plural]
        new = {item.key: item for item in self._door.list(resource).items}
        self._seen[resource.plural] = new
        for key in old.keys() | new.keys():
            before, after = old.get(key), new.get(key)
            if before is None or after is None or _version(before) != _version(after):
                yield from _wakes(resource, after or before)
                yield from self._members(resource, after or before)

    def _members(self, resource: Resource[Any], obj: Any) -> Iterator[Key]:
        """The machines and pools of a Cluster that changed, or whose infrastructure did."""
        if resource.kind in ("Cluster", "TerraformCluster"):
            for kind in (TERRAFORM_MACHINES, TERRAFORM_MACHINE_POOLS):
                for key in self._seen[kind.plural]:
                    if key[0] == obj.metadata.namespace:
                        yield key

    def _get(self, resource: Resource[Any], namespace: str, name: str) -> Any:
        return self._seen[resource.plural].get((namespace, name))

    def own(self, resource: Resource[Any], namespace: str, name: str) -> Any:
        cached = self._get(resource, namespace, name)
        written = self._written.get((resource.kind, namespace, name))
        if cached is None:
            return None
        if written is None or cached.metadata.uid != written.metadata.uid:
            return resource.copy(cached)
        newer = written if _version(cached) < _version(written) else cached
        return resource.copy(newer)

    def wrote(self, obj: TerraformObject) -> None:
        if self._own_writes:
            self._written[obj.kind, *obj.key] = obj

    def plans(self, owner: Owner) -> Sequence[TerraformPlan]:
        return [
            TERRAFORM_PLANS.copy(plan)
            for plan in self._seen[TERRAFORM_PLANS.plural].values()
            if (plan.metadata.namespace, *target_of(plan))
            == (owner.namespace, owner.kind, owner.name)
        ]

    def secret(self, namespace: str, name: str):
        return self._get(SECRETS, namespace, name)

    def state_lock(self, owner: Owner):
        return self._get(LEASES, owner.namespace, names.state_lock(owner.suffix))

    def identity(self, name: str):
        return self._get(TERRAFORM_CLUSTER_IDENTITIES, "", name)

    def namespace(self, name: str):
        return self._get(NAMESPACES, "", name)

    def variables(self, kind: object, namespace: str, name: str) -> None:
        """Nothing here has a source of variables."""

    def state_secrets(self, owner: Owner) -> Sequence[PartialObject]:
        return [
            secret
            for (namespace, name), secret in sorted(self._seen[SECRETS.plural].items())
            if namespace == owner.namespace
            and secret.metadata.labels.get(keys.TFSTATE) == keys.TRUE
            and secret.metadata.labels.get(keys.TFSTATE_SUFFIX) == owner.suffix
        ]

    def copied_identities(self, owner: Owner) -> Sequence[str]:
        secrets = self._seen[SECRETS.plural].values()
        return [copied_identity(secret) for secret in secrets if owner.uid in users_of_copy(secret)]

    def cluster(self, namespace: str, name: str) -> Cluster | None:
        return self._get(CLUSTERS, namespace, name)

    def machine(self, namespace: str, name: str):
        return self._get(MACHINES, namespace, name)

    def machine_pool(self, namespace: str, name: str):
        return self._get(MACHINE_POOLS, namespace, name)

    def labelled_clusters(self, namespace: str, cluster: str) -> Sequence[Any]:
        return [
            obj
            for key, obj in self._seen[TERRAFORM_CLUSTERS.plural].items()
            if key[0] == namespace and obj.metadata.labels.get(keys.CLUSTER_NAME) == cluster
        ]

    def service_account(self, namespace: str, name: str):
        return self._get(SERVICE_ACCOUNTS, namespace, name)

    def role_binding(self, namespace: str, name: str):
        return self._get(ROLE_BINDINGS, namespace, name)

    def jobs_of(self, owner: Owner) -> Sequence[Job]:
        return [
            job
            for job in self._seen[JOBS.plural].values()
            if job.metadata.namespace == owner.namespace
            and owner.labels.items() <= job.metadata.labels.items()
        ]

    def group_jobs(self, namespace: str, group: str) -> Sequence[Job]:
        label = names.label_value(group)
        return [
            job
            for job in self._seen[JOBS.plural].values()
            if job.metadata.namespace == namespace
            and job.metadata.labels.get(keys.CLUSTER_NAME) == label
        ]

    def running_keys(self, namespace: str = "", group: str = "") -> Collection[Key]:
        jobs = self.group_jobs(namespace, group) if group else self._seen[JOBS.plural].values()
        return [job.key for job in jobs if not is_finished(job)]

    def has_job(self, namespace: str, name: str) -> bool:
        return (namespace, name) in self._seen[JOBS.plural]


def _version(obj: Any) -> int:
    return int(obj.metadata.resource_version)


def _wakes(resource: Resource[Any], obj: Any) -> Iterator[Key]:
    namespace = obj.metadata.namespace
    if resource.kind in KINDS:
        yield obj.key
    elif resource.kind in ("Cluster", "Machine"):
        yield namespace, obj.spec.infrastructure_ref.name
    elif resource.kind == "MachinePool":
        yield namespace, obj.spec.template.spec.infrastructure_ref.name
    else:
        for reference in obj.metadata.owner_references:
            if reference.kind in KINDS:
                yield namespace, reference.name
