"""The kinds of Kubernetes that captfctl reads or writes, with the fields it uses."""

from typing import Any

import msgspec

from captfctl.model.meta import ApiObject, LabelSelector, ObjectMeta, Part, Time

Json = dict[str, Any]


class Namespace(ApiObject):
    spec: Json = msgspec.field(default_factory=dict)
    status: Json = msgspec.field(default_factory=dict)


class ServiceAccount(ApiObject):
    pass


class Secret(ApiObject):
    """`data` holds raw bytes: base64 is undone and redone at the door."""

    type: str = ""
    data: dict[str, bytes] = msgspec.field(default_factory=dict)
    string_data: dict[str, str] = msgspec.field(default_factory=dict)
    immutable: bool = False


class ConfigMap(ApiObject):
    data: dict[str, str] = msgspec.field(default_factory=dict)
    binary_data: dict[str, bytes] = msgspec.field(default_factory=dict)


class LocalObjectReference(Part):
    name: str = ""


class KeyToPath(Part):
    key: str
    path: str
    mode: int | None = None


class SecretVolume(Part):
    secret_name: str = ""
    items: list[KeyToPath] = msgspec.field(default_factory=list)
    default_mode: int | None = None
    optional: bool = False


class ConfigMapVolume(Part):
    name: str = ""
    items: list[KeyToPath] = msgspec.field(default_factory=list)
    default_mode: int | None = None
    optional: bool = False


class SecretProjection(Part):
    name: str = ""
    items: list[KeyToPath] = msgspec.field(default_factory=list)
    optional: bool = False


class ServiceAccountTokenProjection(Part):
    path: str = ""
    audience: str = ""
    expiration_seconds: int | None = None


class DownwardApiItem(Part):
    path: str
    field_ref: Json = msgspec.field(default_factory=dict)


class DownwardApiProjection(Part):
    items: list[DownwardApiItem] = msgspec.field(default_factory=list)


class VolumeProjection(Part):
    secret: SecretProjection | None = None
    config_map: SecretProjection | None = None
    service_account_token: ServiceAccountTokenProjection | None = None
    downward_api: DownwardApiProjection | None = msgspec.field(name="downwardAPI", default=None)


class ProjectedVolume(Part):
    sources: list[VolumeProjection] = msgspec.field(default_factory=list)
    default_mode: int | None = None


class EmptyDir(msgspec.Struct, rename="camel", kw_only=True):
    """Written as `{}` when nothing is set: its presence is what counts."""

    medium: str | msgspec.UnsetType = msgspec.UNSET
    size_limit: str | msgspec.UnsetType = msgspec.UNSET


class Volume(Part):
    name: str
    empty_dir: EmptyDir | None = None
    secret: SecretVolume | None = None
    config_map: ConfigMapVolume | None = None
    projected: ProjectedVolume | None = None


class VolumeMount(Part):
    name: str
    mount_path: str
    sub_path: str = ""
    read_only: bool = False


class EnvVar(Part):
    name: str
    value: str = ""
    value_from: Json | None = None


class SecretEnvSource(Part):
    name: str = ""
    optional: bool = False


class EnvFromSource(Part):
    prefix: str = ""
    secret_ref: SecretEnvSource | None = None
    config_map_ref: SecretEnvSource | None = None


Quantities = dict[str, int | str]


class Resources(Part):
    """Amounts by resource name; a server may hand a quantity out as the number it was written."""

    requests: Quantities = msgspec.field(default_factory=dict)
    limits: Quantities = msgspec.field(default_factory=dict)


class Container(Part):
    name: str
    image: str = ""
    image_pull_policy: str = ""
    command: list[str] = msgspec.field(default_factory=list)
    args: list[str] = msgspec.field(default_factory=list)
    env: list[EnvVar] = msgspec.field(default_factory=list)
    env_from: list[EnvFromSource] = msgspec.field(default_factory=list)
    resources: Resources | None = None
    volume_mounts: list[VolumeMount] = msgspec.field(default_factory=list)
    working_dir: str = ""
    termination_message_path: str = ""
    termination_message_policy: str = ""
    security_context: Json | None = None


class PodSpec(Part):
    containers: list[Container] = msgspec.field(default_factory=list)
    init_containers: list[Container] = msgspec.field(default_factory=list)
    volumes: list[Volume] = msgspec.field(default_factory=list)
    restart_policy: str = ""
    service_account_name: str = ""
    node_name: str = ""
    hostname: str = ""
    active_deadline_seconds: int | None = None
    termination_grace_period_seconds: int | None = None
    image_pull_secrets: list[LocalObjectReference] = msgspec.field(default_factory=list)
    security_context: Json | None = None
    tolerations: list[Json] = msgspec.field(default_factory=list)


class PodCondition(Part):
    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: Time | None = None


class ContainerStateWaiting(Part):
    reason: str = ""
    message: str = ""


class ContainerStateRunning(Part):
    started_at: Time | None = None


class ContainerStateTerminated(Part):
    exit_code: int = msgspec.field(default=-1)  # 0 is a value: it must be written
    signal: int = 0
    reason: str = ""
    message: str = ""
    started_at: Time | None = None
    finished_at: Time | None = None
    container_id: str = msgspec.field(name="containerID", default="")


class ContainerState(Part):
    waiting: ContainerStateWaiting | None = None
    running: ContainerStateRunning | None = None
    terminated: ContainerStateTerminated | None = None


class ContainerStatus(Part):
    name: str
    image: str = ""
    image_id: str = msgspec.field(name="imageID", default="")
    container_id: str = msgspec.field(name="containerID", default="")
    ready: bool = False
    started: bool | None = None
    restart_count: int = -1  # 0 is a value: it must be written
    state: ContainerState | None = None
    last_state: ContainerState | None = None


class PodStatus(Part):
    phase: str = ""
    reason: str = ""
    message: str = ""
    host_ip: str = msgspec.field(name="hostIP", default="")
    pod_ip: str = msgspec.field(name="podIP", default="")
    start_time: Time | None = None
    conditions: list[PodCondition] = msgspec.field(default_factory=list)
    init_container_statuses: list[ContainerStatus] = msgspec.field(default_factory=list)
    container_statuses: list[ContainerStatus] = msgspec.field(default_factory=list)


class Pod(ApiObject):
    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)


class PodTemplate(Part):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: PodSpec = msgspec.field(default_factory=PodSpec)


class NodeStatus(Part):
    capacity: dict[str, str] = msgspec.field(default_factory=dict)
    allocatable: dict[str, str] = msgspec.field(default_factory=dict)
    conditions: list[Json] = msgspec.field(default_factory=list)
    addresses: list[Json] = msgspec.field(default_factory=list)
    daemon_endpoints: Json = msgspec.field(default_factory=dict)
    node_info: Json = msgspec.field(default_factory=dict)


class Node(ApiObject):
    spec: Json = msgspec.field(default_factory=dict)
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)


class JobSpec(Part):
    backoff_limit: int | None = None
    active_deadline_seconds: int | None = None
    ttl_seconds_after_finished: int | None = None
    parallelism: int | None = None
    completions: int | None = None
    suspend: bool | None = None
    selector: LabelSelector | None = None
    template: PodTemplate = msgspec.field(default_factory=PodTemplate)


class JobCondition(Part):
    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_probe_time: Time | None = None
    last_transition_time: Time | None = None


class UncountedTerminatedPods(Part):
    """UIDs of pods that ended and are not yet in `succeeded` or `failed`."""

    succeeded: list[str] = msgspec.field(default_factory=list)
    failed: list[str] = msgspec.field(default_factory=list)


class JobStatus(Part):
    active: int = 0
    ready: int | None = None
    terminating: int | None = None
    uncounted_terminated_pods: UncountedTerminatedPods | None = None
    succeeded: int = 0
    failed: int = 0
    start_time: Time | None = None
    completion_time: Time | None = None
    conditions: list[JobCondition] = msgspec.field(default_factory=list)


class Job(ApiObject):
    spec: JobSpec = msgspec.field(default_factory=JobSpec)
    status: JobStatus = msgspec.field(default_factory=JobStatus)


class LeaseSpec(Part):
    """`acquire_time` and `renew_time` are `MicroTime` texts: see `model.meta.micro_time`."""

    holder_identity: str = ""
    lease_duration_seconds: int | None = None
    acquire_time: str = ""
    renew_time: str = ""
    lease_transitions: int | None = None


class Lease(ApiObject):
    spec: LeaseSpec = msgspec.field(default_factory=LeaseSpec)


class ObjectReference(Part):
    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class Event(ApiObject):
    """An `events.k8s.io/v1` Event. `event_time` is a `MicroTime` text; older
    components leave it out."""

    event_time: str | None = None
    reporting_controller: str = ""
    reporting_instance: str = ""
    action: str = ""
    reason: str = ""
    type: str = ""
    note: str = ""
    regarding: ObjectReference | None = None
    related: ObjectReference | None = None


class RoleRef(Part):
    api_group: str = ""
    kind: str = ""
    name: str = ""


class Subject(Part):
    kind: str = ""
    api_group: str = ""
    name: str = ""
    namespace: str = ""


class PolicyRule(Part):
    api_groups: list[str] = msgspec.field(default_factory=list)
    resources: list[str] = msgspec.field(default_factory=list)
    resource_names: list[str] = msgspec.field(default_factory=list)
    non_resource_urls: list[str] = msgspec.field(name="nonResourceURLs", default_factory=list)
    verbs: list[str] = msgspec.field(default_factory=list)


class Role(ApiObject):
    rules: list[PolicyRule] = msgspec.field(default_factory=list)


class RoleBinding(ApiObject):
    role_ref: RoleRef = msgspec.field(default_factory=RoleRef)
    subjects: list[Subject] = msgspec.field(default_factory=list)


class CustomResourceDefinition(ApiObject):
    spec: Json = msgspec.field(default_factory=dict)
    status: Json = msgspec.field(default_factory=dict)


class AdmissionPolicy(ApiObject):
    """A ValidatingAdmissionPolicy, or a binding of one."""

    spec: Json = msgspec.field(default_factory=dict)


class TokenRequest(ApiObject):
    spec: Json = msgspec.field(default_factory=dict)
    status: Json = msgspec.field(default_factory=dict)


class Review(ApiObject):
    """A SelfSubjectAccessReview, SubjectAccessReview, SelfSubjectReview or TokenReview."""

    spec: Json = msgspec.field(default_factory=dict)
    status: Json = msgspec.field(default_factory=dict)
