"""The condition types of our kinds, and what a condition can be."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from captfctl.model.meta import Condition

TRUE: Final = "True"
FALSE: Final = "False"
UNKNOWN: Final = "Unknown"


class Type(StrEnum):
    """The condition types of our kinds, in the order in which they are listed."""

    READY = "Ready"
    PAUSED = "Paused"
    DEPENDENCIES_READY = "DependenciesReady"
    IDENTITY_ALLOWED = "IdentityAllowed"
    CREDENTIALS_MIRRORED = "CredentialsMirrored"
    RUNNER_RBAC_READY = "RunnerRBACReady"
    APPLY_JOB_SUCCEEDED = "ApplyJobSucceeded"
    STATE_READABLE = "StateReadable"
    RESTORE_JOB_SUCCEEDED = "RestoreJobSucceeded"
    OUTPUTS_VALID = "OutputsValid"
    INFRASTRUCTURE_HEALTHY = "InfrastructureHealthy"
    DRIFT_JOB_SUCCEEDED = "DriftJobSucceeded"
    DRIFT_DETECTED = "DriftDetected"
    INPUTS_APPLIED = "InputsApplied"
    RECONCILING = "Reconciling"
    DELETING = "Deleting"
    DELETION_BLOCKED = "DeletionBlocked"
    ENDPOINT_AVAILABLE = "EndpointAvailable"
    AUTOSCALING_ACTIVE = "AutoscalingActive"
    APPROVED = "Approved"
    CAPACITY_RESOLVED = "CapacityResolved"


NEGATIVE = frozenset({Type.DRIFT_DETECTED, Type.DELETING, Type.DELETION_BLOCKED})
"""The types whose status True is the bad one."""


@dataclass(frozen=True, slots=True)
class ConditionValue:
    """What a condition should become; the pass sets it on the object.

    Made from a row of the table of reasons (`Reason.says`), or from what a condition says already.
    An empty message stands for the reason.
    """

    status: str
    reason: str
    message: str = ""

    @classmethod
    def of(cls, condition: Condition) -> "ConditionValue":
        """What a condition says now."""
        return cls(condition.status, condition.reason, condition.message)
