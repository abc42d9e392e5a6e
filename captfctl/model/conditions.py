"""Conditions: their types, how one is set, and how they are summed up (specification 31 §1–§3)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from captfctl.model.meta import Condition, whole_seconds

MESSAGE_MAX = 32_768

TRUE: Final = "True"
FALSE: Final = "False"
UNKNOWN: Final = "Unknown"


class Type(StrEnum):
    """The condition types of cluster, machine and pool, in the order of 31 §1."""

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


@dataclass(frozen=True, slots=True)
class ConditionValue:
    """What a condition should become; the pass sets it on the object.

    An empty message stands for the reason.
    """

    status: str
    reason: str
    message: str = ""

    @classmethod
    def of(cls, condition: Condition) -> "ConditionValue":
        """What a condition says now."""
        return cls(condition.status, condition.reason, condition.message)


NEGATIVE = frozenset({Type.DRIFT_DETECTED, Type.DELETING, Type.DELETION_BLOCKED})

# These keep an empty message; every other one falls back to its reason.
_MAY_BE_SILENT = frozenset({"AutoscalingDisabled", "Ready", "StateRead"})

BEFORE_PROVISIONED = (
    Type.DEPENDENCIES_READY,
    Type.IDENTITY_ALLOWED,
    Type.CREDENTIALS_MIRRORED,
    Type.RUNNER_RBAC_READY,
    Type.APPLY_JOB_SUCCEEDED,
    Type.STATE_READABLE,
    Type.OUTPUTS_VALID,
    Type.INFRASTRUCTURE_HEALTHY,
    Type.DELETING,
)
AFTER_PROVISIONED = (Type.INFRASTRUCTURE_HEALTHY, Type.DELETING)


def cut(text: str, limit: int) -> str:
    """`text` within `limit` bytes of UTF-8, cut on a character boundary."""
    raw = text.encode()
    return text if len(raw) <= limit else raw[:limit].decode(errors="ignore")


def find(conditions: Iterable[Condition], kind: str) -> Condition | None:
    """The condition of that type; None when there is none."""
    return next((c for c in conditions if c.type == kind), None)


_ORDER: dict[str, int] = {kind.value: index for index, kind in enumerate(Type)}


def _place(condition: Condition) -> tuple[int, str]:
    return _ORDER.get(condition.type, len(_ORDER)), condition.type


class Conditions:
    """The conditions of one object while a pass works on it.

    Setting one keeps its transition time unless the status differs from the one that the object
    came with (31 §1.1): a status that a later step sets back has not changed.
    """

    def __init__(self, existing: Sequence[Condition], now: datetime, generation: int) -> None:
        self._found = {c.type: c for c in existing}
        self._by_type = dict(self._found)
        self._now = whole_seconds(now)
        self._generation = generation

    def __getitem__(self, kind: Type) -> Condition | None:
        return self._by_type.get(kind)

    def set(self, kind: Type, status: str, reason: str, message: str = "") -> Condition:
        """Set the condition. An empty message becomes the reason, where that says something."""
        old = self._found.get(kind)
        since = self._now if old is None or old.status != status else old.last_transition_time
        if not message and reason not in _MAY_BE_SILENT:
            message = reason
        new = Condition(
            type=kind,
            status=status,
            reason=reason,
            message=cut(message, MESSAGE_MAX),
            last_transition_time=since,
            observed_generation=self._generation,
        )
        self._by_type[kind] = new
        return new

    def set_default(self, kind: Type, status: str, reason: str, message: str = "") -> None:
        """Set it unless the object has it already."""
        if kind not in self._by_type:
            self.set(kind, status, reason, message)

    def remove(self, kind: Type) -> None:
        """Take the condition off the object."""
        self._by_type.pop(kind, None)

    def list(self) -> list[Condition]:
        """In a fixed order: ours as declared, then any other by name."""
        return sorted(self._by_type.values(), key=_place)

    def summarize_ready(self, provisioned: bool) -> None:
        """Set `Ready` from the others (31 §2.1)."""
        false, unknown = [], []
        for kind in AFTER_PROVISIONED if provisioned else BEFORE_PROVISIONED:
            found = self._by_type.get(kind)
            bad = TRUE if kind in NEGATIVE else FALSE
            if found is None:
                if kind is not Type.DELETING:
                    unknown.append(f"* {kind}: not known yet")
            elif found.status == bad:
                false.append(f"* {kind}: {found.message or found.reason}")
            elif found.status == UNKNOWN:
                unknown.append(f"* {kind}: {found.message or found.reason}")
        if false:
            self.set(Type.READY, FALSE, "NotReady", "\n".join(false + unknown))
        elif unknown:
            self.set(Type.READY, UNKNOWN, "ReadyUnknown", "\n".join(unknown))
        else:
            self.set(Type.READY, TRUE, "Ready")
