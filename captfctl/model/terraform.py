"""Our own kinds (specification 30). Constraints stand beside the fields they bind."""

from enum import StrEnum
from typing import Annotated, Any, ClassVar

import msgspec

from captfctl.model.capi import Endpoint
from captfctl.model.core import EnvVar, LocalObjectReference, Resources
from captfctl.model.meta import ApiObject, Condition, LabelSelector, Part, Time
from captfctl.model.ops import Op
from captfctl.model.schema import Schema, cel, rule

SUBDOMAIN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
DNS_LABEL = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"

Json = dict[str, Any]
Name = Annotated[str, rule(minLength=1, maxLength=253)]
Subdomain = Annotated[str, rule(minLength=1, maxLength=253, pattern=SUBDOMAIN)]
Conditions = Annotated[
    list[Condition],
    rule(maxItems=32, x__kubernetes__list__type="map", x__kubernetes__list__map__keys=["type"]),
]
ATOMIC = {"x-kubernetes-list-type": "atomic"}
NOT_EMPTY: Schema = {"minProperties": 1}


class PullPolicy(StrEnum):
    IF_NOT_PRESENT = "IfNotPresent"
    ALWAYS = "Always"
    NEVER = "Never"


class IdentityKind(StrEnum):
    CLUSTER_IDENTITY = "TerraformClusterIdentity"
    SECRET = "Secret"


class ApplyPolicy(StrEnum):
    AUTOMATIC = "Automatic"
    MANUAL = "Manual"


class DeletionPolicy(StrEnum):
    DESTROY = "Destroy"
    RETAIN = "Retain"


class DriftAction(StrEnum):
    REPORT = "Report"
    REMEDIATE = "Remediate"


class VariableFormat(StrEnum):
    STRING = "String"
    JSON = "JSON"


class PlanReason(StrEnum):
    MANUAL = "Manual"
    DESTRUCTIVE = "Destructive"
    EXPORTS_CHANGE = "ExportsChange"


class Source(Part):
    """The image with the module and its runtime (30 §4.1)."""

    image: Annotated[str, rule(minLength=1, maxLength=512)]
    image_pull_policy: PullPolicy | None = None


class IdentityRef(Part):
    name: Name
    kind: IdentityKind | None = None


class JobPolicy(Part):
    """How this object's Jobs run (30 §4.3). Integers for which 0 is a value are None when unset."""

    SCHEMA: ClassVar[Schema] = NOT_EMPTY

    successful_jobs_history_limit: Annotated[int | None, rule(minimum=0, maximum=100)] = None
    failed_jobs_history_limit: Annotated[int | None, rule(minimum=0, maximum=100)] = None
    active_deadline_seconds: Annotated[int, rule(minimum=1, maximum=86400)] = 0
    lock_timeout_seconds: Annotated[int | None, rule(minimum=0, maximum=3600)] = None
    service_account_name: Name = ""
    image_pull_secrets: Annotated[
        list[LocalObjectReference], rule(minItems=1, maxItems=10, **ATOMIC)
    ] = msgspec.field(default_factory=list)
    resources: Resources | None = None
    env: Annotated[
        list[EnvVar],
        rule(
            minItems=1,
            maxItems=64,
            x__kubernetes__list__type="map",
            x__kubernetes__list__map__keys=["name"],
        ),
    ] = msgspec.field(default_factory=list)
    security_context: Json | None = None
    pod_security_context: Json | None = None


class NameRef(Part):
    name: Subdomain


class VariablesSource(Part):
    """One ConfigMap or Secret with user variables (30 §4.4)."""

    SCHEMA: ClassVar[Schema] = {
        "x-kubernetes-validations": [
            cel(
                "has(self.configMapRef) != has(self.secretRef)",
                "set exactly one of configMapRef and secretRef",
            )
        ]
    }

    config_map_ref: NameRef | None = None
    secret_ref: NameRef | None = None
    optional: bool = False
    format: VariableFormat | None = None


class ClusterDrift(Part):
    SCHEMA: ClassVar[Schema] = NOT_EMPTY

    interval_seconds: Annotated[int | None, rule(minimum=0)] = None
    action: DriftAction | None = None


class Remediation(Part):
    SCHEMA: ClassVar[Schema] = NOT_EMPTY

    annotate_machine: bool | None = None
    unhealthy_threshold: Annotated[int, rule(minimum=1, maximum=100)] = 0
    health_check_interval_seconds: Annotated[int, rule(minimum=60, maximum=86400)] = 0


class ClusterDefaults(Part):
    """What the machines and pools of the cluster inherit; never the cluster itself."""

    SCHEMA: ClassVar[Schema] = NOT_EMPTY

    identity_ref: IdentityRef | None = None
    jobs: JobPolicy | None = None
    drift: ClusterDrift | None = None
    remediation: Remediation | None = None
    membership_refresh_interval_seconds: Annotated[int, rule(minimum=15, maximum=86400)] = 0
    deletion_policy: DeletionPolicy | None = None


class ControlPlaneEndpoint(Endpoint):
    SCHEMA: ClassVar[Schema] = {
        "x-kubernetes-validations": [
            cel("has(self.host) == has(self.port)", "set both host and port, or neither"),
        ]
    }

    host: Annotated[str, rule(minLength=1, maxLength=512)] = ""
    port: Annotated[int, rule(minimum=1, maximum=65535)] = 0


class TerraformClusterSpec(Part):
    SCHEMA: ClassVar[Schema] = {
        "minProperties": 1,
        "x-kubernetes-validations": [
            cel(
                "has(self.identityRef)",
                "identityRef must be set: spec.defaults covers machines and pools only",
                ".identityRef",
            ),
            cel(
                "!has(oldSelf.controlPlaneEndpoint) || !has(oldSelf.controlPlaneEndpoint.host) || "
                "!has(oldSelf.controlPlaneEndpoint.port) || (has(self.controlPlaneEndpoint) && "
                "self.controlPlaneEndpoint == oldSelf.controlPlaneEndpoint)",
                "controlPlaneEndpoint is immutable once host and port are set",
                ".controlPlaneEndpoint",
            ),
        ],
    }

    source: Source
    identity_ref: IdentityRef | None = None
    variables: Annotated[
        msgspec.Raw,
        rule(
            type="object",
            minProperties=1,
            maxProperties=256,
            x__kubernetes__preserve__unknown__fields=True,
        ),
    ] = msgspec.Raw()
    variables_from: Annotated[list[VariablesSource], rule(minItems=1, maxItems=16, **ATOMIC)] = (
        msgspec.field(default_factory=list)
    )
    jobs: JobPolicy | None = None
    control_plane_endpoint: ControlPlaneEndpoint | None = None
    drift: ClusterDrift | None = None
    apply_policy: ApplyPolicy | None = None
    max_active_jobs: Annotated[int, rule(minimum=1)] = 0
    deletion_policy: DeletionPolicy | None = None
    adopt_retained_state: bool = False
    defaults: ClusterDefaults | None = None


class Initialization(Part):
    provisioned: bool = False


class ActiveJob(Part):
    name: Annotated[str, rule(minLength=1, maxLength=63)] = ""
    operation: Op | None = None
    attempt: Annotated[int, rule(minimum=1)] = 0
    start_time: Time | None = None


class RunStep(Part):
    name: Annotated[str, rule(minLength=1, maxLength=64)]
    exit_code: int
    duration_milliseconds: Annotated[int, rule(minimum=0)]


class RunError(Part):
    kind: Annotated[
        str, rule(enum=["image-layout", "step", "interrupted", "blocked", "plan-changed"])
    ] = ""
    step: Annotated[str, rule(minLength=1, maxLength=64)] = ""
    summary: Annotated[str, rule(minLength=1, maxLength=512)] = ""
    resources: Annotated[
        list[str], rule(minItems=1, maxItems=10, items={"minLength": 1, "maxLength": 512})
    ] = msgspec.field(default_factory=list)


class DriftSummary(Part):
    create: Annotated[int, rule(minimum=0)] = 0
    update: Annotated[int, rule(minimum=0)] = 0
    replace: Annotated[int, rule(minimum=0)] = 0
    delete: Annotated[int, rule(minimum=0)] = 0
    resources: Annotated[
        list[str], rule(minItems=1, maxItems=20, items={"minLength": 1, "maxLength": 512})
    ] = msgspec.field(default_factory=list)


class LastRun(Part):
    job: str = ""
    operation: Op | None = None
    steps: Annotated[list[RunStep], rule(minItems=1, maxItems=16)] = msgspec.field(
        default_factory=list
    )
    error: RunError | None = None
    drift: DriftSummary | None = None


class SourceStatus(Part):
    image: str = ""
    image_digest: str = ""
    runtime_version: Annotated[str, rule(minLength=1, maxLength=64)] = ""


class StateBackup(Part):
    serial: int
    taken_at: Time | None = None
    bytes: int = 0


class FailureDomain(Part):
    name: Annotated[str, rule(minLength=1, maxLength=256)]
    control_plane: bool | None = None
    attributes: dict[str, str] = msgspec.field(default_factory=dict)


class PendingPlanRef(Part):
    name: Name = ""


class CommonStatus(Part):
    """What every object with runs reports (30 §12). Nothing here is load-bearing."""

    conditions: Conditions = msgspec.field(default_factory=list)
    initialization: Initialization | None = None
    observed_generation: Annotated[int, rule(minimum=1)] = 0
    active_job: ActiveJob | None = None
    last_run: LastRun | None = None
    last_drift_check: Time | None = None
    last_refresh: Time | None = None
    pending_refreshes: Annotated[int, rule(minimum=1)] = 0
    observed_state_serial: Annotated[int, rule(minimum=1)] = 0
    last_restored_serial: Annotated[int, rule(minimum=1)] = 0
    state_secret_suffix: Annotated[str, rule(minLength=1, maxLength=63)] = ""
    source: SourceStatus | None = None
    state_backups: Annotated[list[StateBackup], rule(minItems=1, maxItems=16)] = msgspec.field(
        default_factory=list
    )


class TerraformClusterStatus(CommonStatus):
    SCHEMA: ClassVar[Schema] = NOT_EMPTY

    failure_domains: Annotated[
        list[FailureDomain],
        rule(
            minItems=1,
            maxItems=100,
            x__kubernetes__list__type="map",
            x__kubernetes__list__map__keys=["name"],
        ),
    ] = msgspec.field(default_factory=list)
    exports: msgspec.Raw = msgspec.Raw()
    pending_plan_ref: PendingPlanRef | None = None


class TerraformCluster(ApiObject, kw_only=True):
    """The infrastructure of one Cluster (30 §6)."""

    spec: TerraformClusterSpec
    status: TerraformClusterStatus = msgspec.field(default_factory=TerraformClusterStatus)


class IdentityType(StrEnum):
    SECRET = "Secret"


class SecretRef(Part):
    name: Subdomain
    namespace: Annotated[str, rule(minLength=1, maxLength=63, pattern=DNS_LABEL)]


class AllowedNamespaces(Part):
    SCHEMA: ClassVar[Schema] = {
        "x-kubernetes-validations": [
            cel(
                "has(self.list) || has(self.selector)",
                "{} is ambiguous: set list or selector, or leave allowedNamespaces out",
            )
        ]
    }

    names: Annotated[
        list[str],
        rule(
            minItems=1,
            maxItems=100,
            items={"minLength": 1, "maxLength": 63, "pattern": DNS_LABEL},
            x__kubernetes__list__type="set",
        ),
    ] = msgspec.field(name="list", default_factory=list)
    selector: LabelSelector | None = None


class TerraformClusterIdentitySpec(Part):
    SCHEMA: ClassVar[Schema] = {
        "minProperties": 1,
        "x-kubernetes-validations": [
            cel(
                "(has(self.type) && self.type != 'Secret') || has(self.secretRef)",
                "secretRef must be set for type Secret",
                ".secretRef",
            )
        ],
    }

    type: IdentityType | None = None
    secret_ref: SecretRef | None = None
    required_keys: Annotated[
        list[str],
        rule(
            maxItems=64,
            items={"minLength": 1, "maxLength": 253, "pattern": "^[-._a-zA-Z0-9]+$"},
            x__kubernetes__list__type="set",
        ),
    ] = msgspec.field(default_factory=list)
    allowed_namespaces: AllowedNamespaces | None = None


class TerraformClusterIdentityStatus(Part):
    SCHEMA: ClassVar[Schema] = NOT_EMPTY

    conditions: Conditions = msgspec.field(default_factory=list)
    namespaces: Annotated[list[str], rule(maxItems=1000, x__kubernetes__list__type="set")] = (
        msgspec.field(default_factory=list)
    )
    observed_generation: Annotated[int, rule(minimum=1)] = 0


class TerraformClusterIdentity(ApiObject):
    """Credentials that objects of allowed namespaces may use (30 §10)."""

    spec: TerraformClusterIdentitySpec = msgspec.field(default_factory=TerraformClusterIdentitySpec)
    status: TerraformClusterIdentityStatus = msgspec.field(
        default_factory=TerraformClusterIdentityStatus
    )
