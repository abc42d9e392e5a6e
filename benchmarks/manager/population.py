"""TerraformClusters that have nothing to do: applied long ago, everything recorded.

Nothing is run for them. The first is put together by hand and reconciled in this process until a
pass writes nothing; the status it has then is given to all others.
"""

import gzip
import json
import os
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, TypeVar

import msgspec

from captfctl.clock import SystemClock
from captfctl.cluster.errors import ApiError
from captfctl.cluster.live import LiveDoor
from captfctl.embedded.capi import capi_crds
from captfctl.manager.caches import Caches, InformerReader
from captfctl.manager.identity import IdentityReconciler
from captfctl.model import keys, names
from captfctl.model.capi import Cluster, ClusterSpec, InfrastructureRef
from captfctl.model.core import Namespace, Secret
from captfctl.model.crds import crds
from captfctl.model.identity import (
    AllowedNamespaces,
    SecretRef,
    TerraformClusterIdentity,
    TerraformClusterIdentitySpec,
)
from captfctl.model.kinds import CLUSTER, INFRASTRUCTURE, Role
from captfctl.model.meta import LabelSelector, ObjectMeta, OwnerReference
from captfctl.model.ops import Op
from captfctl.model.owner import Owner
from captfctl.model.resource import Resource
from captfctl.model.resources import (
    CLUSTERS,
    CRDS,
    JOBS,
    NAMESPACES,
    SECRETS,
    TERRAFORM_CLUSTER_IDENTITIES,
    TERRAFORM_CLUSTERS,
)
from captfctl.model.terraform import (
    ClusterDrift,
    ControlPlaneEndpoint,
    IdentityRef,
    Source,
    TerraformCluster,
    TerraformClusterSpec,
)
from captfctl.reconcile import runner_rbac
from captfctl.reconcile.cache import CacheReader, DoorCache
from captfctl.reconcile.env import Env
from captfctl.reconcile.events import NoRecorder
from captfctl.reconcile.metrics import NoMetrics
from captfctl.reconcile.passes import reconcile
from captfctl.runs.slots import Slots
from captfctl.settings import ManagerSettings
from captfctl.terraform.contract.build import SOURCE_MODULE, build_cluster_inputs
from captfctl.terraform.contract.hashing import inputs_hash
from captfctl.terraform.contract.render import render
from captfctl.terraform.contract.variables import merge_variables
from captfctl.terraform.job.build import RunnerSettings, build_job
from captfctl.terraform.job.policy import SERVICE_ACCOUNT
from captfctl.terraform.job.run import RunSpec
from captfctl.terraform.state.plan_key import ensure_plan_key
from captfctl.terraform.state.record_store import record_labels

T = TypeVar("T")

PER_NAMESPACE = 50
RUNNER_IMAGE = "registry.example.com/captfctl:bench"
IMAGE = "registry.example.com/modules/cluster:v1"
SYSTEM = "captf-system"
IDENTITY = "cloud"
VARIABLES = b'{"region":"eu-north","subnets":3}'
ENDPOINT = {"host": "api.example.com", "port": 6443}
RESOURCES_IN_STATE = 20
_WRITERS = 8
_PASSES = 10
_NEXT_DRIFT_CHECK = 86400
_PATIENCE = 120.0


@dataclass(frozen=True)
class Subject:
    """One object of the population, by what and where it is."""

    namespace: str
    name: str
    resource: Resource[Any] = TERRAFORM_CLUSTERS

    @property
    def key(self) -> tuple[str, str]:
        return self.namespace, self.name


def subjects(count: int) -> list[Subject]:
    return [
        Subject(f"team-{number // PER_NAMESPACE:03}", f"cluster-{number:05}")
        for number in range(count)
    ]


class Population:
    """Makes the objects through `door`, which may do everything."""

    def __init__(self, door: LiveDoor) -> None:
        self._door = door
        self._status: bytes = b""

    def make(self, wanted: Sequence[Subject]) -> None:
        self._install()
        namespaces = dict.fromkeys(subject.namespace for subject in wanted)
        first, rest = wanted[0], wanted[1:]
        with ThreadPoolExecutor(_WRITERS) as pool:
            _all(pool.map(self._namespace, [SYSTEM, *namespaces]))
            self._identity()
            prototype = self._subject(first)
            self._settle(first)
            self._remember_status(first, prototype)
            for namespace in namespaces:
                self._rights(namespace)
            made = list(pool.map(self._subject, rest))
            references: dict[str, list[OwnerReference]] = {name: [] for name in namespaces}
            for owner in [prototype, *made]:
                references[owner.namespace].append(_user(owner))
            _all(pool.map(partial(self._mirror, first.namespace), references.items()))
        self.settle(wanted)

    def settle(self, wanted: Sequence[Subject] = ()) -> None:
        """Let the identity name the namespaces that use it, and every object find nothing to do, as
        a manager that ran for a while leaves them."""
        clock = SystemClock()
        caches = Caches(self._door, ManagerSettings(runner_image=RUNNER_IMAGE), clock)
        caches.start()
        try:
            _until(lambda: caches.synced, "the caches are filled")
            for _ in range(2):  # the second time it tells what it wrote the first time
                IdentityReconciler(self._door, caches, clock, NoRecorder())(("", IDENTITY))
                _until(partial(_told, caches), "the identity tells the version of its Secret")
            env = self._env(InformerReader(caches))
            with ThreadPoolExecutor(_WRITERS) as pool:
                _all(pool.map(lambda one: reconcile(CLUSTER, one.key, env), wanted))
        finally:
            caches.stop(5.0)

    def _create(self, resource: Resource[T], obj: T, namespace: str = "") -> T:
        return self._door.create(resource, obj, namespace)

    def _install(self) -> None:
        for document in [*crds(), *capi_crds()]:
            self._create(CRDS.untyped(), document)
        kinds: tuple[Resource[Any], ...] = (
            CLUSTERS,
            TERRAFORM_CLUSTERS,
            TERRAFORM_CLUSTER_IDENTITIES,
        )
        for resource in kinds:
            request = partial(self._door.list, resource.untyped(), limit=1)
            _until(partial(_answers, request), f"{resource.name} are served")

    def _namespace(self, name: str) -> None:
        self._create(NAMESPACES, Namespace(metadata=ObjectMeta(name=name)))

    def _identity(self) -> None:
        secret = Secret(metadata=ObjectMeta(name=IDENTITY), type="Opaque", data={"TOKEN": b"none"})
        self._create(SECRETS, secret, SYSTEM)
        spec = TerraformClusterIdentitySpec(
            secret_ref=SecretRef(name=IDENTITY, namespace=SYSTEM),
            allowed_namespaces=AllowedNamespaces(selector=LabelSelector()),
        )
        identity = TerraformClusterIdentity(metadata=ObjectMeta(name=IDENTITY), spec=spec)
        self._create(TERRAFORM_CLUSTER_IDENTITIES, identity)

    def _subject(self, subject: Subject) -> Owner:
        """The object with its Cluster, its finished apply, its state and its records."""
        cluster = self._create(CLUSTERS, _cluster(subject), subject.namespace)
        obj = self._create(TERRAFORM_CLUSTERS, _object(subject, cluster), subject.namespace)
        owner = Owner(
            TERRAFORM_CLUSTERS.kind, *subject.key, obj.metadata.uid, cluster.metadata.name
        )
        run = _run(obj, cluster, owner)
        self._job(run)
        self._create(SECRETS, _state(run), subject.namespace)
        for secret in _records(run):
            self._create(SECRETS, secret, subject.namespace)
        ensure_plan_key(self._door, owner, os.urandom)
        if self._status:
            status = msgspec.json.decode(self._rewritten(owner, run))
            self._door.patch(
                TERRAFORM_CLUSTERS,
                subject.name,
                subject.namespace,
                {"status": status},
                subresource="status",
            )
        return owner

    def _job(self, run: RunSpec) -> None:
        job = build_job(run, RunnerSettings(image=RUNNER_IMAGE))
        job.metadata.annotations[keys.BOOKKEPT] = keys.TRUE
        self._create(JOBS, job, run.owner.namespace)
        end = datetime.now(UTC).replace(microsecond=0)
        conditions = [
            {
                "type": kind,
                "status": "True",
                "reason": "CompletionsReached",
                "lastTransitionTime": _rfc3339(end),
            }
            for kind in ("SuccessCriteriaMet", "Complete")
        ]
        status = {
            "startTime": _rfc3339(end - timedelta(minutes=1)),
            "completionTime": _rfc3339(end),
            "succeeded": 1,
            "ready": 0,
            "terminating": 0,
            "uncountedTerminatedPods": {},
            "conditions": conditions,
        }
        self._door.patch(
            JOBS, run.name, run.owner.namespace, {"status": status}, subresource="status"
        )

    def _settle(self, subject: Subject) -> None:
        """Reconcile until nothing is written any more."""
        env = self._env(DoorCache(self._door))
        version = ""
        for _ in range(_PASSES):
            reconcile(CLUSTER, subject.key, env)
            found = self._object(subject).metadata.resource_version
            if found == version:
                return
            version = found
        raise RuntimeError(f"{subject.name} still changes after {_PASSES} passes")

    def _env(self, cache: CacheReader) -> Env:
        settings = ManagerSettings(runner_image=RUNNER_IMAGE)
        return Env(
            door=self._door,
            cache=cache,
            clock=SystemClock(),
            settings=settings,
            recorder=NoRecorder(),
            metrics=NoMetrics(),
            random_bytes=lambda count: b"k" * count,
            slots=Slots(self._door, cache, SystemClock(), settings.max_active_jobs),
        )

    def _object(self, subject: Subject) -> TerraformCluster:
        return self._door.get(TERRAFORM_CLUSTERS, subject.name, subject.namespace)

    def _remember_status(self, subject: Subject, owner: Owner) -> None:
        obj = self._object(subject)
        ready = [c for c in obj.status.conditions if c.type == "Ready" and c.status == "True"]
        if not ready or obj.metadata.generation != 1:
            raise RuntimeError(f"the first object did not become what the others must be: {obj}")
        self._status, self._prototype = msgspec.json.encode(obj.status), owner

    def _rewritten(self, owner: Owner, run: RunSpec) -> bytes:
        """The first object's status as that of another one."""
        model = self._prototype
        last_run = msgspec.json.decode(self._status)["lastRun"]["job"]
        return (
            self._status.replace(last_run.encode(), run.name.encode())
            .replace(model.suffix.encode(), owner.suffix.encode())
            .replace(model.name.encode(), owner.name.encode())
        )

    def _rights(self, namespace: str) -> None:
        runner_rbac.ensure(self._door, DoorCache(self._door), namespace, SERVICE_ACCOUNT)

    def _mirror(self, made_in: str, users: tuple[str, list[OwnerReference]]) -> None:
        """The namespace's copy of the credentials, with all its users."""
        namespace, references = users
        name = names.credentials_mirror(IDENTITY)
        mirror = self._door.get(SECRETS, name, made_in)
        if namespace == made_in:
            mirror.metadata.owner_references = references
            self._door.update(SECRETS, mirror)
            return
        meta = ObjectMeta(
            name=name,
            labels=mirror.metadata.labels,
            annotations=mirror.metadata.annotations,
            owner_references=references,
        )
        secret = Secret(metadata=meta, type=mirror.type, data=mirror.data)
        self._create(SECRETS, secret, namespace)


def _all(results: Iterable[object]) -> None:
    """Wait for a pool's results; the first error is raised."""
    for _ in results:
        pass


def _told(caches: Caches) -> bool:
    identity = caches.identities.get("", IDENTITY)
    return identity is not None and bool(identity.status.secret_version)


def _until(check: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not check():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {_PATIENCE:.0f} s: {what}")
        time.sleep(0.1)


def _answers(request: Callable[[], object]) -> bool:
    """Whether a definition that was just created is served."""
    try:
        request()
    except ApiError:
        return False
    return True


def _rfc3339(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _user(owner: Owner) -> OwnerReference:
    reference = owner.owner_reference()
    reference.block_owner_deletion = False
    return reference


def _cluster(subject: Subject) -> Cluster:
    ref = InfrastructureRef(
        api_group=INFRASTRUCTURE, kind=TERRAFORM_CLUSTERS.kind, name=subject.name
    )
    return Cluster(metadata=ObjectMeta(name=subject.name), spec=ClusterSpec(infrastructure_ref=ref))


def _object(subject: Subject, cluster: Cluster) -> TerraformCluster:
    reference = OwnerReference(
        api_version=CLUSTERS.api_version,
        kind=CLUSTERS.kind,
        name=cluster.metadata.name,
        uid=cluster.metadata.uid,
    )
    return TerraformCluster(
        metadata=ObjectMeta(
            name=subject.name,
            namespace=subject.namespace,
            labels={keys.CLUSTER_NAME: cluster.metadata.name},
            annotations={keys.ENDPOINT_SOURCE: SOURCE_MODULE},
            owner_references=[reference],
            finalizers=[CLUSTER.finalizer],
        ),
        spec=TerraformClusterSpec(
            source=Source(image=IMAGE),
            identity_ref=IdentityRef(name=IDENTITY),
            variables=msgspec.Raw(VARIABLES),
            drift=ClusterDrift(interval_seconds=_NEXT_DRIFT_CHECK),
            control_plane_endpoint=ControlPlaneEndpoint(**ENDPOINT),  # type: ignore[arg-type]
        ),
    )


def _run(obj: TerraformCluster, cluster: Cluster, owner: Owner) -> RunSpec:
    """The apply that made it what it is, with the hash that a pass computes."""
    variables = merge_variables(Role.CLUSTER, obj.spec.variables, [])
    inputs = build_cluster_inputs(obj, cluster, None).inputs
    return RunSpec(
        owner=owner,
        op=Op.APPLY,
        attempt=1,
        inputs_hash=inputs_hash(IMAGE, inputs, variables),
        image=IMAGE,
        files=render(inputs, variables).data(),
        credentials_secret=names.credentials_mirror(IDENTITY),
        identity=IDENTITY,
        state_lock_version="none",
    )


def _state(run: RunSpec) -> Secret:
    owner = run.owner
    resources = [
        {"mode": "managed", "type": "terraform_data", "name": f"r{number}", "instances": [{}]}
        for number in range(RESOURCES_IN_STATE)
    ]
    document = {
        "version": 4,
        "terraform_version": "1.9.8",
        "serial": 1,
        "lineage": owner.uid,
        "outputs": {name: {"value": value, "type": "string"} for name, value in _outputs().items()},
        "resources": resources,
    }
    labels = {
        **owner.backend_labels,
        keys.TFSTATE: keys.TRUE,
        keys.TFSTATE_SUFFIX: owner.suffix,
        keys.TFSTATE_WORKSPACE: "default",
    }
    meta = ObjectMeta(
        name=names.state_secret(owner.suffix),
        labels=labels,
        annotations={keys.INPUTS_HASH: run.inputs_hash},
        owner_references=[owner.owner_reference()],
        finalizers=[keys.STATE_PROTECTION],
    )
    payload = gzip.compress(json.dumps(document).encode())
    return Secret(metadata=meta, type="Opaque", data={keys.TFSTATE: payload})


def _outputs() -> dict[str, Any]:
    return {
        "control_plane_endpoint": ENDPOINT,
        "failure_domains": [
            {"name": f"eu-north-{zone}", "control_plane": True} for zone in ("a", "b", "c")
        ],
        "exports": {"network_id": "net-1", "region": "eu-north"},
        "health": {"state": "running", "healthy": True, "message": None, "reasons": []},
    }


def _records(run: RunSpec) -> Iterable[Secret]:
    owner = run.owner
    for name in (
        names.attempt_record(owner.kind, owner.name),
        names.applied_record(owner.kind, owner.name),
    ):
        notes = {
            keys.IMAGE: run.image,
            keys.IDENTITY: run.identity,
            keys.INPUTS_HASH: run.inputs_hash,
            keys.JOB: run.name,
            keys.APPLIED: keys.TRUE,
        }
        meta = ObjectMeta(
            name=name,
            labels=record_labels(owner),
            annotations=notes,
            owner_references=[owner.owner_reference()],
            finalizers=[keys.STATE_PROTECTION],
        )
        yield Secret(metadata=meta, type="Opaque", data=dict(run.files))
