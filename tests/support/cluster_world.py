"""A namespace with one cluster in an in-memory store, for tests of the pass, the manager and the
simulation: objects go in, a pass runs, objects and events come out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, ClassVar

import msgspec

from captfctl.cluster.door import Door
from captfctl.cluster.errors import NotFound
from captfctl.controller import Result
from captfctl.model import keys
from captfctl.model.capi import Cluster, ClusterSpec, InfrastructureRef
from captfctl.model.conditions import find
from captfctl.model.core import Job, Lease, Namespace, Pod, Secret
from captfctl.model.events import Note
from captfctl.model.identity import (
    AllowedNamespaces,
    SecretRef,
    TerraformClusterIdentity,
    TerraformClusterIdentitySpec,
)
from captfctl.model.kinds import CLUSTER, INFRASTRUCTURE, Kind
from captfctl.model.meta import ApiObject, Condition, LabelSelector, ObjectMeta, OwnerReference
from captfctl.model.owner import Owner
from captfctl.model.resource import Resource
from captfctl.model.resources import (
    CLUSTERS,
    JOBS,
    LEASES,
    NAMESPACES,
    PODS,
    SECRETS,
    TERRAFORM_CLUSTER_IDENTITIES,
    TERRAFORM_CLUSTERS,
)
from captfctl.model.terraform import (
    IdentityRef,
    Source,
    TerraformCluster,
    TerraformClusterSpec,
)
from captfctl.reconcile.cache import CacheReader, DoorCache
from captfctl.reconcile.env import Env
from captfctl.reconcile.metrics import NoMetrics
from captfctl.reconcile.passes import reconcile
from captfctl.runs.slots import Slots
from captfctl.settings import PassSettings
from tests.support.clock import FakeClock
from tests.support.fake_runner import FakeRunner
from tests.support.prepared_store import prepared_store

NAMESPACE = "team-a"
NAME = "prod"
KEY = (NAMESPACE, NAME)
IMAGE = "registry.example.com/cluster-module:v1"
RUNNER_IMAGE = "registry.example.com/captf-manager:v1"


class MemoryRecorder:
    """Keeps what would have been posted."""

    def __init__(self) -> None:
        self.notes: list[Note] = []

    def record(self, regarding: ApiObject, note: Note) -> None:
        self.notes.append(note)

    @property
    def reasons(self) -> list[str]:
        return [note.reason for note in self.notes]

    def warnings(self) -> list[str]:
        return [note.reason for note in self.notes if note.warning]

    def clear(self) -> None:
        self.notes.clear()


class CountingMetrics(NoMetrics):
    """Keeps what would have been counted."""

    def __init__(self) -> None:
        self.runs: list[str] = []
        self.uids: list[str] = []
        self.waits: list[str] = []
        self.decisions: list[tuple[str, str]] = []
        self.forgotten: list[str] = []
        self.backups: list[str] = []
        self.restores: list[str] = []
        self.gauges: dict[str, Any] = {}
        self.plans: list[str] = []

    def run_finished(self, kind, run):
        self.runs.append(run.run.name)
        self.uids.append(run.run.job.metadata.uid)

    def lease_wait(self, kind, reason):
        self.waits.append(reason)

    def decided(self, kind, op, reason):
        self.decisions.append((op, reason))

    def state_backup(self, kind, result):
        self.backups.append(result)

    def state_restore(self, kind, result):
        self.restores.append(result)

    def plan_moved(self, kind, result, *, destructive):
        self.plans.append(result)

    def show(self, kind, namespace, name, gauges):
        self.gauges[name] = gauges

    def forget(self, kind, namespace, name):
        self.forgotten.append(name)


@dataclass
class World:
    """`writes` are the calls that changed something since `forget_writes`."""

    clock: FakeClock = field(default_factory=FakeClock)
    settings: PassSettings = field(default_factory=lambda: PassSettings(runner_image=RUNNER_IMAGE))
    key: tuple[str, str] = KEY

    kind: ClassVar[Kind] = CLUSTER
    resource: ClassVar[Resource[Any]] = TERRAFORM_CLUSTERS

    def __post_init__(self) -> None:
        self.store = prepared_store(self.clock)
        self.door: Door = self.store.door()
        self.writes = Writes(self.door)
        self.events = MemoryRecorder()
        self.metrics = CountingMetrics()
        self.runner = FakeRunner(self.door, self.clock)
        self.cache: CacheReader = DoorCache(self.door)

    # What people and Cluster API make.

    def populate(self) -> "World":
        """Namespace, credentials, identity, Cluster and object, tied together."""
        self.create(NAMESPACES, Namespace(metadata=ObjectMeta(name=NAMESPACE)))
        self.create(NAMESPACES, Namespace(metadata=ObjectMeta(name="captf-system")))
        self.create(
            SECRETS,
            Secret(
                metadata=ObjectMeta(name="cloud", namespace="captf-system"),
                type="Opaque",
                data={"TOKEN": b"s3cr3t"},
            ),
        )
        self.create(TERRAFORM_CLUSTER_IDENTITIES, identity())
        owner = self.create(CLUSTERS, cluster())
        self.create(TERRAFORM_CLUSTERS, terraform_cluster(owner))
        return self

    def look_at_credentials(self) -> None:
        """What the identity's controller does: tell the version of the Secret with them."""
        version = self.door.get(SECRETS, "cloud", "captf-system").metadata.resource_version
        status = {"status": {"secretVersion": version}}
        self.door.patch(TERRAFORM_CLUSTER_IDENTITIES, "cloud", "", status, subresource="status")

    def create(self, resource: Resource[Any], obj: Any) -> Any:
        obj.api_version, obj.kind = resource.api_version, resource.kind
        return self.door.create(resource, obj, obj.metadata.namespace)

    def edit(self, change: Callable[[Any], None]) -> Any:
        """Change the object as a person would."""
        obj = self.obj
        change(obj)
        return self.door.update(self.resource, obj)

    def edit_cluster(self, change: Callable[[Cluster], None]) -> Cluster:
        owner = self.door.get(CLUSTERS, NAME, NAMESPACE)
        change(owner)
        return self.door.update(CLUSTERS, owner)

    def delete(self) -> None:
        self.door.delete(self.resource, self.key[1], self.key[0])

    # Passes.

    def env(self, door: Door | None = None, cache: CacheReader | None = None) -> Env:
        door, cache = door or self.writes, cache or self.cache
        return Env(
            door=door,
            cache=cache,
            clock=self.clock,
            settings=self.settings,
            recorder=self.events,
            metrics=self.metrics,
            random_bytes=bytes,
            slots=Slots(door, cache, self.clock, self.settings.max_active_jobs),
        )

    def run(self, env: Env | None = None) -> Result:
        """One pass."""
        return reconcile(self.kind, self.key, env or self.env())

    def settle(self, passes: int = 4) -> Result:
        """Passes without anything happening in between."""
        result = Result()
        for _ in range(passes):
            result = self.run()
        return result

    def apply(self, **result: Any) -> Job:
        """From a fresh object to a first apply that finished well and was read."""
        self.settle(2)
        job = self.active_job()
        self.runner.succeed(job, **result)
        self.settle(2)
        return job

    def advance(self, **delta: float) -> None:
        self.clock.advance(timedelta(**delta).total_seconds())

    # What came out.

    @property
    def obj(self) -> Any:
        return self.door.get(self.resource, self.key[1], self.key[0])

    @property
    def gone(self) -> bool:
        try:
            self.door.get(self.resource, self.key[1], self.key[0])
        except NotFound:
            return True
        return False

    @property
    def owner(self) -> Owner:
        obj = self.obj
        return Owner(self.kind.name, *self.key, obj.metadata.uid, NAME)

    def condition(self, kind: str) -> Condition:
        found = find(self.obj.status.conditions, kind)
        assert found is not None, f"no condition {kind}"
        return found

    def reason(self, kind: str) -> str:
        """`<status>/<reason>`; empty without the condition."""
        found = find(self.obj.status.conditions, kind)
        return f"{found.status}/{found.reason}" if found else ""

    def jobs(self) -> list[Job]:
        found = self.door.list(JOBS, NAMESPACE).items
        return sorted(found, key=lambda job: job.metadata.name)

    def job_ops(self) -> list[str]:
        return [job.metadata.labels[keys.OP] for job in self.jobs()]

    def running(self) -> list[Job]:
        return [job for job in self.jobs() if not job.status.conditions]

    def active_job(self) -> Job:
        (job,) = self.running()
        return job

    def lose_job(self) -> Job:
        """The Job of the running apply, which took the state lock and is gone without a word."""
        job = self.active_job()
        self.runner.take_lock(job)
        self.door.delete(JOBS, job.metadata.name, NAMESPACE)
        return job

    def leases(self) -> list[Lease]:
        """Ours, not Terraform's."""
        return self.door.list(LEASES, NAMESPACE, labels=keys.LEASE).items

    def secret(self, name: str) -> Secret | None:
        try:
            return self.door.get(SECRETS, name, NAMESPACE)
        except NotFound:
            return None

    def secrets(self) -> list[str]:
        return [item.metadata.name for item in self.door.list(SECRETS, NAMESPACE).items]

    def pods(self) -> list[Pod]:
        return self.door.list(PODS, NAMESPACE).items


class Writes:
    """A door that counts the writes that go through it."""

    METHODS = ("create", "update", "patch", "delete")

    def __init__(self, door: Door) -> None:
        self._door = door
        self.seen: list[str] = []

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._door, name)
        if name not in self.METHODS:
            return method

        def counted(resource: Resource[Any], *args: Any, **options: Any) -> Any:
            self.seen.append(f"{name} {resource.plural}")
            return method(resource, *args, **options)

        return counted

    def forget(self) -> None:
        self.seen.clear()


def cluster(name: str = NAME, namespace: str = NAMESPACE) -> Cluster:
    return Cluster(
        metadata=ObjectMeta(name=name, namespace=namespace),
        spec=ClusterSpec(
            infrastructure_ref=InfrastructureRef(
                api_group=INFRASTRUCTURE, kind="TerraformCluster", name=name
            )
        ),
    )


def terraform_cluster(owner: Cluster | None = None, **spec: Any) -> TerraformCluster:
    """`owner` as created: its UID goes into the owner reference, its name is the object's."""
    meta = ObjectMeta(name=NAME, namespace=NAMESPACE)
    if owner is not None:
        meta.name, meta.namespace = owner.metadata.name, owner.metadata.namespace
        meta.labels[keys.CLUSTER_NAME] = owner.metadata.name
        meta.owner_references.append(owner_reference(owner))
    wanted: dict[str, Any] = {
        "source": Source(image=IMAGE),
        "identity_ref": IdentityRef(name="cloud"),
        "variables": msgspec.Raw(b'{"region":"eu-1"}'),
    }
    return TerraformCluster(metadata=meta, spec=TerraformClusterSpec(**(wanted | spec)))


def owner_reference(owner: Cluster) -> OwnerReference:
    return OwnerReference(
        api_version=CLUSTERS.api_version,
        kind="Cluster",
        name=owner.metadata.name,
        uid=owner.metadata.uid,
    )


def identity(**spec: Any) -> TerraformClusterIdentity:
    wanted: dict[str, Any] = {
        "secret_ref": SecretRef(name="cloud", namespace="captf-system"),
        "allowed_namespaces": AllowedNamespaces(selector=LabelSelector()),
    }
    return TerraformClusterIdentity(
        metadata=ObjectMeta(name="cloud"), spec=TerraformClusterIdentitySpec(**(wanted | spec))
    )


def annotated(changes: Mapping[str, str | None]) -> Callable[[ApiObject], None]:
    """An edit that sets annotations, or removes those that are None."""

    def change(obj: ApiObject) -> None:
        for key, value in changes.items():
            if value is None:
                obj.metadata.annotations.pop(key, None)
            else:
                obj.metadata.annotations[key] = value

    return change


def variables(text: str) -> Callable[[TerraformCluster], None]:
    def change(obj: TerraformCluster) -> None:
        obj.spec.variables = msgspec.Raw(text.encode())

    return change


def at(start: datetime, **delta: float) -> datetime:
    return start + timedelta(**delta)
