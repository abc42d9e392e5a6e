"""What `kubectl get` shows of the built-in kinds: the columns and cells of kube-apiserver."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from captfctl.embedded.apiserver.ages import UNKNOWN, age
from captfctl.embedded.store import PrinterColumn
from captfctl.model import core
from captfctl.model.durations import human_duration
from captfctl.model.meta import ApiObject, LabelSelector

NONE = "<none>"
WIDE = 1

Cells = list[Any]


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a kind. `cells` gets the object's JSON and the time, and answers one row."""

    columns: tuple[PrinterColumn, ...]
    cells: Callable[[bytes, datetime], Cells]


def _column(
    name: str, priority: int = 0, type_: str = "string", format_: str = ""
) -> PrinterColumn:
    return PrinterColumn(name, type_, "", format=format_, priority=priority)


NAME = _column("Name", format_="name")
AGE = _column("Age")


def _wide(*names: str) -> list[PrinterColumn]:
    return [_column(name, WIDE) for name in names]


def since(obj: ApiObject, now: datetime) -> str:
    """The object's age, as kubectl writes it."""
    created = obj.metadata.creation_timestamp
    return human_duration(now - created) if created else UNKNOWN


def _kind(type_: Any, row: Callable[[Any, datetime], Cells], *columns: PrinterColumn) -> Columns:
    decoder = msgspec.json.Decoder(type_)
    return Columns(columns, lambda body, now: row(decoder.decode(body), now))


# --- pods and jobs -----------------------------------------------------------------------------


def _pod(pod: core.Pod, now: datetime) -> Cells:
    ready = sum(1 for status in pod.status.container_statuses if status.ready)
    restarts = sum(max(status.restart_count, 0) for status in pod.status.container_statuses)
    return [
        pod.metadata.name,
        f"{ready}/{len(pod.spec.containers)}",
        _pod_status(pod),
        str(restarts),
        since(pod, now),
        pod.status.pod_ip or NONE,
        pod.spec.node_name or NONE,
        NONE,
        NONE,
    ]


def _pod_status(pod: core.Pod) -> str:
    """The pod's phase, or what its containers say more exactly."""
    over = pod.status.phase in ("Succeeded", "Failed")
    if pod.deleting and not over:
        return "Terminating"
    reason = pod.status.reason or pod.status.phase or "Unknown"
    starting = _init_status(pod)
    if starting:
        return starting
    for status in pod.status.container_statuses:
        said = _container_reason(status.state)
        if said:
            return said
    return reason


def _init_status(pod: core.Pod) -> str:
    """What the first init container that is not through says; empty when all are."""
    for number, status in enumerate(pod.status.init_container_statuses):
        state = status.state
        if state and state.terminated and state.terminated.exit_code == 0:
            continue
        said = _container_reason(state)
        if said and said != "PodInitializing":
            return f"Init:{said}"
        return f"Init:{number}/{len(pod.spec.init_containers)}"
    return ""


def _container_reason(state: core.ContainerState | None) -> str:
    if state is None:
        return ""
    if state.waiting:
        return state.waiting.reason
    end = state.terminated
    if end is None:
        return ""
    fallback = f"Signal:{end.signal}" if end.signal else f"ExitCode:{end.exit_code}"
    return end.reason or fallback


_JOB_STATES = (
    ("Complete", "Complete"),
    ("Failed", "Failed"),
    ("Suspended", "Suspended"),
    ("FailureTarget", "FailureTarget"),
    ("SuccessCriteriaMet", "SuccessCriteriaMet"),
)


def _job(job: core.Job, now: datetime) -> Cells:
    wanted = job.spec.completions
    start, end = job.status.start_time, job.status.completion_time
    containers = job.spec.template.spec.containers
    return [
        job.metadata.name,
        _job_status(job),
        f"{job.status.succeeded}/{1 if wanted is None else wanted}",
        human_duration((end or now) - start) if start else "",
        since(job, now),
        ",".join(container.name for container in containers),
        ",".join(container.image for container in containers),
        selector_text(job.spec.selector),
    ]


def _job_status(job: core.Job) -> str:
    true = {c.type for c in job.status.conditions if c.status == "True"}
    for condition, text in _JOB_STATES:
        if condition in true:
            return text
        if condition == "Failed" and job.deleting:
            return "Terminating"
    return "Running"


def selector_text(selector: LabelSelector | None) -> str:
    """A label selector in selector notation."""
    if selector is None:
        return NONE
    terms = [f"{key}={value}" for key, value in sorted(selector.match_labels.items())]
    for term in selector.match_expressions:
        values = f" ({','.join(term.values)})" if term.values else ""
        terms.append(f"{term.key} {term.operator.lower()}{values}")
    return ",".join(terms) or NONE


# --- events ------------------------------------------------------------------------------------


class _Series(msgspec.Struct, rename="camel"):
    count: int = 0
    last_observed_time: str = ""


class _Source(msgspec.Struct):
    component: str = ""
    host: str = ""


class _Target(msgspec.Struct, rename="camel"):
    kind: str = ""
    name: str = ""
    field_path: str = ""


class _Event(ApiObject):
    """Both views of an event: core's and events.k8s.io's call the same things by other names."""

    type: str = ""
    reason: str = ""
    message: str = ""
    note: str = ""
    involved_object: _Target | None = None
    regarding: _Target | None = None
    first_timestamp: str | None = None
    last_timestamp: str | None = None
    deprecated_first_timestamp: str | None = None
    deprecated_last_timestamp: str | None = None
    event_time: str | None = None
    count: int = 0
    deprecated_count: int = 0
    series: _Series | None = None
    source: _Source | None = None
    deprecated_source: _Source | None = None
    reporting_component: str = ""
    reporting_controller: str = ""
    reporting_instance: str = ""


def _event(event: _Event, now: datetime) -> Cells:
    target = event.involved_object or event.regarding or _Target()
    kind = target.kind.lower()
    first = age(event.first_timestamp or event.deprecated_first_timestamp or event.event_time, now)
    last_time = event.last_timestamp or event.deprecated_last_timestamp
    last = age(last_time, now) if last_time else first
    count = event.count or event.deprecated_count or 1
    if event.series:
        last, count = age(event.series.last_observed_time, now), event.series.count
    return [
        last,
        event.type,
        event.reason,
        f"{kind}/{target.name}" if target.name else kind,
        target.field_path,
        _event_source(event),
        (event.message or event.note).strip(),
        first,
        count,
        event.metadata.name,
    ]


def _event_source(event: _Event) -> str:
    source = event.source or event.deprecated_source or _Source()
    component = source.component or event.reporting_component or event.reporting_controller
    host = source.host or event.reporting_instance
    return f"{component}, {host}" if host else component


_EVENT_COLUMNS = (
    _column("Last Seen"),
    _column("Type"),
    _column("Reason"),
    _column("Object"),
    *_wide("Subobject", "Source"),
    _column("Message"),
    *_wide("First Seen", "Count"),
    _column("Name", WIDE, format_="name"),
)


# --- the rest ----------------------------------------------------------------------------------


def _node(node: core.Node, now: datetime) -> Cells:
    ready = next((c.get("status") for c in node.status.conditions if c.get("type") == "Ready"), "")
    status = {"True": "Ready", "": "Unknown"}.get(str(ready or ""), "NotReady")
    if node.spec.get("unschedulable"):
        status += ",SchedulingDisabled"
    prefix = "node-role.kubernetes.io/"
    roles = sorted(key[len(prefix) :] for key in node.metadata.labels if key.startswith(prefix))
    info = node.status.node_info
    addresses = {a.get("type"): a.get("address") for a in node.status.addresses}
    return [
        node.metadata.name,
        status,
        ",".join(filter(None, roles)) or NONE,
        since(node, now),
        info.get("kubeletVersion", ""),
        addresses.get("InternalIP", NONE),
        addresses.get("ExternalIP", NONE),
        info.get("osImage") or UNKNOWN,
        info.get("kernelVersion") or UNKNOWN,
        info.get("containerRuntimeVersion") or UNKNOWN,
    ]


def _secret(secret: core.Secret, now: datetime) -> Cells:
    return [secret.metadata.name, secret.type, len(secret.data), since(secret, now)]


def _config_map(config: core.ConfigMap, now: datetime) -> Cells:
    return [config.metadata.name, len(config.data) + len(config.binary_data), since(config, now)]


def _namespace(namespace: core.Namespace, now: datetime) -> Cells:
    return [namespace.metadata.name, namespace.status.get("phase", ""), since(namespace, now)]


class _ServiceAccount(ApiObject):
    secrets: list[Any] = msgspec.field(default_factory=list)


def _service_account(account: _ServiceAccount, now: datetime) -> Cells:
    return [account.metadata.name, len(account.secrets), since(account, now)]


def _lease(lease: core.Lease, now: datetime) -> Cells:
    return [lease.metadata.name, lease.spec.holder_identity, since(lease, now)]


def _created_at(obj: ApiObject, _: datetime) -> Cells:
    created = obj.metadata.creation_timestamp
    return [obj.metadata.name, created.strftime("%Y-%m-%dT%H:%M:%SZ") if created else UNKNOWN]


def _binding(binding: core.RoleBinding, now: datetime) -> Cells:
    def named(kind: str) -> str:
        subjects: Sequence[core.Subject] = [s for s in binding.subjects if s.kind == kind]
        return ", ".join(f"{s.namespace}/{s.name}" if s.namespace else s.name for s in subjects)

    ref = binding.role_ref
    row = [binding.metadata.name, f"{ref.kind}/{ref.name}", since(binding, now)]
    return [*row, named("User"), named("Group"), named("ServiceAccount")]


_UNSET = "<unset>"


def _admission_policy(policy: core.AdmissionPolicy, now: datetime) -> Cells:
    kind, validations = policy.spec.get("paramKind"), policy.spec.get("validations", ())
    params = f"{kind['apiVersion']}/{kind['kind']}" if kind else _UNSET
    return [policy.metadata.name, len(validations), params, since(policy, now)]


def _admission_binding(binding: core.AdmissionPolicy, now: datetime) -> Cells:
    ref, params = binding.spec.get("paramRef") or {}, _UNSET
    if ref.get("name"):
        params = f"{ref.get('namespace') or '*'}/{ref['name']}"
    return [binding.metadata.name, binding.spec["policyName"], params, since(binding, now)]


_BINDING_COLUMNS = (NAME, _column("Role"), AGE, *_wide("Users", "Groups", "ServiceAccounts"))
_CREATED = _column("Created At", type_="date")

COLUMNS: dict[tuple[str, str], Columns] = {
    ("", "Pod"): _kind(
        core.Pod,
        _pod,
        NAME,
        _column("Ready"),
        _column("Status"),
        _column("Restarts"),
        AGE,
        *_wide("IP", "Node", "Nominated Node", "Readiness Gates"),
    ),
    ("batch", "Job"): _kind(
        core.Job,
        _job,
        NAME,
        _column("Status"),
        _column("Completions"),
        _column("Duration"),
        AGE,
        *_wide("Containers", "Images", "Selector"),
    ),
    ("", "Event"): _kind(_Event, _event, *_EVENT_COLUMNS),
    ("events.k8s.io", "Event"): _kind(_Event, _event, *_EVENT_COLUMNS),
    ("", "Node"): _kind(
        core.Node,
        _node,
        NAME,
        _column("Status"),
        _column("Roles"),
        AGE,
        _column("Version"),
        *_wide("Internal-IP", "External-IP", "OS-Image", "Kernel-Version", "Container-Runtime"),
    ),
    ("", "Secret"): _kind(core.Secret, _secret, NAME, _column("Type"), _column("Data"), AGE),
    ("", "ConfigMap"): _kind(core.ConfigMap, _config_map, NAME, _column("Data"), AGE),
    ("", "Namespace"): _kind(core.Namespace, _namespace, NAME, _column("Status"), AGE),
    ("", "ServiceAccount"): _kind(_ServiceAccount, _service_account, NAME, _column("Secrets"), AGE),
    ("coordination.k8s.io", "Lease"): _kind(core.Lease, _lease, NAME, _column("Holder"), AGE),
    ("rbac.authorization.k8s.io", "Role"): _kind(ApiObject, _created_at, NAME, _CREATED),
    ("rbac.authorization.k8s.io", "ClusterRole"): _kind(ApiObject, _created_at, NAME, _CREATED),
    ("rbac.authorization.k8s.io", "RoleBinding"): _kind(
        core.RoleBinding, _binding, *_BINDING_COLUMNS
    ),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): _kind(
        core.RoleBinding, _binding, *_BINDING_COLUMNS
    ),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"): _kind(
        core.AdmissionPolicy,
        _admission_policy,
        NAME,
        _column("Validations"),
        _column("ParamKind"),
        AGE,
    ),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"): _kind(
        core.AdmissionPolicy,
        _admission_binding,
        NAME,
        _column("PolicyName"),
        _column("ParamRef"),
        AGE,
    ),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _kind(
        ApiObject, _created_at, NAME, _CREATED
    ),
}
