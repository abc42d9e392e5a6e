"""The effective configuration of an object: its own fields over what it inherits over the defaults
(10 §16, 30 §5). Nothing of it is ever written back."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from captfctl.decide.constants import (
    DEFAULT_FAILED_HISTORY,
    DEFAULT_SUCCESSFUL_HISTORY,
)
from captfctl.model.core import EnvVar, Resources
from captfctl.model.terraform import (
    DeletionPolicy,
    DriftAction,
    IdentityRef,
    TerraformCluster,
)

DEFAULT_DEADLINE_SECONDS = 3600
DEFAULT_LOCK_TIMEOUT_SECONDS = 300
DEFAULT_SERVICE_ACCOUNT = "captf-runner"


def default_resources() -> Resources:
    """What a run asks for when nobody says otherwise: memory bounded, CPU not (30 §4.3)."""
    return Resources(
        requests={"cpu": "250m", "memory": "2Gi", "ephemeral-storage": "1Gi"},
        limits={"memory": "2Gi"},
    )


@dataclass(frozen=True, kw_only=True)
class EffectiveJobs:
    """The merged Job policy with every default filled in (30 §4.3, §5.2).

    The security contexts are what the user set (raw Kubernetes JSON, None when nobody did): the Job
    builder lays them over its own. `env` may still hold reserved names, which the builder drops.
    """

    successful_jobs_history_limit: int = DEFAULT_SUCCESSFUL_HISTORY
    failed_jobs_history_limit: int = DEFAULT_FAILED_HISTORY
    active_deadline_seconds: int = DEFAULT_DEADLINE_SECONDS
    lock_timeout_seconds: int = DEFAULT_LOCK_TIMEOUT_SECONDS
    deadline_configured: bool = False
    """Whether somebody set the deadline; else it is the built-in default."""
    lock_timeout_configured: bool = False
    service_account_name: str = DEFAULT_SERVICE_ACCOUNT
    service_account_configured: bool = False
    image_pull_secrets: tuple[str, ...] = ()
    """Names, without empty ones and duplicates."""
    resources: Resources = field(default_factory=default_resources)
    env: tuple[EnvVar, ...] = ()
    security_context: dict[str, Any] | None = None
    pod_security_context: dict[str, Any] | None = None

    def problem(self) -> str:
        """Why no Job can run under this policy, "" when one can: the text of `JobPolicyInvalid`
        (30 §5.3). A destroy and a restore do not ask."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class EffectiveCluster:
    """Everything about a `TerraformCluster` that scheduling, Jobs and deletion need."""

    identity: IdentityRef | None
    jobs: EffectiveJobs
    drift_interval: timedelta
    """Zero: no drift checks."""
    drift_action: DriftAction
    deletion_policy: DeletionPolicy
    manual_apply: bool
    max_active_jobs: int
    """Of the cluster with its machines and pools; zero: no limit."""


def effective_cluster(
    obj: TerraformCluster, *, drift_default: timedelta, max_active_jobs: int
) -> EffectiveCluster:
    """`drift_default` and `max_active_jobs` are the manager's flags."""
    raise NotImplementedError
