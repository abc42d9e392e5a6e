"""What is the case with an object's first apply, in words: for its health, and so for `Ready`."""

from captfctl.decide import constants
from captfctl.model.conditions import TRUE, Type
from captfctl.model.core import Job
from captfctl.model.meta import Condition
from captfctl.model.reasons import InfrastructureHealthy, Standing, WaitReason, reason_named
from captfctl.reconcile import credentials
from captfctl.reconcile.context import Pass
from captfctl.reconcile.known import Known
from captfctl.runs.stuck import Starting

_GATES = (Type.DEPENDENCIES_READY, *credentials.ORDER)


def started(p: Pass, job: str) -> None:
    """The first apply was started just now."""
    _say(p, f"the first apply is starting: Job {job}")


def running(p: Pass, job: Job, starting: Starting) -> None:
    """The Job of the first apply is there. Its pods are read live where none runs in time."""
    name = job.metadata.name
    if job.spec.suspend:
        _say(p, f"the first apply has not begun: Job {name} is suspended")
        return
    ready = bool(job.status.ready)
    if not ready and starting.age < constants.UNSTARTED_JOB_REQUEUE:
        started(p, name)
        return
    lacks = "" if ready else starting.lacks()
    if lacks:
        _say(p, f"the first apply has not begun: Job {name} {lacks}")
    else:
        _say(p, f"the first apply is running: Job {name}")


def none_running(p: Pass, known: Known) -> None:
    """Where a first apply began and none runs now: say so, and what is waited for."""
    health = p.conditions[Type.INFRASTRUCTURE_HEALTHY]
    if health is not None and health.reason == InfrastructureHealthy.PROVISIONING:
        _say(p, f"the first apply has not succeeded, and none is running: {_why(p, known)}")


def _why(p: Pass, known: Known) -> str:
    paused = p.conditions[Type.PAUSED]
    if paused is not None and paused.status == TRUE:
        return paused.message
    if p.deleting:
        return "the object is being deleted"
    closed = _closed(p, known)
    if closed is not None:
        return f"{closed.type} is {closed.status}, {closed.reason}"
    apply = p.conditions[Type.APPLY_JOB_SUCCEEDED]
    reason = reason_named(apply.type, apply.reason) if apply is not None else None
    if apply is None or reason is None:
        return "it is started again"
    if isinstance(reason, WaitReason):
        return apply.message
    return _BY_STANDING.get(reason.standing, "it is started again").format(reason)


_BY_STANDING = {
    Standing.PERSON: "{}, which waits for a person",
    Standing.FAILING: "{}, and it is tried again",
    Standing.DONE: "what it left is not read yet",
}


def _closed(p: Pass, known: Known) -> Condition | None:
    """The condition that keeps an apply from starting."""
    for kind in _GATES:
        found = p.conditions[kind]
        if found is not None and found.status != TRUE:
            return found
    if known.state is not None and known.state.held:
        return p.conditions[Type.STATE_READABLE]
    return None


def _say(p: Pass, text: str) -> None:
    p.conditions.set_reason(InfrastructureHealthy.PROVISIONING, text)
