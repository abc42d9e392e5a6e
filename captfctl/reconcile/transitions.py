"""Condition transitions as events: once per change, silent on good beginnings
(conditions-and-events.md: Which changes become events)."""

from collections.abc import Callable, Iterator, Sequence

from captfctl.model.conditions import FALSE, NEGATIVE, TRUE, Type
from captfctl.model.events import EventReason, Note
from captfctl.model.meta import Condition
from captfctl.model.reasons import Deleting, WaitReason, reason_named

REMEDIATION_MARK = "; remediation Job "

# `Paused` is told by the preamble; the other two never are.
_SILENT = frozenset({Type.PAUSED, Type.INPUTS_APPLIED, Type.RECONCILING})
_JOB_TYPES = frozenset(
    {Type.APPLY_JOB_SUCCEEDED, Type.DRIFT_JOB_SUCCEEDED, Type.RESTORE_JOB_SUCCEEDED}
)


def changed(before: Condition | None, after: Condition) -> bool:
    """Whether status or reason moved: what counts as a transition."""
    return before is None or (before.status, before.reason) != (after.status, after.reason)


def notes(before: Sequence[Condition], after: Sequence[Condition]) -> Iterator[Note]:
    """The events that `after` deserves when the last pass left `before`."""
    old = {condition.type: condition for condition in before}
    for condition in after:
        note = _note(old.get(condition.type), condition)
        if note is not None:
            yield note
        if _held_by_protection(old.get(condition.type), condition):
            yield _event(condition).says(describe(condition))


def _held_by_protection(before: Condition | None, after: Condition) -> bool:
    """Told beside `DeletionStarted`, which the same pass may have to tell."""
    protected = after.type == Type.DELETING and after.reason == Deleting.DELETION_PROTECTED
    return protected and changed(before, after)


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
    bad = _warns(before, after)
    if before is None and not bad:
        return None
    return _event(after).says(describe(after), warning=bad)


def _warns(before: Condition | None, after: Condition) -> bool:
    """As the table says; `Ready` warns only when it is lost."""
    if after.type == Type.READY and (before is None or before.status != TRUE):
        return False
    reason = reason_named(after.type, after.reason)
    if reason is not None:
        return reason.warning
    return after.status == (TRUE if after.type in NEGATIVE else FALSE)


def describe(condition: Condition) -> str:
    """`<Type>: <Status>/<Reason>: <message>`."""
    text = f"{condition.type}: {condition.status}/{condition.reason}"
    return f"{text}: {condition.message}" if condition.message else text


def _event(after: Condition) -> EventReason:
    """The event that the table names for the reason."""
    reason = reason_named(after.type, after.reason)
    return reason.event if reason is not None else EventReason.CONDITION_CHANGED


def _job_condition(before: Condition | None, after: Condition) -> Note | None:
    """Waits, and starts that failed without a Job; a finished Job has its own event."""
    if isinstance(reason_named(after.type, after.reason), WaitReason):
        return _event(after).says(describe(after)) if changed(before, after) else None
    if after.message.startswith("Job ") or not _warns(before, after):
        return None
    if after.type != Type.APPLY_JOB_SUCCEEDED:
        return _generic(before, after)
    return _event(after).says(describe(after)) if _again(before, after) else None


def _again(before: Condition | None, after: Condition) -> bool:
    """A transition, or for some types another message of the same problem."""
    if changed(before, after):
        return True
    return after.status == FALSE and before is not None and before.message != after.message


def _repeated(before: Condition | None, after: Condition) -> Note | None:
    """While the condition is False, another message of the same problem is told, too."""
    if after.status != FALSE:
        return _generic(before, after)
    return _event(after).says(describe(after)) if _again(before, after) else None


def _health(before: Condition | None, after: Condition) -> Note | None:
    if before is not None and changed(before, after):
        if after.status == TRUE:
            return EventReason.INSTANCE_HEALTHY.says(describe(after))
        if before.status == TRUE:
            return EventReason.INSTANCE_UNHEALTHY.says(describe(after))
    return _generic(before, after)


def _deleting(before: Condition | None, after: Condition) -> Note | None:
    if after.status != TRUE or (before is not None and before.status == TRUE):
        return None
    return EventReason.DELETION_STARTED.says("deletion of the object was requested")


def drift_summary(message: str) -> str:
    """A `DriftDetected` message without what a remediation added to it
    (reconcile.md: Drift remediation)."""
    return message.partition(REMEDIATION_MARK)[0]


def _drift(before: Condition | None, after: Condition) -> Note | None:
    if after.status == TRUE:
        told = (
            before is not None
            and before.status == TRUE
            and drift_summary(before.message) == drift_summary(after.message)
        )
        return None if told else _event(after).says(describe(after))
    if before is not None and before.status == TRUE and after.status == FALSE:
        return EventReason.DRIFT_RESOLVED.says(describe(after))
    return _generic(before, after)


_OWN: dict[str, Callable[[Condition | None, Condition], Note | None]] = {
    Type.STATE_READABLE: _repeated,
    Type.OUTPUTS_VALID: _repeated,
    Type.IDENTITY_ALLOWED: _repeated,
    Type.INFRASTRUCTURE_HEALTHY: _health,
    Type.DELETING: _deleting,
    Type.DRIFT_DETECTED: _drift,
}
