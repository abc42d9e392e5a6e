"""From a decided run to its Job and per-run Secret (runs.md: The Job)."""

from dataclasses import dataclass
from typing import Any

import msgspec

from captfctl.model import keys, names
from captfctl.model.core import (
    Container,
    EmptyDir,
    EnvFromSource,
    Job,
    JobSpec,
    KeyToPath,
    LocalObjectReference,
    PodSpec,
    PodTemplate,
    ProjectedVolume,
    Resources,
    Secret,
    SecretEnvSource,
    SecretProjection,
    SecretVolume,
    Volume,
    VolumeMount,
    VolumeProjection,
)
from captfctl.model.meta import ObjectMeta, OwnerReference
from captfctl.model.ops import Op
from captfctl.model.resources import JOBS
from captfctl.model.terraform import JobPolicy
from captfctl.terraform.job.arguments import environment, runner_arguments
from captfctl.terraform.job.policy import GRACE_SECONDS, deadline_seconds, service_account
from captfctl.terraform.job.run import RunSpec
from runner import wire

RUNNER_CONTAINER = "runner"
SOURCE_CONTAINER = "source"

_RUNNER_DIRECTORY = wire.RUNNER_FILE.rpartition("/")[0]
_READ_MODE = 0o440
_USER = 65532
_ANSWERS_PLAN = (Op.APPLY, Op.PLAN)
_DEFAULT_RESOURCES = Resources(
    requests={"cpu": "250m", "memory": "2Gi", "ephemeral-storage": "1Gi"},
    limits={"memory": "2Gi"},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerSettings:
    """The manager's own settings that reach every Job.

    `image` holds the runner; `events` is `--runner-events`.
    """

    image: str
    events: bool = True


def build_job(run: RunSpec, settings: RunnerSettings) -> Job:
    """The Job of a run.

    Raises `ValueError` when the object's names cannot be given to the backend.
    """
    return Job(
        api_version=JOBS.api_version,
        kind=JOBS.kind,
        metadata=ObjectMeta(
            name=run.name,
            namespace=run.owner.namespace,
            labels=job_labels(run),
            annotations=_job_annotations(run),
            owner_references=[run.owner.owner_reference(controller=True)],
        ),
        spec=JobSpec(
            backoff_limit=0,
            active_deadline_seconds=deadline_seconds(run.policy),
            template=PodTemplate(
                metadata=ObjectMeta(
                    labels=job_labels(run),
                    annotations=_pod_annotations(run),
                    finalizers=[keys.UNREAD_RESULT],
                ),
                spec=_pod(run, settings),
            ),
        ),
    )


def build_run_secret(run: RunSpec, job: Job) -> Secret:
    """The Secret that the Job's pod mounts (runs.md: The per-run Secret). `job` is the created one:
    it has a UID."""
    annotations = {
        keys.IMAGE: run.image,
        keys.IDENTITY: run.identity,
        keys.IDENTITY_KIND: _written_kind(run),
        keys.INPUTS_HASH: run.inputs_hash,
    }
    return Secret(
        api_version="v1",
        kind="Secret",
        metadata=ObjectMeta(
            name=names.run_secret(job.metadata.name),
            namespace=job.metadata.namespace,
            labels={keys.MANAGED: keys.TRUE},
            annotations={key: value for key, value in annotations.items() if value},
            owner_references=[
                OwnerReference(
                    api_version=JOBS.api_version,
                    kind=JOBS.kind,
                    name=job.metadata.name,
                    uid=job.metadata.uid,
                )
            ],
        ),
        type="Opaque",
        data=dict(run.files),
    )


def job_labels(run: RunSpec) -> dict[str, str]:
    """The labels of the Job and of its pod (metadata.md: On Jobs, pods, Secrets and Leases)."""
    return {**run.owner.run_labels, keys.OP: run.op.value, keys.ATTEMPT: str(run.attempt)}


def _written_kind(run: RunSpec) -> str:
    """`captf.io/identity-kind` is written for a Secret only
    (metadata.md: Annotations of Secrets and Leases)."""
    return run.identity_kind.value if run.identity_kind == "Secret" else ""


def _job_annotations(run: RunSpec) -> dict[str, str]:
    wanted: dict[str, str] = {}
    if run.op in _ANSWERS_PLAN:
        wanted[keys.INPUTS_HASH] = run.inputs_hash
    if run.op is Op.APPLY:
        wanted |= {
            keys.STATE_LOCK_VERSION: run.state_lock_version,
            keys.DRIFT_REMEDIATION: keys.TRUE if run.drift_remediation else "",
            keys.AFTER_FAILED_APPLY: keys.TRUE if run.after_failed_apply else "",
            keys.AFTER_INTERRUPTED_APPLY: run.after_interrupted_apply,
            keys.APPROVED_PLAN: run.expect_plan,
            keys.PLAN: run.plan,
            keys.APPROVAL_HASH: run.approval_hash,
            keys.CLUSTER_OUTPUTS_HASH: run.exports_hash,
        }
    if run.op not in _ANSWERS_PLAN and run.fallback_images:
        wanted[keys.IMAGE_FALLBACKS] = msgspec.json.encode(run.fallback_images).decode()
    wanted[keys.GENERATION] = str(run.generation) if run.generation else ""
    wanted |= run.extra_annotations
    present = {key: value for key, value in wanted.items() if value}
    if run.restore is not None:
        present[keys.RESTORE_SERIAL] = str(run.restore.serial)
        present[keys.INPUTS_HASH] = run.inputs_hash  # an empty one says: the backup had none
    return present


def _pod_annotations(run: RunSpec) -> dict[str, str]:
    return {keys.SAFE_TO_EVICT: "false"} if run.op.mutating else {}


def _pod(run: RunSpec, settings: RunnerSettings) -> PodSpec:
    return PodSpec(
        restart_policy="Never",
        termination_grace_period_seconds=GRACE_SECONDS,
        service_account_name=service_account(run.policy),
        image_pull_secrets=_pull_secrets(run.policy),
        security_context=_pod_security(run.policy),
        init_containers=[_runner_container(settings)],
        containers=[_source_container(run, settings)],
        volumes=_volumes(run),
    )


def _pull_secrets(policy: JobPolicy) -> list[LocalObjectReference]:
    wanted = dict.fromkeys(reference.name for reference in policy.image_pull_secrets)
    return [LocalObjectReference(name=name) for name in wanted if name]


def _pod_security(policy: JobPolicy) -> dict[str, Any]:
    return {
        "fsGroup": _USER,
        "seccompProfile": {"type": "RuntimeDefault"},
        **(policy.pod_security_context or {}),
    }


def _runner_container(settings: RunnerSettings) -> Container:
    """Puts the runner where the module's image finds it."""
    return Container(
        name=RUNNER_CONTAINER,
        image=settings.image,
        command=["/runner", "copy", wire.RUNNER_FILE],
        resources=Resources(
            requests={"cpu": "10m", "memory": "32Mi"}, limits={"cpu": "100m", "memory": "64Mi"}
        ),
        volume_mounts=[VolumeMount(name="runner", mount_path=_RUNNER_DIRECTORY)],
        security_context={
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "runAsUser": _USER,
        },
    )


def _source_container(run: RunSpec, settings: RunnerSettings) -> Container:
    return Container(
        name=SOURCE_CONTAINER,
        image=run.image,
        image_pull_policy=run.image_pull_policy,
        command=[wire.RUNNER_FILE, "run"],
        args=runner_arguments(run, events=settings.events),
        env=environment(run),
        env_from=[EnvFromSource(secret_ref=SecretEnvSource(name=run.credentials_secret))],
        resources=run.policy.resources or _DEFAULT_RESOURCES,
        termination_message_policy="File",
        volume_mounts=_mounts(run),
        security_context=_source_security(run.policy),
    )


def _source_security(policy: JobPolicy) -> dict[str, Any]:
    own = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }
    context = own | (policy.security_context or {})
    capabilities = context.get("capabilities")
    if isinstance(capabilities, dict):
        dropped = list(capabilities.get("drop") or [])
        if "ALL" not in dropped:
            dropped.insert(0, "ALL")
        context["capabilities"] = capabilities | {"drop": dropped}
    return context


def _volumes(run: RunSpec) -> list[Volume]:
    volumes = [
        Volume(name="runner", empty_dir=EmptyDir(size_limit="128Mi")),
        Volume(name="work", empty_dir=EmptyDir(size_limit="8Gi")),
        Volume(name="tmp", empty_dir=EmptyDir(size_limit="1Gi")),
        _config_volume(run),
        Volume(name="creds", secret=_secret_volume(run.credentials_secret)),
    ]
    if run.fingerprinted:
        key = KeyToPath(key=wire.PLAN_KEY_NAME, path=wire.PLAN_KEY_NAME)
        name = names.plan_key(run.owner.kind, run.owner.name)
        volumes.append(
            Volume(
                name="plan-key",
                secret=SecretVolume(secret_name=name, items=[key], default_mode=_READ_MODE),
            )
        )
    return volumes


def _secret_volume(name: str) -> SecretVolume:
    return SecretVolume(secret_name=name, default_mode=_READ_MODE)


def _config_volume(run: RunSpec) -> Volume:
    inputs = names.run_secret(run.name)
    backup = run.restore.secrets if run.restore is not None else ()
    sources = [
        *(_chunk(name, wire.RESTORE_DIRECTORY, part) for part, name in enumerate(backup)),
        *(_chunk(name, wire.UNSAVED_DIRECTORY, part) for part, name in enumerate(run.unsaved)),
    ]
    if not sources:
        return Volume(name="config", secret=_secret_volume(inputs))
    sources.insert(0, VolumeProjection(secret=SecretProjection(name=inputs)))
    return Volume(
        name="config", projected=ProjectedVolume(sources=sources, default_mode=_READ_MODE)
    )


def _chunk(secret: str, directory: str, index: int) -> VolumeProjection:
    item = KeyToPath(key=keys.TFSTATE, path=f"{directory}/{index}")
    return VolumeProjection(secret=SecretProjection(name=secret, items=[item]))


def _mounts(run: RunSpec) -> list[VolumeMount]:
    mounts = [
        VolumeMount(name="runner", mount_path=_RUNNER_DIRECTORY, read_only=True),
        VolumeMount(name="work", mount_path=wire.WORK),
        VolumeMount(name="tmp", mount_path="/tmp"),  # noqa: S108  a volume of the pod
        VolumeMount(name="config", mount_path=wire.CONFIG, read_only=True),
        VolumeMount(name="creds", mount_path="/var/run/captf/credentials", read_only=True),
    ]
    if run.fingerprinted:
        mounts.append(
            VolumeMount(name="plan-key", mount_path=wire.PLAN_KEY_DIRECTORY, read_only=True)
        )
    return mounts
