"""The runner's command line and environment in a Job (runs.md: Arguments of the runner)."""

from collections.abc import Mapping

from captfctl.model.core import EnvVar
from captfctl.model.job_policy import reserved_env
from captfctl.model.owner import Owner
from captfctl.terraform.job.policy import STOP_TIMEOUT_SECONDS, lock_timeout_seconds
from captfctl.terraform.job.run import RunSpec
from runner import wire


def hcl_map(entries: Mapping[str, str]) -> str:
    """An HCL object as the backend reads it from its arguments (state.md: Backend configuration).

    Raises `ValueError` for text that HCL would not take literally: valid label values never need
    an escape, so one that does is an attempt to write configuration.
    """
    for text in (*entries, *entries.values()):
        if any(mark in text for mark in ('"', "\\", "${", "%{")):
            raise ValueError(f"{text!r} cannot be given to the backend as a label")
    pairs = (f'"{key}"="{entries[key]}"' for key in sorted(entries, key=str.encode))
    return "{" + ",".join(pairs) + "}"


def backend_arguments(owner: Owner) -> list[str]:
    """The backend's configuration. It must never change for an existing object."""
    return [
        f"--backend-config=secret_suffix={owner.suffix}",
        f"--backend-config=namespace={owner.namespace}",
        "--backend-config=in_cluster_config=true",
        f"--backend-config=labels={hcl_map(owner.backend_labels)}",
    ]


def runner_arguments(run: RunSpec, *, events: bool) -> list[str]:
    """The arguments after `run`, in their order."""
    arguments = [
        f"--op={run.op}",
        f"--bin={wire.RUNTIME}",
        f"--image={run.image}",
        f"--module={wire.MODULE}",
        f"--providers={wire.PROVIDERS}",
        f"--workdir={wire.WORK}",
        f"--config={wire.CONFIG}",
        f"--lock-timeout={lock_timeout_seconds(run.policy)}s",
        f"--stop-timeout={STOP_TIMEOUT_SECONDS}s",
        *backend_arguments(run.owner),
    ]
    if run.force_unlock:
        arguments.append(f"--force-unlock={run.force_unlock}")
    arguments += _guard_arguments(run)
    if run.restore is not None:
        arguments += [
            f"--restore-chunks={len(run.restore.secrets)}",
            f"--restore-resources={run.restore.resources}",
        ]
    if run.unsaved:
        arguments.append(f"--unsaved-chunks={len(run.unsaved)}")
    if run.fingerprinted:
        arguments.append(f"--plan-key-file={wire.PLAN_KEY_FILE}")
    if events and run.owner.uid:
        arguments += [f"--event-object={run.owner.event_target}", f"--job-name={run.name}"]
    return arguments


def _guard_arguments(run: RunSpec) -> list[str]:
    if not run.guarded:
        return []
    arguments = ["--guard-deletes", f"--inputs-hash={run.approval_hash or run.inputs_hash}"]
    if run.allow_deletes:
        arguments.append(f"--allow-deletes-hash={run.allow_deletes}")
    if run.expect_plan:
        arguments.append(f"--expect-plan={run.expect_plan}")
    return arguments


def environment(run: RunSpec) -> list[EnvVar]:
    """The container's environment: ours, then what the policy adds and may set
    (runs.md: Environment of the runner)."""
    own = {
        "TF_IN_AUTOMATION": "1",
        "TF_INPUT": "0",
        "HOME": wire.WORK,
        "TMPDIR": "/tmp",  # noqa: S108  a volume of the pod
        "KUBE_NAMESPACE": run.owner.namespace,
        "CHECKPOINT_DISABLE": "1",
    }
    return [EnvVar(name=name, value=value) for name, value in own.items()] + [
        entry for entry in run.policy.env if not reserved_env(entry.name)
    ]
