"""What admission refuses beyond the kinds' schemas: one table, as ValidatingAdmissionPolicies.

A real API server evaluates these expressions without a webhook server of ours, the embedded one
evaluates the same text, and so do the commands that read objects from files.

A server tells only the first validation that fails. So that a person learns everything at once,
each rule is a variable that lists what breaks it, `variables.problems` holds all lists, and one
validation says that it is empty. A rule about who asks is a validation of its own, because a
message expression cannot use a variable that asks the authorizer. A further kind is a further row
of `POLICIES`.
"""

from captfctl.install.policy_parts import (
    Helper,
    Policy,
    Rule,
    Validation,
    changed,
    has,
    problem,
    text,
    texts,
)
from captfctl.model.interface import input_names
from captfctl.model.job_policy import (
    DEADLINE_SECONDS,
    LOCK_TIMEOUT_SECONDS,
    RESERVED_ENV,
    RESERVED_ENV_PREFIXES,
)
from captfctl.model.kinds import Role
from captfctl.model.resource import Document
from captfctl.model.resources import TERRAFORM_CLUSTER_IDENTITIES, TERRAFORM_CLUSTERS
from captfctl.model.variable_names import (
    IDENTIFIER,
    META_ARGUMENTS,
    NO_IDENTIFIER,
    RESERVED_BY_MODULE_BLOCK,
    RESERVED_BY_PREFIX,
    RESERVED_PREFIX,
    reserved_by_contract,
)

# The grammar of image references that container runtimes share. A short name is Docker Hub's.
_PART = "(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_HOST = rf"(?:{_PART}(?:\.{_PART})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_WORD = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_NAME = f"(?:{_HOST}/)?{_WORD}(?:/{_WORD})*"
_TAG = "[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,127}"
_DIGEST = "(?:sha256:[a-f0-9]{64}|sha384:[a-f0-9]{96}|sha512:[a-f0-9]{128})"
_REFERENCE = f"^{_NAME}(?::{_TAG})?(?:@{_DIGEST})?$"
_HAS_HOST = "^(?:[^/]*[.:A-Z][^/]*|localhost)/"
_LONGEST_NAME = 255
_DOCKER_HUB = "docker.io/"


def _image(path: str) -> Rule:
    named = f"item.find({text('^' + _NAME)})"
    whole = f"(item.matches({text(_HAS_HOST)}) ? {named} : {text(_DOCKER_HUB)} + {named})"
    sound = (
        f"item.matches({text(_REFERENCE)}) && !item.matches('^[a-f0-9]{{64}}$') && "
        f"{whole}.size() <= {_LONGEST_NAME}"
    )
    return Rule(
        name="image",
        items=f"{changed(path)} ? [object.{path}].filter(item, !({sound})) : []",
        field=text(path),
        message=(
            "'\"' + item.replace('\\n', ' ') + '\" is not a valid image reference: write "
            f"[HOST[:PORT]/]NAME[:TAG][@sha256:DIGEST], NAME in lower case and of at most "
            f"{_LONGEST_NAME} characters'"
        ),
    )


def _variables(path: str, role: Role) -> Rule:
    problems = {
        f"!item.matches({text(f'^{IDENTIFIER}$')})": NO_IDENTIFIER,
        f"item.startsWith({text(RESERVED_PREFIX)})": RESERVED_BY_PREFIX,
        f"item in {texts(sorted(META_ARGUMENTS))}": RESERVED_BY_MODULE_BLOCK,
        f"item in {texts(sorted(input_names(role)))}": reserved_by_contract(role),
    }
    *first, (_, last) = problems.items()
    choice = " : ".join(f"{broken} ? {text(problem)}" for broken, problem in first)
    return Rule(
        name="userVariables",
        items=f"{changed(path)} ? object.{path}.filter(item, {' || '.join(problems)}) : []",
        field=f"{text(path + '[')} + item.replace('\\n', '\\\\n') + ']'",
        message=f"'the name ' + ({choice} : {text(last)})",
    )


_JOB_POLICIES = ("spec.jobs", "spec.defaults.jobs")
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


def _job_policies() -> tuple[Helper, ...]:
    """Every Job policy of an object, and of it what has rules.

    Rescue is never locked out: none is asked about while the object is being deleted.
    """
    policies = [
        f"({changed(path)} ? [{_at(path, 'policy', f'object.{path}')}] : [])"
        for path in _JOB_POLICIES
    ]
    environment = [
        _collected(
            path,
            "env",
            _at(f"{path}.env", "name", "i.name"),
            among=f"object.{path}.env",
        )
        for path in _JOB_POLICIES
    ]
    contexts = [
        _collected(
            path,
            name,
            _at(f"{path}.{name}", "context", f"object.{path}.{name}"),
        )
        for path in _JOB_POLICIES
        for name in _CONTEXTS
    ]
    return (
        Helper(
            name="jobPolicies",
            expression=f"has(object.metadata.deletionTimestamp) ? [] : {' + '.join(policies)}",
        ),
        Helper(name="environment", expression=" + ".join(environment)),
        Helper(name="securityContexts", expression=" + ".join(contexts)),
        Helper(name="sysctls", expression=" + ".join(_sysctls_of(p) for p in _JOB_POLICIES)),
    )


def _sysctls_of(path: str) -> str:
    field = "podSecurityContext.sysctls"
    root = f"object.{path}.{field}"
    item = _at(f"{path}.{field}", "sysctl", "i")
    among = f"(type({root}) == list ? {root} : [])"
    return _collected(path, field, item, among=among)


def _job_policy_rules() -> tuple[Rule, ...]:
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


def _may_read_the_secret() -> Validation:
    """Nobody hands out credentials that they cannot read themselves."""
    ref = "object.spec.secretRef"
    unchanged = " && ".join(f"!({changed(path)})" for path in ("spec.secretRef", _ALLOWED))
    asked = (
        f"authorizer.group('').resource('secrets').namespace({ref}.namespace).name({ref}.name)"
        ".check('get').allowed()"
    )
    return Validation(
        expression=f"!({has('object', 'spec.secretRef')}) || ({unchanged}) || {asked}",
        message=(
            "'spec.secretRef: user \"' + request.userInfo.username + '\" may not get Secret ' + "
            f"{ref}.namespace + '/' + {ref}.name + ', so cannot let others use it'"
        ),
        otherwise="spec.secretRef: the user may not get this Secret, so cannot let others use it",
    )


_ALLOWED = "spec.allowedNamespaces"

POLICIES: tuple[Policy, ...] = (
    Policy(
        resource=TERRAFORM_CLUSTERS.untyped(),
        helpers=_job_policies(),
        rules=(
            _image("spec.source.image"),
            _variables("spec.variables", Role.CLUSTER),
            *_job_policy_rules(),
        ),
    ),
    Policy(
        resource=TERRAFORM_CLUSTER_IDENTITIES.untyped(),
        validations=(_may_read_the_secret(),),
    ),
)


def policies() -> list[Document]:
    """Every policy, each followed by its binding."""
    return [document for policy in POLICIES for document in policy.documents()]
