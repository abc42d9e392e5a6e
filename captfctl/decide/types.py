"""What the decision reads and what it answers (decision.md: What the decision reads)."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType

import msgspec

from captfctl.decide import duration
from captfctl.decide.duration import Nanoseconds
from captfctl.model.ops import Op
from captfctl.model.plan import PlanReason


class Action(StrEnum):
    """What the pass does now."""

    NONE = "None"
    JOB = "Job"
    DROP_FINALIZER = "DropFinalizer"
    RETAIN = "Retain"


class Reason(StrEnum):
    """Why (decision.md: Reasons of decisions). A reason whose Job waits for its backoff ends in
    `Backoff`."""

    JOB_ACTIVE = "JobActive"
    DELETION_RETAINED = "DeletionRetained"
    RESTORE_REQUESTED = "RestoreRequested"
    DELETION_HELD = "DeletionHeld"
    DELETING_WITHOUT_STATE = "DeletingWithoutState"
    DELETING_WITHOUT_RESOURCES = "DeletingWithoutResources"
    DELETING = "Deleting"
    NO_STATE = "NoState"
    STATE_WITHOUT_INPUTS_HASH = "StateWithoutInputsHash"
    INPUTS_CHANGED = "InputsChanged"
    LAST_APPLY_FAILED = "LastApplyFailed"
    DRIFT_REMEDIATION = "DriftRemediation"
    PLAN_AWAITING_APPROVAL = "PlanAwaitingApproval"
    DESTRUCTIVE_PLAN_BLOCKED = "DestructivePlanBlocked"
    REFRESH_AFTER_APPLY = "RefreshAfterApply"
    MEMBERSHIP_CONVERGING = "MembershipConverging"
    HEALTH_PENDING = "HealthPending"
    MEMBERSHIP_REFRESH_DUE = "MembershipRefreshDue"
    HEALTH_CHECK_DUE = "HealthCheckDue"
    DRIFT_DUE = "DriftDue"
    UP_TO_DATE = "UpToDate"

    DELETING_BACKOFF = "DeletingBackoff"
    NO_STATE_BACKOFF = "NoStateBackoff"
    STATE_WITHOUT_INPUTS_HASH_BACKOFF = "StateWithoutInputsHashBackoff"
    INPUTS_CHANGED_BACKOFF = "InputsChangedBackoff"
    LAST_APPLY_FAILED_BACKOFF = "LastApplyFailedBackoff"
    DRIFT_REMEDIATION_BACKOFF = "DriftRemediationBackoff"
    REFRESH_AFTER_APPLY_BACKOFF = "RefreshAfterApplyBackoff"
    MEMBERSHIP_CONVERGING_BACKOFF = "MembershipConvergingBackoff"
    HEALTH_PENDING_BACKOFF = "HealthPendingBackoff"
    MEMBERSHIP_REFRESH_DUE_BACKOFF = "MembershipRefreshDueBackoff"
    HEALTH_CHECK_DUE_BACKOFF = "HealthCheckDueBackoff"
    DRIFT_DUE_BACKOFF = "DriftDueBackoff"

    @property
    def backing_off(self) -> bool:
        """Whether the operation waits for its backoff."""
        return self.value.endswith("Backoff")

    def backoff(self) -> "Reason":
        """The reason of waiting before doing this. Raises `ValueError` for one that never backs
        off."""
        if self not in _BACKOFFS:
            raise ValueError(f"{self} never backs off")
        return _BACKOFFS[self]


_BACKOFFS = {
    Reason(reason.removesuffix("Backoff")): reason for reason in Reason if reason.backing_off
}


_OF_SCHEDULE = (
    Reason.REFRESH_AFTER_APPLY,
    Reason.MEMBERSHIP_CONVERGING,
    Reason.HEALTH_PENDING,
    Reason.MEMBERSHIP_REFRESH_DUE,
    Reason.HEALTH_CHECK_DUE,
    Reason.DRIFT_DUE,
)
_SCHEDULED = frozenset(
    {Reason.UP_TO_DATE, *_OF_SCHEDULE, *(reason.backoff() for reason in _OF_SCHEDULE)}
)


class State(msgspec.Struct, frozen=True, kw_only=True):
    """The object's Terraform state as read in this pass."""

    exists: bool = False
    inputs_hash: str = ""
    """Recorded on the base state Secret by the adoption after a success; "" if none."""
    current_hash: str = ""
    """Of the inputs built in this pass; "" for immutable kinds or when a gate stopped the build."""
    pending: bool = False
    """`InfrastructureHealthy` is False/`InstancePending` after the outputs were mapped."""
    empty: bool = False
    """It has no managed resources, and nothing tells of any that it might not know."""


class Jobs(msgspec.Struct, frozen=True, kw_only=True):
    """What the object's finished Jobs tell."""

    active: bool = False
    failures: Mapping[Op, int] = MappingProxyType({})
    """Consecutive counted failures since the op's last success."""
    last_failure: Mapping[Op, datetime] = MappingProxyType({})
    """Finish time of the newest counted failure, per op."""
    failed_limit: int = 3
    """The effective `failedJobsHistoryLimit`, at least 1."""
    remediation_failures: int = 0
    """Failed applies that finished after the last drift check (reconcile.md: Drift remediation)."""
    last_apply_failed: bool = False
    """See reconcile.md: When the last apply counts as failed."""
    blocked_hash: str = ""
    """Inputs hash of the newest finished apply, if the runner blocked it."""
    blocked_at: datetime | None = None
    """When that apply finished."""
    blocked_approval: str = ""
    """That Job's approval hash (guard of a pool's exports change)."""
    empty_plan: str = ""
    """Inputs hash of the newest plan that changes nothing, if nothing finished after it."""


class PlanView(msgspec.Struct, frozen=True, kw_only=True):
    """The live plan object."""

    name: str
    reason: PlanReason
    inputs_hash: str
    plan_hash: str
    approved: bool = False


class DecideInput(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the decision depends on."""

    now: datetime
    deleting: bool = False
    mutable: bool = True
    """Cluster and pool: changed inputs are applied again. False for a machine."""
    state: State = msgspec.field(default_factory=State)
    jobs: Jobs = msgspec.field(default_factory=Jobs)
    last_refresh: datetime | None = None
    last_drift_check: datetime | None = None
    drift_interval: timedelta = duration.NO_TIME
    """Effective; zero is off."""
    refresh_after_apply: bool = False
    """Machine and pool: true. Cluster: false."""
    last_apply_succeeded: datetime | None = None
    """Finish of the newest finished apply, only if that one succeeded."""
    pending_refreshes: int = 0
    remediate: bool = False
    """Mutable, drift action `Remediate`, and drift was detected."""
    health_interval: timedelta = duration.NO_TIME
    """Effective once provisioned, else zero."""
    membership_interval: timedelta = duration.NO_TIME
    """Pools only, else zero."""
    converging: bool = False
    uid: str = ""
    """Seed of the jitter."""
    created: datetime | None = None
    approval_hash: str = ""
    """Pool apply guarded for an exports change: the hash its plan is made for."""
    unheld: bool = False
    """Pool: guarded, and a failed apply may have applied part of the change, or what exports were
    applied is not recorded."""
    restore: bool = False
    """A restore of an existing, unconsumed backup is requested."""
    state_held: bool = False
    """Deleting, and the state is lost, unreadable or unconfirmed."""
    retain: bool = False
    """Deleting with the effective deletion policy `Retain`."""
    first_apply: bool = False
    """Its own first apply began from nothing and none has succeeded: retries are not asked for."""
    manual_apply: bool = False
    """Cluster with `applyPolicy: Manual`."""
    plan: PlanView | None = None


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What to do now."""

    action: Action
    reason: Reason
    op: Op | None = None
    """Set for `Action.JOB`."""
    requeue_after: Nanoseconds = duration.ZERO
    """For `Action.NONE`: the time to the next pass; zero is no requeue."""
    expect_plan: str = ""
    """Plan hash that an approved apply must reproduce."""
    plan: str = ""
    """Name of the live plan object that the decision waits for or applies."""
    allow_deletes: str = ""
    """Approval hash of an approved exports change."""
    plan_flow: bool = False
    """True for every decision of the Manual flow: plan Job, wait, approved apply, their backoff."""
    waiting: Reason | None = None
    """`PLAN_AWAITING_APPROVAL` or `DESTRUCTIVE_PLAN_BLOCKED` while what has to be applied waits for
    a person, also when a scheduled refresh or drift Job runs meanwhile. Without a `plan` there is
    nothing to approve (decision.md: Manual and guarded applies)."""

    @property
    def applies_nothing(self) -> bool:
        """Whether nothing has to be applied, now or later."""
        return self.waiting is None and self.reason in _SCHEDULED

    @property
    def requeue_seconds(self) -> float:
        """`requeue_after` in seconds."""
        return duration.to_seconds(self.requeue_after)
