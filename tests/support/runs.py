"""A small world with one `TerraformCluster`, for tests of its Jobs and its state."""

import gzip
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeVar

from captfctl.cluster.door import Door
from captfctl.model import capi, core, keys, names
from captfctl.model.meta import ObjectMeta, OwnerReference
from captfctl.model.ops import Op
from captfctl.model.owner import Owner
from captfctl.model.resource import Resource
from captfctl.model.resources import (
    CLUSTERS,
    JOBS,
    LEASES,
    NAMESPACES,
    PODS,
    SECRETS,
    TERRAFORM_CLUSTERS,
)
from captfctl.model.terraform import IdentityRef, Source, TerraformCluster, TerraformClusterSpec
from captfctl.runs.leases import Leases
from captfctl.runs.reader import DoorJobs
from captfctl.runs.slots import Slots
from captfctl.runs.start import Starter
from captfctl.terraform.job.build import RunnerSettings, build_job, build_run_secret
from captfctl.terraform.job.run import RunSpec
from captfctl.terraform.job.work import TerraformWork
from tests.support.clock import FakeClock
from tests.support.prepared_store import prepared_store

T = TypeVar("T")

NAMESPACE = "team-a"
RUNNER = RunnerSettings(image="registry.test/captf/manager:v1")
FILES = {"main.tf.json": b"{}", "terraform.tfvars.json": b'{"a":1}'}
IMAGE = "registry.test/modules/cluster:v1"
DIGEST = "sha256:" + "ab" * 32


def fixed_bytes(count: int) -> bytes:
    return b"k" * count


class World:
    """The objects and what works on them. `clock` stands still until a test moves it."""

    def __init__(self, *, gate: bool = True, name: str = "prod") -> None:
        self.clock = FakeClock()
        self.door = prepared_store(self.clock).door()
        for namespace in (NAMESPACE, "team-b"):
            self.door.create(NAMESPACES, core.Namespace(metadata=ObjectMeta(name=namespace)))
        self.gate = gate
        self.owner = self.add_cluster(name)

    def add_cluster(self, name: str) -> Owner:
        stored = self.door.create(
            TERRAFORM_CLUSTERS,
            TerraformCluster(
                api_version=TERRAFORM_CLUSTERS.api_version,
                kind="TerraformCluster",
                metadata=ObjectMeta(name=name, namespace=NAMESPACE),
                spec=TerraformClusterSpec(
                    source=Source(image=IMAGE), identity_ref=IdentityRef(name="main")
                ),
            ),
            NAMESPACE,
        )
        self.door.create(
            CLUSTERS,
            capi.Cluster(
                api_version=CLUSTERS.api_version,
                kind="Cluster",
                metadata=ObjectMeta(name=name, namespace=NAMESPACE),
            ),
            NAMESPACE,
        )
        return Owner("TerraformCluster", NAMESPACE, name, stored.metadata.uid, name)

    def machine(self, name: str) -> Owner:
        """A machine of the cluster; only its identity matters here."""
        return Owner("TerraformMachine", NAMESPACE, name, f"uid-{name}", self.owner.cluster)

    @property
    def reader(self) -> DoorJobs:
        return DoorJobs(self.door)

    @property
    def leases(self) -> Leases:
        return Leases(self.door, self.reader, self.clock, gate=self.gate)

    @property
    def starter(self) -> Starter:
        return Starter(self.door, self.leases, self.slots(), self.clock)

    def slots(self, limit: int = 0) -> Slots:
        return Slots(self.door, self.reader, self.clock, limit)

    def work(self, run: RunSpec, door: Door | None = None) -> TerraformWork:
        return TerraformWork(door or self.door, run, RUNNER, fixed_bytes)

    def run(self, op: Op = Op.APPLY, attempt: int = 1, **facts: Any) -> RunSpec:
        return run_spec(facts.pop("owner", self.owner), op, attempt, **facts)

    def acquire(self, run: RunSpec) -> Any:
        return self.leases.acquire(run.run)

    def add_job(
        self, run: RunSpec, *, age: float = 0, annotations: Mapping[str, str] | None = None
    ) -> core.Job:
        """A Job as if started `age` seconds ago, without leases and Secrets."""
        job = build_job(run, RUNNER)
        job.metadata.annotations.update(annotations or {})
        return self._created_ago(age, JOBS, job)

    def finish(
        self,
        job: core.Job,
        *,
        ok: bool = True,
        reason: str = "",
        at: float = 0,
    ) -> core.Job:
        """End the Job `at` seconds from now (negative: ago)."""
        moment = self.clock.now() + timedelta(seconds=at)
        condition = {
            "type": "Complete" if ok else "Failed",
            "status": "True",
            "reason": reason,
            "lastTransitionTime": moment.isoformat(),
        }
        patch = {"status": {"conditions": [condition], "startTime": moment.isoformat()}}
        return self.door.patch(JOBS, job.metadata.name, NAMESPACE, patch, subresource="status")

    def add_pod(
        self,
        job: core.Job,
        *,
        phase: str = "Succeeded",
        message: str | Mapping[str, Any] | None = None,
        state: core.ContainerState | None = None,
        image_id: str = "",
        age: float = 0,
        name: str = "",
        init: core.ContainerState | None = None,
    ) -> core.Pod:
        """A pod of the Job; `message` is the termination message of the module's container."""
        if message is not None:
            text = message if isinstance(message, str) else json.dumps(message)
            state = core.ContainerState(
                terminated=core.ContainerStateTerminated(exit_code=0, message=text)
            )
        pod = core.Pod(
            api_version="v1",
            kind="Pod",
            metadata=ObjectMeta(
                name=name or f"{job.metadata.name}-x7k2p",
                namespace=NAMESPACE,
                labels={**job.metadata.labels, keys.JOB_NAME: job.metadata.name},
                owner_references=[
                    OwnerReference(
                        api_version="batch/v1",
                        kind="Job",
                        name=job.metadata.name,
                        uid=job.metadata.uid,
                        controller=True,
                    )
                ],
            ),
            spec=job.spec.template.spec,
            status=core.PodStatus(
                phase=phase,
                container_statuses=[
                    core.ContainerStatus(
                        name="source", image=IMAGE, image_id=image_id, state=state, restart_count=0
                    )
                ],
                init_container_statuses=[
                    core.ContainerStatus(name="runner", state=init, restart_count=0)
                ],
            ),
        )
        created = self._created_ago(age, PODS, pod)
        created.status = pod.status
        return self.door.update(PODS, created, subresource="status")

    def _created_ago(self, age: float, resource: Resource[T], obj: T) -> T:
        """Servers stamp the time of creation themselves, so the time has to be another one."""
        self.clock.advance(-age)
        created = self.door.create(resource, obj, NAMESPACE)
        self.clock.advance(age)
        return created

    def add_run_secret(self, run: RunSpec, job: core.Job) -> core.Secret:
        return self.door.create(SECRETS, build_run_secret(run, job), NAMESPACE)

    def finished(
        self,
        op: Op = Op.APPLY,
        attempt: int = 1,
        *,
        ok: bool = True,
        reason: str = "",
        result: Mapping[str, Any] | None = None,
        pod: bool = True,
        at: float = 0,
        secret: bool = True,
        image_id: str = "",
        annotations: Mapping[str, str] | None = None,
        **facts: Any,
    ) -> core.Job:
        """A finished Job with everything that a run leaves behind."""
        run = self.run(op, attempt, **facts)
        job = self.add_job(run, age=120 - at, annotations=annotations)
        if secret:
            self.add_run_secret(run, job)
        if pod:
            body = result if result is not None else run_result(op, ok=ok)
            phase = "Succeeded" if ok else "Failed"
            self.add_pod(job, phase=phase, message=body, image_id=image_id)
        return self.finish(job, ok=ok, reason=reason, at=at)

    def exists(self, resource: Any, name: str) -> bool:
        return any(
            obj.metadata.name == name
            for obj in self.door.list(resource.metadata_only(), NAMESPACE).items
        )

    def lease(self, name: str) -> core.Lease:
        return self.door.get(LEASES, name, NAMESPACE)

    def lease_names(self) -> list[str]:
        return [lease.metadata.name for lease in self.door.list(LEASES, NAMESPACE).items]

    def job_names(self) -> list[str]:
        return [job.metadata.name for job in self.door.list(JOBS, NAMESPACE).items]

    def pods(self) -> list[core.Pod]:
        return self.door.list(PODS, NAMESPACE).items

    def patch_pod(
        self, pod: core.Pod, patch: Mapping[str, Any], *, subresource: str = "status"
    ) -> core.Pod:
        return self.door.patch(PODS, pod.metadata.name, NAMESPACE, patch, subresource=subresource)

    def object(self) -> TerraformCluster:
        return self.door.get(TERRAFORM_CLUSTERS, self.owner.name, NAMESPACE)

    def add_state(
        self, document: Mapping[str, Any] | None = None, *, chunks: int = 1, **annotations: str
    ) -> None:
        """The object's state, split over `chunks` Secrets."""
        body = {"version": 4, "serial": 1, "lineage": "l", **(document or {})}
        payload = gzip.compress(json.dumps(body).encode())
        size = -(-len(payload) // chunks)
        for index in range(chunks):
            part = payload[index * size : (index + 1) * size]
            notes = {} if index else annotations
            self.add_chunk(names.state_secret(self.owner.suffix, index), part, **notes)

    def add_chunk(self, name: str, payload: bytes | None, **annotations: str) -> core.Secret:
        return self.door.create(
            SECRETS,
            core.Secret(
                api_version="v1",
                kind="Secret",
                metadata=ObjectMeta(
                    name=name,
                    namespace=NAMESPACE,
                    labels={
                        **self.owner.backend_labels,
                        keys.TFSTATE: "true",
                        keys.TFSTATE_SUFFIX: self.owner.suffix,
                        keys.TFSTATE_WORKSPACE: "default",
                    },
                    annotations=annotations,
                ),
                data={} if payload is None else {keys.TFSTATE: payload},
            ),
            NAMESPACE,
        )


def run_spec(owner: Owner, op: Op = Op.APPLY, attempt: int = 1, **facts: Any) -> RunSpec:
    run = RunSpec(
        owner=owner,
        op=op,
        attempt=attempt,
        inputs_hash="h2:abc",
        image=IMAGE,
        files=FILES,
        credentials_secret="captf-creds-main",
        identity="main",
    )
    return replace(run, **facts)


def run_result(
    op: Op,
    *,
    ok: bool = True,
    kind: str = "step",
    steps: tuple[str, ...] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """A result document of the runner."""
    done = steps if steps is not None else ("init", "validate", op.value)
    return {
        "version": 1,
        "op": op.value,
        "image": {"ref": IMAGE, "providersMirror": False},
        "runtime": {"command": ["/captf/runtime"], "version": "1.9.0"},
        "steps": [{"name": step, "exit": 0 if ok else 1, "seconds": 1.5} for step in done],
        "drift": None,
        "error": None if ok else {"kind": kind, "step": done[-1] if done else None, "tail": "boom"},
        **more,
    }
