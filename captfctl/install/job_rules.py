"""What admission refuses in a Job policy (api.md: Admission)."""

from captfctl.install.policy_parts import Helper, Rule, changed, has, problem, text, texts
from captfctl.model.job_policy import (
    DEADLINE_SECONDS,
    LOCK_TIMEOUT_SECONDS,
    RESERVED_ENV,
    RESERVED_ENV_PREFIXES,
)

_CONTEXTS = ("securityContext", "podSecurityContext")


def _collected(path: str, field: str, item: str, *, among: str = "") -> str:
    """CEL: a list with `item`, or with one for each of `among`, where the policy at `path` is one
    to be asked about and has `field`."""
    asked = f"variables.jobPolicies.exists(p, p.path == {text(path)})"
    there = has(f"object.{path}", field)
    found = f"{among}.map(i, {item})" if among else f"[{item}]"
    return f"({asked} && {there} ? {found} : [])"


def _at(path: str, name: str, value: str) -> str:
    """CEL: `value` under `name`, and where it stands."""
    # The values of one map must have one type, and what an object holds has none.
    return f"{{'path': dyn({text(path)}), '{name}': {value}}}"


def job_policies(*paths: str) -> tuple[Helper, ...]:
    """Every Job policy of an object, at `paths`, and of it what has rules.

    Rescue is never locked out: none is asked about while the object is being deleted.
    """
    policies = [
        f"({changed(path)} ? [{_at(path, 'policy', f'object.{path}')}] : [])" for path in paths
    ]
    environment = [
        _collected(
            path,
            "env",
            _at(f"{path}.env", "name", "i.name"),
            among=f"object.{path}.env",
        )
        for path in paths
    ]
    contexts = [
        _collected(
            path,
            name,
            _at(f"{path}.{name}", "context", f"object.{path}.{name}"),
        )
        for path in paths
        for name in _CONTEXTS
    ]
    return (
        Helper(
            name="jobPolicies",
            expression=f"has(object.metadata.deletionTimestamp) ? [] : {' + '.join(policies)}",
        ),
        Helper(name="environment", expression=" + ".join(environment)),
        Helper(name="securityContexts", expression=" + ".join(contexts)),
        Helper(name="sysctls", expression=" + ".join(map(_sysctls_of, paths))),
    )


def _sysctls_of(path: str) -> str:
    field = "podSecurityContext.sysctls"
    root = f"object.{path}.{field}"
    item = _at(f"{path}.{field}", "sysctl", "i")
    among = f"(type({root}) == list ? {root} : [])"
    return _collected(path, field, item, among=among)


def job_policy_rules() -> tuple[Rule, ...]:
    """The rules about what `job_policies` gives."""
    return (*_times(), _environment(), _security_contexts(), _sysctls())


def _times() -> tuple[Rule, ...]:
    """A Job must not end while it still waits for the state lock."""
    deadline, lock = "activeDeadlineSeconds", "lockTimeoutSeconds"
    set_deadline, set_lock = f"has(item.policy.{deadline})", f"has(item.policy.{lock})"
    limit = f"({set_deadline} ? item.policy.{deadline} : {DEADLINE_SECONDS})"
    return (
        Rule(
            name="deadlines",
            items=(
                f"variables.jobPolicies.filter(item, {set_deadline} && !{set_lock} && "
                f"item.policy.{deadline} <= {LOCK_TIMEOUT_SECONDS})"
            ),
            field=f"item.path + '.{deadline}'",
            message=text(
                f"must be more than the default lock timeout of {LOCK_TIMEOUT_SECONDS} seconds, "
                f"or set a shorter {lock}, too"
            ),
        ),
        Rule(
            name="lockTimeouts",
            items=(
                f"variables.jobPolicies.filter(item, {set_lock} && item.policy.{lock} >= {limit})"
            ),
            field=f"item.path + '.{lock}'",
            message=(
                f"'must be less than ' + ({set_deadline} ? '{deadline}' : 'the default deadline')"
                f" + ' (' + string({limit}) + ' seconds)'"
            ),
        ),
    )


def _environment() -> Rule:
    begins = " || ".join(f"item.name.startsWith({text(p)})" for p in RESERVED_ENV_PREFIXES)
    exactly = f"item.name in {texts(sorted(RESERVED_ENV))}"
    names, beginnings = ", ".join(sorted(RESERVED_ENV)), ", ".join(RESERVED_ENV_PREFIXES)
    return Rule(
        name="reservedEnvironment",
        items=f"variables.environment.filter(item, {begins} || {exactly})",
        field="item.path + '[name=\"' + item.name + '\"].name'",
        message=text(
            f"is reserved for the Job itself, as {names} and all names that begin with one of "
            f"{beginnings}"
        ),
    )


# Fields of a security context, and what they may not be, as CEL.
_REFUSED = (
    ("privileged", "true"),
    ("allowPrivilegeEscalation", "true"),
    ("readOnlyRootFilesystem", "false"),
    ("procMount", "'Unmasked'"),
    ("runAsNonRoot", "false"),
    ("runAsUser", "0"),
    ("seccompProfile.type", "'Unconfined'"),
    ("appArmorProfile.type", "'Unconfined'"),
    ("windowsOptions.hostProcess", "true"),
)
_SELINUX_TYPES = ("container_engine_t", "container_init_t", "container_kvm_t", "container_t")


def _security_contexts() -> Rule:
    """A run needs no more rights than any other program: nothing may be added."""

    def breaking(field: str, broken: str, message: str) -> str:
        """`broken` is CEL about `v`, the field's value."""
        there, dotted = has("c.context", field, free=True), f".{field}"
        return (
            f"variables.securityContexts.filter(c, {there} && "
            f"[c.context.{field}].exists(v, {broken}))"
            f".map(c, {problem(f'c.path + {text(dotted)}', text(message))})"
        )

    checks = [
        *(breaking(field, f"v == {value}", f"{value} is not allowed") for field, value in _REFUSED),
        breaking("capabilities.add", "v != null && v != []", "capabilities may not be added"),
        breaking(
            "seLinuxOptions.type",
            f"!(v in {texts(('', *_SELINUX_TYPES))})",
            f"must be one of {', '.join(_SELINUX_TYPES)}",
        ),
        breaking("seLinuxOptions.user", "v != ''", "may not be set for a Job"),
        breaking("seLinuxOptions.role", "v != ''", "may not be set for a Job"),
    ]
    return Rule(
        name="privileges", items=" + ".join(checks), field="item.field", message="item.message"
    )


_SYSCTLS = (
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ping_group_range",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_wmem",
)


def _sysctls() -> Rule:
    named = "type(item.sysctl) == map && has(item.sysctl.name) && type(item.sysctl.name) == string"
    return Rule(
        name="unsafeSysctls",
        items=(
            f"variables.sysctls.filter(item, !({named} && item.sysctl.name in {texts(_SYSCTLS)}))"
        ),
        field=f"item.path + ({named} ? '[name=\"' + item.sysctl.name + '\"].name' : '')",
        message=text("is not one of the sysctls that a Job may set"),
    )
