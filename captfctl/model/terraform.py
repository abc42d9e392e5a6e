"""The fields that our kinds share, and `TerraformCluster` (api.md: TerraformCluster).

Constraints stand beside the fields they bind. Where 0 is a value, None means unset.
"""

from enum import StrEnum
from typing import Annotated, Any, ClassVar

import msgspec

from captfctl.model.capi import Endpoint
from captfctl.model.core import EnvVar, LocalObjectReference, Resources
from captfctl.model.meta import ApiObject, Part
from captfctl.model.schema import (
    ATOMIC,
    NOT_EMPTY,
    Name,
    Schema,
    Subdomain,
    cel,
    map_by,
    rule,
)
from captfctl.model.status import CommonStatus, PendingPlanRef

Json = dict[str, Any]

NO_JSON = msgspec.Raw()
"""The value of a free-form field that is not set. Only this very object is left out when the field
is written: an empty `Raw` made elsewhere would leave a hole in the JSON."""


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


class Source(Part):
    """The image with the module and its runtime."""

    image: Annotated[str, rule(minLength=1, maxLength=512)]
    """Reference of an image with /captf/module and /captf/runtime."""
    image_pull_policy: PullPolicy | None = None
    """IfNotPresent when it is not set."""


class IdentityRef(Part):
    """The credentials of the runs."""

    name: Name
    kind: IdentityKind | None = None
    """TerraformClusterIdentity when it is not set; Secret names one in the object's namespace."""


class JobPolicy(Part):
    """How the Jobs run."""

    SCHEMA: ClassVar[Schema] = NOT_EMPTY

    successful_jobs_history_limit: Annotated[int | None, rule(minimum=0, maximum=100)] = None
    """How many succeeded Jobs of each operation are kept; 3 when it is not set."""
    failed_jobs_history_limit: Annotated[int | None, rule(minimum=0, maximum=100)] = None
    """How many failed Jobs of each operation are kept; 3 when it is not set."""
    active_deadline_seconds: Annotated[int, rule(minimum=1, maximum=86400)] = 0
    """After how long a Job is stopped; 3600 when it is not set."""
    lock_timeout_seconds: Annotated[int | None, rule(minimum=0, maximum=3600)] = None
    """How long a run waits for the state lock; 300 when it is not set."""
    service_account_name: Name = ""
    """Of the Jobs, instead of captf-runner; it must carry the label captf.io/runner=true."""
    image_pull_secrets: Annotated[
        list[LocalObjectReference], rule(minItems=1, maxItems=10, **ATOMIC)
    ] = msgspec.field(default_factory=list)
    resources: Resources | None = None
    env: Annotated[list[EnvVar], rule(minItems=1, maxItems=64, **map_by("name"))] = msgspec.field(
        default_factory=list
    )
    """Further environment of the runs."""
    security_context: Json | None = None
    """Of the container, as in a pod."""
    pod_security_context: Json | None = None


class NameRef(Part):
    name: Subdomain


class VariablesSource(Part):
    """One ConfigMap or Secret with user variables."""

    SCHEMA: ClassVar[Schema] = {
        "oneOf": [{"required": ["configMapRef"]}, {"required": ["secretRef"]}],
        "x-kubernetes-validations": [
            cel(
                "has(self.configMapRef) != has(self.secretRef)",
                "set exactly one of configMapRef and secretRef",
            )
        ],
    }

    config_map_ref: NameRef | None = None
    secret_ref: NameRef | None = None
    optional: bool = False
    """A source that does not exist counts as empty."""
    format: VariableFormat | None = None
    """String (the default) takes each value as text, JSON as a JSON document."""


class ClusterDrift(Part):
    """When drift is looked for and what is done about it."""

    SCHEMA: ClassVar[Schema] = NOT_EMPTY

    interval_seconds: Annotated[int | None, rule(minimum=0)] = None
    """Between two checks; 0 switches them off."""
    action: DriftAction | None = None
    """Report when it is not set."""


class Remediation(Part):
    """When an unhealthy machine is marked for replacement."""

    SCHEMA: ClassVar[Schema] = NOT_EMPTY

    annotate_machine: bool | None = None
    unhealthy_threshold: Annotated[int, rule(minimum=1, maximum=100)] = 0
    """Unhealthy readings in a row; 3 when it is not set."""
    health_check_interval_seconds: Annotated[int, rule(minimum=60, maximum=86400)] = 0
    """Between two readings; 300 when it is not set."""


class ClusterDefaults(Part):
    """What the machines and pools of the cluster inherit; never the cluster itself."""

    SCHEMA: ClassVar[Schema] = NOT_EMPTY

    identity_ref: IdentityRef | None = None
    jobs: JobPolicy | None = None
    drift: ClusterDrift | None = None
    remediation: Remediation | None = None
    membership_refresh_interval_seconds: Annotated[int, rule(minimum=15, maximum=86400)] = 0
    deletion_policy: DeletionPolicy | None = None
    deletion_protection: bool | None = None
    """Hold deletions of machines and pools, but those that Cluster API makes."""


class ControlPlaneEndpoint(Endpoint):
    """Where the API server of the cluster is reached."""

    SCHEMA: ClassVar[Schema] = {
        "x-kubernetes-validations": [
            cel("has(self.host) == has(self.port)", "set both host and port, or neither"),
        ]
    }

    host: Annotated[str, rule(minLength=1, maxLength=512)] = ""
    port: Annotated[int, rule(minimum=1, maximum=65535)] = 0


class TerraformSpec(Part):
    """What the specs of our kinds share."""

    source: Source
    identity_ref: IdentityRef | None = None
    variables: Annotated[msgspec.Raw, rule(type="object", minProperties=1, maxProperties=256)] = (
        NO_JSON
    )
    """Variables of the module, by name."""
    variables_from: Annotated[list[VariablesSource], rule(minItems=1, maxItems=16, **ATOMIC)] = (
        msgspec.field(default_factory=list)
    )
    """Sources of further variables; later ones win, spec.variables wins over all."""
    jobs: JobPolicy | None = None
    deletion_policy: DeletionPolicy | None = None
    """What becomes of the infrastructure when the object is deleted; Destroy when it is not set."""
    deletion_protection: bool | None = None
    """Refuse to delete the object while this is true."""
    adopt_retained_state: bool = False
    """Take over the Terraform state that an earlier object of this name left."""


class TerraformObject(ApiObject, kw_only=True):
    """What our kinds share. Whatever has runs is one of them."""

    spec: TerraformSpec
    status: CommonStatus = msgspec.field(default_factory=CommonStatus)


class TerraformClusterSpec(TerraformSpec):
    SCHEMA: ClassVar[Schema] = {
        **NOT_EMPTY,
        "x-kubernetes-validations": [
            cel(
                "!has(oldSelf.controlPlaneEndpoint) || !has(oldSelf.controlPlaneEndpoint.host) || "
                "!has(oldSelf.controlPlaneEndpoint.port) || (has(self.controlPlaneEndpoint) && "
                "self.controlPlaneEndpoint == oldSelf.controlPlaneEndpoint)",
                "controlPlaneEndpoint is immutable once host and port are set",
                ".controlPlaneEndpoint",
            ),
        ],
    }

    control_plane_endpoint: ControlPlaneEndpoint | None = None
    """Left out, it is taken from the module's output."""
    drift: ClusterDrift | None = None
    apply_policy: ApplyPolicy | None = None
    """Automatic (the default) asks only before something is destroyed, Manual before every
    change."""
    max_active_jobs: Annotated[int, rule(minimum=1)] = 0
    """Limit of running Jobs of the cluster, its machines and its pools together."""
    defaults: ClusterDefaults | None = None


class FailureDomain(Part):
    name: Annotated[str, rule(minLength=1, maxLength=256)]
    control_plane: bool | None = None
    """Whether control plane machines may be placed here."""
    attributes: dict[str, str] = msgspec.field(default_factory=dict)


class TerraformClusterStatus(CommonStatus):
    SCHEMA: ClassVar[Schema] = NOT_EMPTY

    failure_domains: Annotated[
        list[FailureDomain], rule(minItems=1, maxItems=100, **map_by("name"))
    ] = msgspec.field(default_factory=list)
    exports: msgspec.Raw = NO_JSON
    """What the module hands to machines and pools, unless it is too large to be shown."""
    pending_plan_ref: PendingPlanRef | None = None


class TerraformCluster(TerraformObject, kw_only=True):
    """The infrastructure of one Cluster."""

    # Not a rule of the spec: a cluster template holds the same spec and may do without.
    SCHEMA: ClassVar[Schema] = {
        "x-kubernetes-validations": [
            cel(
                "has(self.spec.identityRef)",
                "spec.identityRef must be set: spec.defaults covers machines and pools only",
                ".spec.identityRef",
            ),
        ]
    }

    spec: TerraformClusterSpec
    status: TerraformClusterStatus = msgspec.field(default_factory=TerraformClusterStatus)
