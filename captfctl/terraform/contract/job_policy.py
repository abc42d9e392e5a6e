"""What a Job policy may ask for (30 §3.3)."""

from collections.abc import Iterator, Mapping
from typing import Any

from captfctl.cluster.errors import Cause
from captfctl.model.job_policy import DEADLINE_SECONDS, LOCK_TIMEOUT_SECONDS, reserved_env
from captfctl.model.terraform import JobPolicy
from captfctl.terraform.contract.causes import forbidden, invalid

SELINUX_TYPES = frozenset(
    {"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"}
)
SYSCTLS = frozenset(
    {
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.ping_group_range",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_wmem",
    }
)

# Fields of a security context and the value that is refused.
_REFUSED: tuple[tuple[str, Any], ...] = (
    ("privileged", True),
    ("allowPrivilegeEscalation", True),
    ("readOnlyRootFilesystem", False),
    ("procMount", "Unmasked"),
    ("runAsNonRoot", False),
    ("runAsUser", 0),
    ("seccompProfile.type", "Unconfined"),
    ("appArmorProfile.type", "Unconfined"),
    ("windowsOptions.hostProcess", True),
)


def check_job_policy(policy: JobPolicy, path: str) -> Iterator[Cause]:
    """Every violation; `path` is where the policy stands, as `spec.jobs`."""
    yield from _check_times(policy, path)
    for index, entry in enumerate(policy.env):
        if reserved_env(entry.name):
            yield forbidden(
                f"{path}.env[{index}].name",
                f"{entry.name} is reserved: names that begin with TF_, KUBE_ or KUBERNETES_, and "
                "HOME, TMPDIR and CHECKPOINT_DISABLE are set by the Job",
            )
    if policy.security_context is not None:
        yield from _check_context(policy.security_context, f"{path}.securityContext")
    if policy.pod_security_context is not None:
        pod = f"{path}.podSecurityContext"
        yield from _check_context(policy.pod_security_context, pod)
        yield from _check_sysctls(policy.pod_security_context.get("sysctls"), f"{pod}.sysctls")


def _check_times(policy: JobPolicy, path: str) -> Iterator[Cause]:
    """A Job must not end while it still waits for the state lock."""
    deadline, lock = policy.active_deadline_seconds, policy.lock_timeout_seconds
    if not deadline and lock is None:
        return
    if lock is None and deadline <= LOCK_TIMEOUT_SECONDS:
        yield invalid(
            f"{path}.activeDeadlineSeconds",
            f"must be more than the default lock timeout of {LOCK_TIMEOUT_SECONDS} "
            "seconds, or set a shorter lockTimeoutSeconds too",
        )
    elif lock is not None and lock >= (deadline or DEADLINE_SECONDS):
        which = "activeDeadlineSeconds" if deadline else "the default deadline"
        yield invalid(
            f"{path}.lockTimeoutSeconds",
            f"must be less than {which} ({deadline or DEADLINE_SECONDS} seconds)",
        )


def _check_context(context: Mapping[str, Any], path: str) -> Iterator[Cause]:
    for field, refused in _REFUSED:
        value = _lookup(context, field)
        if value == refused and type(value) is type(refused):
            yield forbidden(f"{path}.{field}", f"{_text(refused)} is not allowed for a Job")
    added = _lookup(context, "capabilities.add")
    if added:
        yield forbidden(f"{path}.capabilities.add", "a Job may not be given more capabilities")
    yield from _check_selinux(context.get("seLinuxOptions"), f"{path}.seLinuxOptions")


def _check_selinux(options: Any, path: str) -> Iterator[Cause]:
    if not isinstance(options, Mapping):
        return
    if options.get("type", "") not in SELINUX_TYPES:
        known = ", ".join(sorted(SELINUX_TYPES - {""}))
        yield forbidden(f"{path}.type", f"must be one of {known}")
    for field in ("user", "role"):
        if options.get(field):
            yield forbidden(f"{path}.{field}", "may not be set for a Job")


def _check_sysctls(sysctls: Any, path: str) -> Iterator[Cause]:
    if not isinstance(sysctls, list):
        return
    for index, entry in enumerate(sysctls):
        name = entry.get("name") if isinstance(entry, Mapping) else None
        if name not in SYSCTLS:
            yield forbidden(f"{path}[{index}].name", "is not one of the sysctls a Job may set")


def _lookup(context: Mapping[str, Any], path: str) -> Any:
    value: Any = context
    for part in path.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(part)
    return value


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
