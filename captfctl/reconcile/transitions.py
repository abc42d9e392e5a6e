"""Condition transitions as events (31 §5.1, §5.2): once per change, silent on good beginnings."""

from collections.abc import Callable, Iterator, Sequence

from captfctl.model.conditions import FALSE, NEGATIVE, TRUE, UNKNOWN, Type
from captfctl.model.events import Action, Note
from captfctl.model.meta import Condition

WAITS = frozenset(
    {
        "WaitingForRunLease",
        "WaitingForClusterOperation",
        "WaitingForMachineOperations",
        "WaitingForJobSlot",
    }
)
REMEDIATION_MARK = "; remediation Job "

_BAD_UNKNOWN = frozenset({"IdentityCheckFailed", "HealthUnknown", "DurableInputsMissing"})
_NEVER_WARNING = frozenset(
    {
        "ReadyUnknown",
        "MirrorPending",
        "NoApplyYet",
        "StateNotFound",
        "OutputsPending",
        "Provisioning",
        "InstancePending",
        "DriftNotChecked",
        "DriftJobRunning",
        "NotBlocked",
        "PlanAwaitingApproval",
        "PlanChanged",
        "AutoscalingDisabled",
        "NotDeleting",
        "Deleting",
    }
)
# Said elsewhere: `Paused` by the preamble, outcomes of Jobs by bookkeeping; the last two never.
_SILENT = frozenset({Type.PAUSED, Type.INPUTS_APPLIED, Type.RECONCILING})
_JOB_TYPES = frozenset(
    {Type.APPLY_JOB_SUCCEEDED, Type.DRIFT_JOB_SUCCEEDED, Type.RESTORE_JOB_SUCCEEDED}
)
_STATE_REASONS = {
    "StateLost": "StateLost",
    "ApplyOutcomeUnknown": "StateLost",
    "StateLocked": "StateLocked",
    "RetainedStateFound": "RetainedStateFound",
}


def is_bad(condition: Condition, before: Condition | None = None) -> bool:
    """Whether a transition to this condition deserves a Warning (31 §5.1.3 to 5)."""
    if condition.reason in _NEVER_WARNING or condition.reason.startswith("WaitingFor"):
        return False
    if condition.type == Type.READY:
        return before is not None and before.status == TRUE and condition.status != TRUE
    if condition.status == UNKNOWN:
        return condition.reason in _BAD_UNKNOWN
    return condition.status == (TRUE if condition.type in NEGATIVE else FALSE)


def changed(before: Condition | None, after: Condition) -> bool:
    """Whether status or reason moved: what counts as a transition (31 §5.1.1, .10)."""
    return before is None or (before.status, before.reason) != (after.status, after.reason)


def notes(before: Sequence[Condition], after: Sequence[Condition]) -> Iterator[Note]:
    """The events that `after` deserves when the last pass left `before`."""
    old = {condition.type: condition for condition in before}
    for condition in after:
        note = _note(old.get(condition.type), condition)
        if note is not None:
            yield note


def _note(before: Condition | None, after: Condition) -> Note | None:
    if after.type in _SILENT:
        return None
    if after.type in _JOB_TYPES:
        return _job_condition(before, after)
    own = _OWN.get(after.type)
    if own is not None:
        return own(before, after)
    return _generic(before, after)


def _generic(before: Condition | None, after: Condition) -> Note | None:
    if not changed(before, after):
        return None
    bad = is_bad(after, before)
    if before is None and not bad:
        return None
    return Note("ConditionChanged", describe(after), Action.RECONCILE, warning=bad)


def describe(condition: Condition) -> str:
    """`<Type>: <Status>/<Reason>: <message>` (31 §5.1.2)."""
    text = f"{condition.type}: {condition.status}/{condition.reason}"
    return f"{text}: {condition.message}" if condition.message else text


def _job_condition(before: Condition | None, after: Condition) -> Note | None:
    """Waits, and starts that failed without a Job; a finished Job has its own event."""
    if after.reason in WAITS:
        if not changed(before, after):
            return None
        return Note(after.reason, describe(after), Action.RUN)
    if after.status != FALSE or after.message.startswith("Job "):
        return None
    if before is not None and not changed(before, after) and before.message == after.message:
        return None
    if after.reason == "DestructivePlanBlocked":
        return Note("DestructivePlanBlocked", describe(after), Action.PLAN, warning=True)
    if after.type == Type.APPLY_JOB_SUCCEEDED:
        return Note("JobFailed", describe(after), Action.RUN, warning=True)
    return _generic(before, after)


def _again(before: Condition | None, after: Condition) -> bool:
    """A transition, or for some types another message of the same problem (31 §5.1.6)."""
    if changed(before, after):
        return True
    return after.status == FALSE and before is not None and before.message != after.message


def _renamed(reason: Callable[[Condition], str], action: Action) -> Callable[..., Note | None]:
    """Events with a reason of their own while the condition is False, else the general rule."""

    def note(before: Condition | None, after: Condition) -> Note | None:
        if after.status != FALSE:
            return _generic(before, after)
        if not _again(before, after):
            return None
        return Note(reason(after), describe(after), action, warning=True)

    return note


def _health(before: Condition | None, after: Condition) -> Note | None:
    if before is not None and changed(before, after):
        if after.status == TRUE:
            return Note("InstanceHealthy", describe(after), Action.RECONCILE)
        if before.status == TRUE:
            return Note("InstanceUnhealthy", describe(after), Action.RECONCILE, warning=True)
    return _generic(before, after)


def _deleting(before: Condition | None, after: Condition) -> Note | None:
    if after.status != TRUE or (before is not None and before.status == TRUE):
        return None
    return Note("DeletionStarted", "deletion of the object was requested", Action.DELETE)


def drift_summary(message: str) -> str:
    """A `DriftDetected` message without what a remediation added to it (10 §14.3)."""
    return message.partition(REMEDIATION_MARK)[0]


def _drift(before: Condition | None, after: Condition) -> Note | None:
    if after.status == TRUE:
        told = (
            before is not None
            and before.status == TRUE
            and drift_summary(before.message) == drift_summary(after.message)
        )
        if told:
            return None
        return Note("DriftDetected", describe(after), Action.RECONCILE, warning=True)
    if before is not None and before.status == TRUE and after.status == FALSE:
        return Note("DriftResolved", describe(after), Action.RECONCILE)
    return _generic(before, after)


_OWN: dict[str, Callable[[Condition | None, Condition], Note | None]] = {
    Type.STATE_READABLE: _renamed(
        lambda c: _STATE_REASONS.get(c.reason, "StateUnreadable"), Action.RECONCILE
    ),
    Type.OUTPUTS_VALID: _renamed(lambda _: "OutputsInvalid", Action.RECONCILE),
    Type.IDENTITY_ALLOWED: _renamed(lambda _: "IdentityNotAllowed", Action.CREDENTIALS),
    Type.INFRASTRUCTURE_HEALTHY: _health,
    Type.DELETING: _deleting,
    Type.DRIFT_DETECTED: _drift,
}
