"""The informers of a manager, and a pass's cached reads from them
(manager.md: Caches and workers)."""

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, TypeVar

from captfctl.clock import Clock
from captfctl.cluster.door import Door
from captfctl.cluster.errors import ApiError, Forbidden, NotFound
from captfctl.controller import Informer
from captfctl.model import keys, names
from captfctl.model.capi import Cluster, Machine, MachinePool
from captfctl.model.core import Job, Lease, RoleBinding, ServiceAccount
from captfctl.model.identity import TerraformClusterIdentity
from captfctl.model.kinds import CLUSTER, MACHINE, MACHINE_POOL
from captfctl.model.meta import ApiObject, PartialObject
from captfctl.model.owner import Owner
from captfctl.model.plan import TerraformPlan
from captfctl.model.resource import Resource
from captfctl.model.resources import (
    CLUSTERS,
    CONFIG_MAPS,
    JOBS,
    LEASES,
    NAMESPACES,
    OWNERS,
    ROLE_BINDINGS,
    SECRETS,
    SERVICE_ACCOUNTS,
    TERRAFORM_CLUSTER_IDENTITIES,
    TERRAFORM_CLUSTERS,
    TERRAFORM_MACHINE_POOLS,
    TERRAFORM_MACHINE_TEMPLATES,
    TERRAFORM_MACHINES,
    TERRAFORM_PLANS,
)
from captfctl.model.subject import Subject
from captfctl.model.terraform import (
    IdentityKind,
    IdentityRef,
    TerraformCluster,
    TerraformObject,
)
from captfctl.reconcile.cache import copied_identity, target_of, users_of_copy
from captfctl.runs.jobs import is_finished
from captfctl.runs.reader import Key, slim
from captfctl.settings import ManagerSettings
from captfctl.terraform.contract.variables import SourceKind

BY_OWNER = "owner"
BY_CLUSTER = "cluster"
BY_LABEL = "label"
BY_IDENTITY = "identity"
BY_VARIABLES = "variables"
BY_PROGRESS = "progress"
BY_STATE = "state"
BY_COPY = "copy"
BY_LOCAL_SECRET = "local-secret"
BY_USER = "user"
BY_TARGET = "target"

_MANAGED = f"{keys.MANAGED}={keys.TRUE}"
# Backups are read when one is taken or restored; several of each object need not be in memory.
_MANAGED_SECRETS = f"{_MANAGED},!{keys.STATE_BACKUP}"
_IN_USE = f"{keys.IDENTITY_IN_USE}={keys.TRUE}"
_STATE_LOCKS = f"{_MANAGED},{keys.TFSTATE}={keys.TRUE}"
_VARIABLES = f"{keys.VARIABLES}={keys.TRUE}"
_STRAY = f"{keys.TFSTATE}={keys.TRUE},{keys.TFSTATE_SUFFIX},{keys.MANAGED}!={keys.TRUE}"

_WORKERS: dict[str, Resource[Any]] = {
    MACHINE.name: TERRAFORM_MACHINES,
    MACHINE_POOL.name: TERRAFORM_MACHINE_POOLS,
}

log = logging.getLogger(__name__)


def _owner_index(job: Job) -> Iterable[str]:
    meta = job.metadata
    kind, name = meta.labels.get(keys.OWNER_KIND), meta.labels.get(keys.OWNER_NAME)
    return (f"{meta.namespace}/{kind}/{name}",) if kind and name else ()


def _cluster_index(obj: ApiObject) -> Iterable[str]:
    label = obj.metadata.labels.get(keys.CLUSTER_NAME)
    return (f"{obj.metadata.namespace}/{label}",) if label else ()


def _label_index(obj: ApiObject) -> Iterable[str]:
    """By what stands for its name in labels, which a long name is not itself."""
    return (f"{obj.metadata.namespace}/{names.label_value(obj.metadata.name)}",)


_RUNNING = "running"


def _progress_index(job: Job) -> Iterable[str]:
    """Only what still runs, of all and of each group: limits and gauges count those, among
    thousands that have finished."""
    if is_finished(job):
        return ()
    return (_RUNNING, *(f"{_RUNNING}/{group}" for group in _cluster_index(job)))


def _state_index(secret: ApiObject) -> Iterable[str]:
    """Chunks of states, by the suffix that the backend selects them by."""
    meta = secret.metadata
    if meta.labels.get(keys.TFSTATE) != keys.TRUE:
        return ()
    return (f"{meta.namespace}/{meta.labels.get(keys.TFSTATE_SUFFIX, '')}",)


def _copy_index(secret: ApiObject) -> Iterable[str]:
    """Copies of credentials, by the identity that they are of."""
    meta = secret.metadata
    if meta.labels.get(keys.MIRRORED) != keys.TRUE:
        return ()
    return (meta.annotations.get(keys.IDENTITY, ""),)


def _identity_index(obj: TerraformObject) -> Iterable[str]:
    """The TerraformClusterIdentities that an object names."""
    return {ref.name for ref in _identity_refs(obj) if ref.kind is not IdentityKind.SECRET}


def local_secrets(obj: TerraformObject) -> Iterable[str]:
    """The Secrets of its namespace that an object names as identities."""
    refs = [ref for ref in _identity_refs(obj) if ref.kind is IdentityKind.SECRET]
    return {f"{obj.metadata.namespace}/{ref.name}" for ref in refs}


def _identity_refs(obj: TerraformObject) -> Iterable[IdentityRef]:
    """What it names for itself; a cluster also as its machines' default."""
    defaults = obj.spec.defaults if isinstance(obj, TerraformCluster) else None
    refs = (obj.spec.identity_ref, defaults.identity_ref if defaults else None)
    return (ref for ref in refs if ref is not None)


def _variables_index(obj: TerraformObject) -> Iterable[str]:
    found = set()
    for source in obj.spec.variables_from:
        if source.secret_ref is not None:
            found.add(f"{obj.metadata.namespace}/Secret/{source.secret_ref.name}")
        if source.config_map_ref is not None:
            found.add(f"{obj.metadata.namespace}/ConfigMap/{source.config_map_ref.name}")
    return found


def _target_index(plan: TerraformPlan) -> Iterable[str]:
    kind, name = target_of(plan)
    return (f"{plan.metadata.namespace}/{kind}/{name}",)


def _without_resources(plan: TerraformPlan) -> TerraformPlan:
    """The plan with what passes read of it: the addresses are most of it."""
    plan.spec.summary.resources = []
    return plan


T = TypeVar("T")


class Caches:
    """The informers by what they hold. Secrets and everything only counted: metadata alone."""

    def __init__(self, door: Door, settings: ManagerSettings, clock: Clock) -> None:
        self._door, self._settings, self._clock = door, settings, clock
        self._all: list[Informer[Any]] = []
        self.clusters = self._objects(TERRAFORM_CLUSTERS)
        self.capi_clusters = self._informer(CLUSTERS)
        self.own = {CLUSTER.name: self.clusters}
        self.owners = {CLUSTER.name: self.capi_clusters}
        for kind, resource in _WORKERS.items():
            owners = OWNERS[kind]
            if self._served(resource) and self._served(owners):
                self.own[kind] = self._objects(resource)
                self.owners[kind] = self._informer(owners)
        self.jobs = self._informer(
            JOBS,
            labels=_MANAGED,
            indexes={
                BY_OWNER: _owner_index,
                BY_CLUSTER: _cluster_index,
                BY_PROGRESS: _progress_index,
            },
            slim=slim,
        )
        self.secrets = self._informer(
            SECRETS.metadata_only(),
            labels=_MANAGED_SECRETS,
            indexes={BY_STATE: _state_index, BY_COPY: _copy_index, BY_USER: users_of_copy},
        )
        self.plans = self._informer(
            TERRAFORM_PLANS, indexes={BY_TARGET: _target_index}, slim=_without_resources
        )
        # Chunks by their names and labels alone: they would be no whole state.
        self.stray_chunks = self._informer(
            SECRETS.metadata_only(), labels=_STRAY, indexes={BY_STATE: _state_index}
        )
        self.local_secrets = self._informer(SECRETS.metadata_only(), labels=_IN_USE)
        self.state_locks = self._informer(LEASES, labels=_STATE_LOCKS)
        self.service_accounts = self._informer(SERVICE_ACCOUNTS, labels=_MANAGED)
        self.role_bindings = self._informer(ROLE_BINDINGS, labels=_MANAGED)
        self.variable_secrets = self._informer(SECRETS.metadata_only(), labels=_VARIABLES)
        self.variable_maps = self._informer(CONFIG_MAPS.metadata_only(), labels=_VARIABLES)
        self.namespaces = self._informer(NAMESPACES.metadata_only(), everywhere=True)
        self.identities = self._informer(TERRAFORM_CLUSTER_IDENTITIES, everywhere=True, resync=True)
        self.templates = (
            self._informer(TERRAFORM_MACHINE_TEMPLATES, resync=True)
            if self._served(TERRAFORM_MACHINE_TEMPLATES)
            else None
        )
        # Whatever their watch filter: another manager's machine blocks a deletion, too.
        self.dependents = [
            self.own[kind]
            if kind in self.own and not _watch_filter(settings)
            else self._informer(resource.metadata_only())
            for kind, resource in _WORKERS.items()
            if kind in self.own or self._served(resource)
        ]

    def _informer(
        self,
        resource: Resource[Any],
        *,
        labels: str = "",
        indexes: dict[str, Callable[[Any], Iterable[str]]] | None = None,
        slim: Callable[[Any], Any] | None = None,
        everywhere: bool = False,
        resync: bool = False,
    ) -> Informer[Any]:
        informer: Informer[Any] = Informer(
            self._door,
            resource,
            self._clock,
            namespace="" if everywhere else self._settings.namespace,
            labels=labels,
            indexes=indexes,
            slim=slim,
            resync_period=self._settings.sync_period.total_seconds() if resync else 0.0,
        )
        self._all.append(informer)
        return informer

    def _objects(self, resource: Resource[Any]) -> Informer[Any]:
        """The objects of one of our kinds."""
        return self._informer(
            resource,
            labels=_watch_filter(self._settings),
            indexes={
                BY_CLUSTER: _cluster_index,
                BY_IDENTITY: _identity_index,
                BY_LABEL: _label_index,
                BY_LOCAL_SECRET: local_secrets,
                BY_VARIABLES: _variables_index,
            },
            resync=True,
        )

    def _served(self, resource: Resource[Any]) -> bool:
        """Whether the kind is installed: an older installation lacks it, and never blocks on it."""
        try:
            self._door.list(resource, self._settings.namespace, limit=1)
        except NotFound:
            log.info("%s is not installed: none of its objects can block a deletion", resource.kind)
            return False
        except Forbidden as problem:
            log.warning("%s is not watched: %s", resource.kind, problem)
            return False
        except ApiError:
            return True  # a server that does not answer now is followed until it does
        return True

    def start(self) -> None:
        """Start every informer."""
        for informer in self._all:
            informer.start()

    def stop(self, timeout: float) -> bool:
        """Tell whether every informer ended. `timeout` in seconds, for all of them together."""
        until = self._clock.monotonic() + timeout
        ended = [i.stop(max(0.0, until - self._clock.monotonic())) for i in self._all]
        return all(ended)

    def running_jobs(self) -> Sequence[Job]:
        """Managed Jobs that have not finished, of everything this manager sees."""
        return self.jobs.by_index(BY_PROGRESS, _RUNNING)

    @property
    def synced(self) -> bool:
        """Whether every first list is there."""
        return all(informer.synced for informer in self._all)

    def silent(self, seconds: float) -> list[str]:
        """The resources of which nothing was heard for so long, with the reason when one is
        known."""
        return [_named(i) for i in self._all if i.silent_for > seconds]

    def idle(self, seconds: float) -> list[str]:
        """The resources that nobody has even tried to follow for so long."""
        return [i.resource.name for i in self._all if i.idle_for > seconds]

    def waiting_for(self) -> list[str]:
        """The resources whose first list is not there yet, with the reason when one is known."""
        return [_named(i) for i in self._all if not i.synced]


def _named(informer: Informer[Any]) -> str:
    name = informer.resource.name
    return f"{name} ({informer.last_error})" if informer.last_error else name


def _watch_filter(settings: ManagerSettings) -> str:
    return f"{keys.WATCH_FILTER}={settings.watch_filter}" if settings.watch_filter else ""


class InformerReader:
    """A `CacheReader` over the informers, which never goes back behind our own writes.

    Without that, the pass after a write would often see the object from before it, and its own
    write would be refused as outdated.
    """

    def __init__(self, caches: Caches) -> None:
        self._caches = caches
        self._lock = threading.Lock()
        self._written: dict[tuple[str, str, str], Any] = {}

    def own(self, resource: Resource[T], namespace: str, name: str) -> T | None:
        cached = self._caches.own[resource.kind].get(namespace, name)
        key = resource.kind, namespace, name
        with self._lock:
            written = self._written.get(key)
            if written is None:
                return cached
            if cached is not None and _is_older(cached, written):
                return resource.copy(written)
            del self._written[key]
            return cached

    def wrote(self, obj: TerraformObject) -> None:
        with self._lock:
            self._written[obj.kind, *obj.key] = obj

    def secret(self, namespace: str, name: str) -> PartialObject | None:
        return self._caches.secrets.get(namespace, name)

    def state_secrets(self, owner: Owner) -> Sequence[PartialObject]:
        value = f"{owner.namespace}/{owner.suffix}"
        return [
            *self._caches.secrets.by_index(BY_STATE, value),
            *self._caches.stray_chunks.by_index(BY_STATE, value),
        ]

    def state_lock(self, owner: Owner) -> Lease | None:
        return self._caches.state_locks.get(owner.namespace, names.state_lock(owner.suffix))

    def identity(self, name: str) -> TerraformClusterIdentity | None:
        return self._caches.identities.get("", name)

    def namespace(self, name: str) -> PartialObject | None:
        return self._caches.namespaces.get("", name)

    def variables(self, kind: SourceKind, namespace: str, name: str) -> PartialObject | None:
        caches = self._caches
        informer = caches.variable_secrets if kind is SourceKind.SECRET else caches.variable_maps
        return informer.get(namespace, name)

    def copied_identities(self, owner: Owner) -> Sequence[str]:
        found = self._caches.secrets.by_index(BY_USER, owner.uid)
        return [copied_identity(secret) for secret in found]

    def cluster(self, namespace: str, name: str) -> Cluster | None:
        return self._caches.capi_clusters.get(namespace, name)

    def machine(self, namespace: str, name: str) -> Machine | None:
        return self._caches.owners[MACHINE.name].get(namespace, name)

    def machine_pool(self, namespace: str, name: str) -> MachinePool | None:
        return self._caches.owners[MACHINE_POOL.name].get(namespace, name)

    def labelled_clusters(self, namespace: str, cluster: str) -> Sequence[TerraformCluster]:
        value = f"{namespace}/{names.label_value(cluster)}"
        return self._caches.clusters.by_index(BY_CLUSTER, value)

    def plans(self, owner: Owner) -> Sequence[TerraformPlan]:
        value = f"{owner.namespace}/{owner.kind}/{owner.name}"
        return self._caches.plans.by_index(BY_TARGET, value)

    def service_account(self, namespace: str, name: str) -> ServiceAccount | None:
        return self._caches.service_accounts.get(namespace, name)

    def role_binding(self, namespace: str, name: str) -> RoleBinding | None:
        return self._caches.role_bindings.get(namespace, name)

    def jobs_of(self, subject: Subject) -> Sequence[Job]:
        label = names.label_value(subject.name)
        key = f"{subject.namespace}/{subject.kind}/{label}"
        return self._caches.jobs.by_index(BY_OWNER, key)

    def group_jobs(self, namespace: str, group: str) -> Sequence[Job]:
        return self._caches.jobs.by_index(BY_CLUSTER, f"{namespace}/{names.label_value(group)}")

    def running_keys(self, namespace: str = "", group: str = "") -> Collection[Key]:
        of = f"{_RUNNING}/{namespace}/{names.label_value(group)}" if group else _RUNNING
        return self._caches.jobs.keys_by_index(BY_PROGRESS, of)

    def has_job(self, namespace: str, name: str) -> bool:
        return (namespace, name) in self._caches.jobs


def _is_older(cached: TerraformObject, written: TerraformObject) -> bool:
    """Whether the cache has yet to see what was written. Versions of one resource are numbers that
    grow (Kubernetes promises so since 1.35, and all servers did before)."""
    mine, theirs = written.metadata, cached.metadata
    if mine.uid != theirs.uid:
        return False
    try:
        return int(theirs.resource_version) < int(mine.resource_version)
    except ValueError:
        return False
