"""Plays Job controller, kubelet and runner: a Job's end as a real run would leave it.

It writes what Terraform's `kubernetes` backend writes (state.md: State Secrets): state Secrets and
the lock Lease.
"""

import gzip
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from captfctl.clock import Clock
from captfctl.cluster.door import Door
from captfctl.cluster.errors import NotFound
from captfctl.model import keys, names
from captfctl.model.core import (
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    Job,
    JobCondition,
    Lease,
    LeaseSpec,
    Pod,
    PodStatus,
    Secret,
)
from captfctl.model.meta import ObjectMeta, OwnerReference, whole_seconds
from captfctl.model.resources import JOBS, LEASES, PODS, SECRETS
from runner import wire

OUTPUTS: Mapping[str, Any] = {
    "control_plane_endpoint": {"host": "api.example.com", "port": 6443},
    "exports": {"network_id": "net-1"},
    "failure_domains": [{"name": "zone-a"}],
    "health": {"state": "running", "healthy": True},
}

STEPS = {
    "apply": ["init", "validate", "plan", "apply"],
    "plan": ["init", "validate", "plan"],
    "destroy": ["init", "destroy"],
    "refresh": ["init", "apply-refresh-only"],
    "drift": ["init", "apply-refresh-only", "plan"],
    "restore": ["init", "state-push", "state-list"],
}


class FakeRunner:
    def __init__(self, door: Door, clock: Clock) -> None:
        self._door, self._clock = door, clock

    # A run's parts.

    def start(self, job: Job, node: str = "node-1") -> Pod:
        """The pod runs on `node`."""
        name = f"{job.metadata.name}-x7k2p"
        labels = {**job.spec.template.metadata.labels, keys.JOB_NAME: job.metadata.name}
        reference = OwnerReference(
            api_version="batch/v1",
            kind="Job",
            name=job.metadata.name,
            uid=job.metadata.uid,
            controller=True,
        )
        pod = self._door.create(
            PODS,
            Pod(
                api_version="v1",
                kind="Pod",
                metadata=ObjectMeta(
                    name=name,
                    namespace=job.metadata.namespace,
                    labels=labels,
                    owner_references=[reference],
                    finalizers=list(job.spec.template.metadata.finalizers),
                ),
                spec=msgspec.structs.replace(job.spec.template.spec, node_name=node),
            ),
            job.metadata.namespace,
        )
        now = whole_seconds(self._clock.now())
        pod.status = PodStatus(
            phase="Running",
            start_time=now,
            container_statuses=[
                ContainerStatus(
                    name="source",
                    image=pod.spec.containers[0].image,
                    image_id=f"registry.example.com/cluster-module@sha256:{'a' * 64}",
                    restart_count=0,
                    state=ContainerState(running=ContainerStateRunning(started_at=now)),
                )
            ],
        )
        self._show_active(job, now)
        return self._door.update(PODS, pod, subresource="status")

    def _show_active(self, job: Job, now: datetime) -> None:
        live = self._door.get(JOBS, job.metadata.name, job.metadata.namespace)
        live.status.start_time = now
        live.status.active = 1
        self._door.update(JOBS, live, subresource="status")

    def wait_for_image(self, job: Job, reason: str, message: str) -> Pod:
        """The pod waits for its image."""
        pod = self.start(job)
        waiting = ContainerStateWaiting(reason=reason, message=message)
        pod.status.phase = "Pending"
        pod.status.container_statuses[0].state = ContainerState(waiting=waiting)
        return self._door.update(PODS, pod, subresource="status")

    def lock(
        self, job: Job, held: bool = True, who: str = "", operation: str = "OperationTypeApply"
    ) -> None:
        """Take or give back the state lock, as the backend does."""
        name = names.state_lock(suffix_of(job))
        lease = self._find(LEASES, name, job.metadata.namespace)
        info = {
            "ID": f"lock-of-{job.metadata.name}",
            "Operation": operation,
            "Who": who or f"captf@{job.metadata.name}-x7k2p",
            "Created": "2026-09-25T12:00:00Z",
        }
        annotations = {keys.LOCK_INFO: json.dumps(info)} if held else {}
        holder = info["ID"] if held else ""
        if lease is None:
            lease = Lease(
                api_version=LEASES.api_version,
                kind=LEASES.kind,
                metadata=ObjectMeta(
                    name=name,
                    namespace=job.metadata.namespace,
                    labels=backend_labels(job),
                    annotations=annotations,
                ),
                spec=LeaseSpec(holder_identity=holder),
            )
            self._door.create(LEASES, lease, job.metadata.namespace)
            return
        lease.metadata.annotations, lease.spec.holder_identity = annotations, holder
        self._door.update(LEASES, lease)

    def take_lock(self, job: Job) -> None:
        """Take the state lock and give it back, as every command does that works with the state;
        nothing while somebody holds it."""
        lease = self._find(LEASES, names.state_lock(suffix_of(job)), job.metadata.namespace)
        if lease is None or not lease.spec.holder_identity:
            self.lock(job)
            self.lock(job, held=False)

    def write_state(self, job: Job, outputs: Mapping[str, Any], resources: int = 1) -> None:
        """One more serial of the state, in one Secret."""
        self.take_lock(job)
        name = names.state_secret(suffix_of(job))
        found = self._find(SECRETS, name, job.metadata.namespace)
        payload = state_payload(self._serial(found) + 1, outputs, resources)
        if found is not None:
            found.data[keys.TFSTATE] = payload
            self._door.update(SECRETS, found)
            return
        secret = Secret(
            api_version="v1",
            kind="Secret",
            type="Opaque",
            metadata=ObjectMeta(
                name=name,
                namespace=job.metadata.namespace,
                labels={
                    **backend_labels(job),
                    keys.TFSTATE: "true",
                    keys.TFSTATE_SUFFIX: suffix_of(job),
                    keys.TFSTATE_WORKSPACE: "default",
                    "app.kubernetes.io/managed-by": "terraform",
                },
                annotations={"encoding": "gzip"},
            ),
            data={keys.TFSTATE: payload},
        )
        self._door.create(SECRETS, secret, job.metadata.namespace)

    def push_backup(self, job: Job) -> None:
        """What `state push -force` leaves: the content of the backup that the Job mounts."""
        self.take_lock(job)
        namespace = job.metadata.namespace
        payload = b"".join(
            self._door.get(SECRETS, name, namespace).data[keys.TFSTATE]
            for name in backup_secrets(job)
        )
        gzip.decompress(payload)
        name = names.state_secret(suffix_of(job))
        found = self._find(SECRETS, name, namespace)
        if found is None:
            self.write_state(job, {})
            found = self._door.get(SECRETS, name, namespace)
        found.data[keys.TFSTATE] = payload
        self._door.update(SECRETS, found)
        part = names.state_secret(suffix_of(job), 1)
        if self._find(SECRETS, part, namespace) is not None:
            self._door.delete(SECRETS, part, namespace)

    def resources(self, job: Job) -> int:
        """How many resources the state of the Job's object tells of."""
        secret = self._find(SECRETS, names.state_secret(suffix_of(job)), job.metadata.namespace)
        if secret is None:
            return 0
        return len(json.loads(gzip.decompress(secret.data[keys.TFSTATE]))["resources"])

    def _serial(self, secret: Secret | None) -> int:
        if secret is None:
            return 0
        return int(json.loads(gzip.decompress(secret.data[keys.TFSTATE]))["serial"])

    # A run's end.

    def succeed(
        self,
        job: Job,
        outputs: Mapping[str, Any] = OUTPUTS,
        **result: Any,
    ) -> None:
        op = job.metadata.labels[keys.OP]
        if op == "destroy":
            self.write_state(job, {}, resources=0)
        elif op == "restore":
            self.push_backup(job)
        elif op != "plan":
            self.write_state(job, outputs)
        self.end(job, ok=True, result={"op": op, **result})

    def fail(
        self, job: Job, step: str = "apply", kind: str = "step", *, applied: bool = False
    ) -> None:
        """The runner's own report of a failing step. `applied`: state was written."""
        if applied:
            self.write_state(job, {})
        op = job.metadata.labels[keys.OP]
        steps = STEPS[op]
        reached = steps[: steps.index(step) + 1] if step in steps else steps[:1]
        error = {"kind": kind, "step": step, "tail": f"Error: {step} did not work"}
        result = {"op": op, "steps": _steps(reached, failed=True), "error": error}
        self.end(job, ok=False, result=result)

    def end(
        self,
        job: Job,
        *,
        ok: bool,
        result: Mapping[str, Any] | None,
        reason: str = "",
        pod: bool = True,
    ) -> None:
        """`result` None: the pod ended without telling. `pod` False: there is none any more."""
        if pod:
            self._end_pod(job, ok=ok, result=result)
        else:
            self._remove_pod(job)
        live = self._door.get(JOBS, job.metadata.name, job.metadata.namespace)
        now = whole_seconds(self._clock.now())
        live.status.active = 0
        live.status.conditions = [
            JobCondition(
                type="Complete" if ok else "Failed",
                status="True",
                reason=reason,
                last_transition_time=now,
            )
        ]
        if ok:
            live.status.completion_time = now
        self._door.update(JOBS, live, subresource="status")

    def _end_pod(self, job: Job, *, ok: bool, result: Mapping[str, Any] | None) -> None:
        name, namespace = f"{job.metadata.name}-x7k2p", job.metadata.namespace
        pod = self._find(PODS, name, namespace) or self.start(job)
        message = ""
        if result is not None:
            steps = STEPS[job.metadata.labels[keys.OP]]
            document = {"version": 1, "steps": _steps(steps, failed=False), **result}
            message = json.dumps(document)
        now = whole_seconds(self._clock.now())
        status = pod.status.container_statuses[0]
        started = status.state.running.started_at if status.state and status.state.running else now
        status.state = ContainerState(
            terminated=ContainerStateTerminated(
                exit_code=0 if ok else 1, message=message, started_at=started, finished_at=now
            )
        )
        pod.status.phase = "Succeeded" if ok else "Failed"
        self._door.update(PODS, pod, subresource="status")

    def forget_pod(self, job: Job) -> None:
        """The pod of an earlier Job of the name makes room: real ones have names of their own."""
        name, namespace = f"{job.metadata.name}-x7k2p", job.metadata.namespace
        if self._find(PODS, name, namespace) is not None:
            self._door.patch(PODS, name, namespace, {"metadata": {"finalizers": None}})
            self._remove_pod(job)

    def _remove_pod(self, job: Job) -> None:
        name, namespace = f"{job.metadata.name}-x7k2p", job.metadata.namespace
        if self._find(PODS, name, namespace) is not None:
            # By hand: nothing of Kubernetes removes it before it was read.
            self._door.patch(PODS, name, namespace, {"metadata": {"finalizers": None}})
            self._door.delete(PODS, name, namespace, grace_period_seconds=0)

    def _find(self, resource: Any, name: str, namespace: str) -> Any:
        try:
            return self._door.get(resource, name, namespace)
        except NotFound:
            return None


def state_payload(serial: int, outputs: Mapping[str, Any], resources: int) -> bytes:
    document = {
        "version": 4,
        "terraform_version": "1.9.0",
        "serial": serial,
        "lineage": "0e0f0000-0000-4000-8000-000000000000",
        "outputs": {name: {"value": value, "type": "string"} for name, value in outputs.items()},
        "resources": [{"mode": "managed", "type": "t", "name": str(i)} for i in range(resources)],
    }
    return gzip.compress(json.dumps(document).encode(), mtime=0)


def backup_secrets(job: Job) -> list[str]:
    """The Secrets of the backup that a restore's pod mounts, in order."""
    (config,) = [v for v in job.spec.template.spec.volumes if v.name == "config"]
    assert config.projected is not None
    items = {
        item.path: source.secret.name
        for source in config.projected.sources
        if source.secret is not None
        for item in source.secret.items
    }
    chunks = [path for path in items if path.startswith(f"{wire.RESTORE_DIRECTORY}/")]
    return [items[path] for path in sorted(chunks, key=lambda path: int(path.split("/")[1]))]


def suffix_of(job: Job) -> str:
    labels = job.metadata.labels
    owner = job.metadata.controller
    assert owner is not None
    return names.state_suffix(labels[keys.OWNER_KIND], job.metadata.namespace, owner.name)


def backend_labels(job: Job) -> dict[str, str]:
    wanted = (keys.OWNER_KIND, keys.OWNER_NAME, keys.MANAGED, keys.CLUSTER_NAME)
    return {key: job.metadata.labels[key] for key in wanted} | {keys.MOVE: ""}


def _steps(steps: list[str], *, failed: bool) -> list[dict[str, Any]]:
    return [
        {"name": name, "exit": int(failed and name == steps[-1]), "seconds": 0.1} for name in steps
    ]
