"""When an object needs no more watching: pure, from its conditions."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum

from captfctl.model import keys, reasons
from captfctl.model.conditions import FALSE, TRUE, Type, find
from captfctl.model.core import Pod
from captfctl.model.meta import Condition
from captfctl.model.terraform import TerraformObject
from captfctl.runs.stuck import PULL_REASONS, told_by_node


class Standing(IntEnum):
    """Ordered by how much it matters for an exit code."""

    READY = 0
    WORKING = 1
    WAITING = 2
    FAILED = 3
    LACKING = 4
    """This machine cannot run what is due."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """`why` is empty for a ready object. `patience`: it may still resolve itself in a moment."""

    standing: Standing
    why: str = ""
    patience: bool = False

    @property
    def settled(self) -> bool:
        """Whether nothing is on its way any more."""
        return self.standing is not Standing.WORKING


# These are decided by other objects, which may be on their way.
_GATES = (
    Type.DEPENDENCIES_READY,
    Type.IDENTITY_ALLOWED,
    Type.CREDENTIALS_MIRRORED,
    Type.RUNNER_RBAC_READY,
)


def verdict(obj: TerraformObject, pods: Iterable[Pod] = (), request: str = "") -> Verdict:
    """How an object stands (`WORKING` while anything is still on its way).

    `pods` are those of its active Job. What it said before a pass answered `request` does not
    count: something may be due since, or what it waited for may have come.
    """
    status = obj.status
    if status.active_job is not None and (stuck := _stuck(status.active_job.name, pods)):
        return stuck
    if obj.deleting:
        return _deletion(obj)
    if status.observed_generation != obj.metadata.generation:
        return Verdict(Standing.WORKING, "its newest spec is not seen yet")
    if status.active_job is not None:
        return Verdict(Standing.WORKING, f"Job {status.active_job.name} runs")
    if keys.MANAGED_BY in obj.metadata.annotations:
        return Verdict(Standing.WAITING, f"somebody else manages it (annotation {keys.MANAGED_BY})")
    if request and (status.answer is None or status.answer.request != request):
        return Verdict(Standing.WORKING, "waiting for a pass")
    for judge in (_paused, _gates, _apply, _state, _inputs, _ready):
        found = judge(obj)
        if found is not None:
            return found
    return Verdict(Standing.WORKING)


_DESTROYED_ALL_THE_SAME = frozenset(
    {reasons.StateReadable.STATE_TOO_LARGE, reasons.StateReadable.STATE_LOCKED}
)


def _deletion(obj: TerraformObject) -> Verdict:
    """How an object stands that goes. What it said before it was deleted does not count."""
    deleting = _get(obj, Type.DELETING)
    if obj.status.active_job is None and deleting is not None and deleting.status == TRUE:
        for condition in (deleting, _get(obj, Type.STATE_READABLE)):
            if condition is None or condition.reason in _DESTROYED_ALL_THE_SAME:
                continue
            if _standing(condition) is reasons.Standing.PERSON:
                return Verdict(Standing.WAITING, _text(condition))
        blocked = _get(obj, Type.DELETION_BLOCKED)
        if blocked is not None and blocked.status == TRUE:
            return Verdict(Standing.WAITING, _text(blocked), patience=True)
    return Verdict(Standing.WORKING, "is being deleted")


def due_again(obj: TerraformObject, asked: datetime, now: datetime) -> datetime | None:
    """When what had failed before it was `asked` for is tried again; None: not known."""
    answer = obj.status.answer
    apply = _get(obj, Type.APPLY_JOB_SUCCEEDED)
    if answer is None or answer.until is None or answer.until <= now or apply is None:
        return None
    since = apply.last_transition_time
    return answer.until if since is not None and since <= asked else None


# What a node says of a container that it cannot start, and who can change that.
_UNSTARTED = {
    **dict.fromkeys(PULL_REASONS, Standing.WAITING),
    "CreateContainerConfigError": Standing.WAITING,
    "CreateContainerError": Standing.LACKING,
}


def _stuck(job: str, pods: Iterable[Pod]) -> Verdict | None:
    """What keeps a Job from starting, as the node says it; None when it says nothing."""
    for pod in pods:
        for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
            waiting = status.state.waiting if status.state else None
            if waiting is not None and waiting.reason in _UNSTARTED:
                why = f"Job {job} cannot start: {told_by_node(waiting)}"
                return Verdict(_UNSTARTED[waiting.reason], why, patience=True)
    return None


def _get(obj: TerraformObject, kind: Type) -> Condition | None:
    return find(obj.status.conditions, kind)


def _is(condition: Condition | None, status: str) -> bool:
    return condition is not None and condition.status == status


def _standing(condition: Condition) -> reasons.Standing | None:
    reason = reasons.reason_named(condition.type, condition.reason)
    return reason.standing if reason is not None else None


def _text(condition: Condition) -> str:
    reason, message = condition.reason, condition.message
    return reason if message in ("", reason) else f"{reason}: {message}"


def _paused(obj: TerraformObject) -> Verdict | None:
    paused = _get(obj, Type.PAUSED)
    if paused is not None and paused.status == TRUE:
        return Verdict(Standing.WAITING, _text(paused))
    return None


def _gates(obj: TerraformObject) -> Verdict | None:
    for kind in _GATES:
        gate = _get(obj, kind)
        if gate is not None and gate.status != TRUE:
            return Verdict(Standing.WAITING, _text(gate), patience=True)
    return None


def _apply(obj: TerraformObject) -> Verdict | None:
    apply = _get(obj, Type.APPLY_JOB_SUCCEEDED)
    if apply is None or apply.status == TRUE:
        return None
    if _standing(apply) is reasons.Standing.PERSON:
        return Verdict(Standing.WAITING, _text(apply))
    if apply.status == FALSE:
        applied = _get(obj, Type.INPUTS_APPLIED)
        if applied is not None and applied.reason == reasons.InputsApplied.APPLY_PENDING:
            return Verdict(Standing.WORKING, "its new inputs are about to be applied")
        return Verdict(Standing.FAILED, _text(apply))
    return Verdict(Standing.WORKING, _text(apply))


def _state(obj: TerraformObject) -> Verdict | None:
    for kind in (Type.STATE_READABLE, Type.OUTPUTS_VALID):
        condition = _get(obj, kind)
        if condition is not None and condition.status == FALSE:
            return Verdict(Standing.WAITING, _text(condition))
    return None


def _inputs(obj: TerraformObject) -> Verdict | None:
    """Inputs that are held until a person decides, while what was applied is well."""
    applied = _get(obj, Type.INPUTS_APPLIED)
    if applied is None or _standing(applied) is not reasons.Standing.PERSON:
        return None
    return Verdict(Standing.WAITING, _text(applied))


def _ready(obj: TerraformObject) -> Verdict | None:
    ready = _get(obj, Type.READY)
    if _is(ready, TRUE) and _is(_get(obj, Type.INPUTS_APPLIED), TRUE):
        return Verdict(Standing.READY)
    healthy = _get(obj, Type.INFRASTRUCTURE_HEALTHY)
    if healthy is None or _standing(healthy) is not reasons.Standing.PERSON:
        return None
    standing = Standing.FAILED if healthy.status == FALSE else Standing.WAITING
    return Verdict(standing, _text(healthy))
