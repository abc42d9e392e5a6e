"""The effective configuration of an object: its own fields, then what it inherits, then the
defaults (api.md: Effective configuration).

Nothing of it is ever written back, so a changed default reaches every object on its next pass.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta

from captfctl.decide.constants import (
    DEFAULT_DRIFT_INTERVAL,
    DEFAULT_HEALTH_INTERVAL,
    DEFAULT_MEMBERSHIP_INTERVAL,
    DEFAULT_UNHEALTHY_THRESHOLD,
)
from captfctl.model.core import EnvVar, LocalObjectReference
from captfctl.model.terraform import (
    ApplyPolicy,
    ClusterDefaults,
    ClusterDrift,
    DeletionPolicy,
    DriftAction,
    IdentityRef,
    JobPolicy,
    Remediation,
    TerraformCluster,
)

_OFF = timedelta(0)
_LONGEST = 2**31 - 1  # seconds; beyond it a date could not be computed


@dataclass(frozen=True, kw_only=True)
class Flags:
    """The manager's flags that objects fall back to. Zero `max_active_jobs`: no limit."""

    drift_interval: timedelta = DEFAULT_DRIFT_INTERVAL
    max_active_jobs: int = 0


@dataclass(frozen=True, kw_only=True)
class OwnSettings:
    """What a machine or pool sets itself. `drift_interval` and `membership_interval` in seconds.

    `owner_ends`: its Machine or MachinePool is being deleted or is gone, so Cluster API wants it
    gone, too.
    """

    identity: IdentityRef | None = None
    jobs: JobPolicy | None = None
    drift_interval: int | None = None
    drift_action: DriftAction | None = None
    remediation: Remediation | None = None
    membership_interval: int = 0
    deletion_policy: DeletionPolicy | None = None
    deletion_protection: bool | None = None
    owner_ends: bool = False


@dataclass(frozen=True, kw_only=True)
class Config:
    """What applies to an object."""

    identity: IdentityRef | None
    jobs: JobPolicy
    drift_interval: timedelta
    """Zero: no drift checks, and no health readings that ride on them."""
    drift_action: DriftAction
    deletion_policy: DeletionPolicy | None
    """None: it would be inherited and the cluster cannot be found. Neither destroy nor retain."""
    deletion_protection: bool
    """Whether a deletion waits until a person takes the protection off."""
    max_active_jobs: int
    """Of a cluster together with its machines and pools; zero: no limit."""
    manual_apply: bool = False
    """Clusters."""
    health_interval: timedelta = field(default=_OFF)
    """Machines that ask for remediation; zero: none."""
    annotate_machine: bool = False
    unhealthy_threshold: int = DEFAULT_UNHEALTHY_THRESHOLD
    membership_interval: timedelta = field(default=_OFF)
    """Pools; zero: none."""


def cluster_config(obj: TerraformCluster, flags: Flags) -> Config:
    """A cluster inherits nothing: `spec.defaults` is for its machines and pools."""
    spec = obj.spec
    drift = spec.drift or ClusterDrift()
    return Config(
        identity=spec.identity_ref,
        jobs=merge_jobs(spec.jobs),
        drift_interval=_first_set((drift.interval_seconds,), flags.drift_interval),
        drift_action=drift.action or DriftAction.REPORT,
        deletion_policy=spec.deletion_policy or DeletionPolicy.DESTROY,
        deletion_protection=spec.deletion_protection is True,
        manual_apply=spec.apply_policy is ApplyPolicy.MANUAL,
        max_active_jobs=spec.max_active_jobs or flags.max_active_jobs,
    )


def machine_config(own: OwnSettings, cluster: TerraformCluster | None, flags: Flags) -> Config:
    """A machine under its cluster, None when that cannot be found."""
    remediation = _merge_remediation(own.remediation, _defaults(cluster).remediation)
    annotate = remediation.annotate_machine is True
    health = _seconds(remediation.health_check_interval_seconds) or DEFAULT_HEALTH_INTERVAL
    intervals = (own.drift_interval, *(drift.interval_seconds for drift in _drifts(cluster)))
    return Config(
        identity=_identity(own, cluster),
        jobs=_jobs(own, cluster),
        drift_interval=_first_set(intervals, flags.drift_interval),
        drift_action=DriftAction.REPORT,
        deletion_policy=_deletion_policy(own, cluster),
        deletion_protection=_deletion_protection(own, cluster),
        max_active_jobs=_max_active_jobs(cluster, flags),
        health_interval=health if annotate else _OFF,
        annotate_machine=annotate,
        unhealthy_threshold=remediation.unhealthy_threshold or DEFAULT_UNHEALTHY_THRESHOLD,
    )


def pool_config(own: OwnSettings, cluster: TerraformCluster | None, flags: Flags) -> Config:
    """A pool under its cluster. Its drift checks cannot be switched off: they find its members."""
    inherited = list(_drifts(cluster))
    intervals = (own.drift_interval, *(drift.interval_seconds for drift in inherited))
    positive = tuple(interval for interval in intervals if interval)
    actions = (own.drift_action, *(drift.action for drift in inherited))
    membership = own.membership_interval or _defaults(cluster).membership_refresh_interval_seconds
    return Config(
        identity=_identity(own, cluster),
        jobs=_jobs(own, cluster),
        drift_interval=_first_set(positive, flags.drift_interval or DEFAULT_DRIFT_INTERVAL),
        drift_action=next((action for action in actions if action), DriftAction.REPORT),
        deletion_policy=_deletion_policy(own, cluster),
        deletion_protection=_deletion_protection(own, cluster),
        max_active_jobs=_max_active_jobs(cluster, flags),
        membership_interval=_seconds(membership) or DEFAULT_MEMBERSHIP_INTERVAL,
    )


def merge_jobs(*policies: JobPolicy | None) -> JobPolicy:
    """One policy of several, the nearest first (api.md: Merging Job policies). What nobody sets
    stays unset.

    Its parts are shared with the policies it came from: it is for reading.
    """
    chain = [policy for policy in policies if policy is not None]
    merged = JobPolicy(env=_merge_env(chain), image_pull_secrets=_merge_pull_secrets(chain))
    for policy in chain:
        for name in _FIRST_WINS:
            if getattr(merged, name) == getattr(_UNSET, name):
                setattr(merged, name, getattr(policy, name))
    return merged


_UNSET = JobPolicy()
_FIRST_WINS = tuple(
    name for name in JobPolicy.__struct_fields__ if name not in ("env", "image_pull_secrets")
)


def _merge_env(chain: Iterable[JobPolicy]) -> list[EnvVar]:
    merged: dict[str, EnvVar] = {}
    for policy in chain:
        for entry in policy.env:
            merged.setdefault(entry.name, entry)
    return list(merged.values())


def _merge_pull_secrets(chain: Iterable[JobPolicy]) -> list[LocalObjectReference]:
    refs = {ref.name: ref for policy in chain for ref in policy.image_pull_secrets if ref.name}
    return list(refs.values())


def _merge_remediation(own: Remediation | None, default: Remediation | None) -> Remediation:
    first, second = own or Remediation(), default or Remediation()
    annotate = first.annotate_machine
    return Remediation(
        annotate_machine=second.annotate_machine if annotate is None else annotate,
        unhealthy_threshold=first.unhealthy_threshold or second.unhealthy_threshold,
        health_check_interval_seconds=(
            first.health_check_interval_seconds or second.health_check_interval_seconds
        ),
    )


def _defaults(cluster: TerraformCluster | None) -> ClusterDefaults:
    return (cluster.spec.defaults if cluster else None) or ClusterDefaults()


def _drifts(cluster: TerraformCluster | None) -> Iterator[ClusterDrift]:
    """What is inherited, nearest first."""
    if cluster is not None:
        for drift in (_defaults(cluster).drift, cluster.spec.drift):
            if drift is not None:
                yield drift


def _identity(own: OwnSettings, cluster: TerraformCluster | None) -> IdentityRef | None:
    inherited = _defaults(cluster).identity_ref or (cluster.spec.identity_ref if cluster else None)
    return own.identity or inherited


def _jobs(own: OwnSettings, cluster: TerraformCluster | None) -> JobPolicy:
    return merge_jobs(own.jobs, _defaults(cluster).jobs, cluster.spec.jobs if cluster else None)


def _deletion_policy(own: OwnSettings, cluster: TerraformCluster | None) -> DeletionPolicy | None:
    if own.deletion_policy is not None:
        return own.deletion_policy
    if cluster is None:
        return None
    inherited = _defaults(cluster).deletion_policy or cluster.spec.deletion_policy
    return inherited or DeletionPolicy.DESTROY


def _deletion_protection(own: OwnSettings, cluster: TerraformCluster | None) -> bool:
    """What is inherited does not stop Cluster API from scaling down, replacing machines or deleting
    the whole Cluster (api.md: Deletion protection)."""
    if own.deletion_protection is not None:
        return own.deletion_protection
    return not own.owner_ends and _defaults(cluster).deletion_protection is True


def _max_active_jobs(cluster: TerraformCluster | None, flags: Flags) -> int:
    return (cluster.spec.max_active_jobs if cluster else 0) or flags.max_active_jobs


def _first_set(intervals: Iterable[int | None], default: timedelta) -> timedelta:
    """Zero is a value here: it switches the check off."""
    chosen = next((interval for interval in intervals if interval is not None), None)
    return default if chosen is None else _seconds(chosen)


def _seconds(count: int) -> timedelta:
    return timedelta(seconds=min(max(count, 0), _LONGEST))
