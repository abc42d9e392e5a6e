"""Starting the decided Job: what is checked before, then the start
(reconcile.md: Starting the decided operation)."""

import logging
from dataclasses import dataclass, replace
from datetime import timedelta

from captfctl.cluster.door import find
from captfctl.cluster.errors import ApiError, NamespaceTerminating
from captfctl.decide import Reason, constants, explain, jitter
from captfctl.decide.duration import to_seconds
from captfctl.model import names
from captfctl.model.conditions import FALSE, ConditionValue, Type
from captfctl.model.events import EventReason
from captfctl.model.meta import whole_seconds
from captfctl.model.ops import Op
from captfctl.model.reasons import (
    ApplyJobSucceeded,
    Deleting,
    DriftJobSucceeded,
    JobFailure,
    StateReadable,
    WaitReason,
)
from captfctl.model.resources import NAMESPACES
from captfctl.model.status import ActiveJob
from captfctl.reconcile import credentials, provisioning, state_step
from captfctl.reconcile.active import CONDITION_OF
from captfctl.reconcile.context import Pass
from captfctl.reconcile.finish import finish
from captfctl.reconcile.known import Decided, Ended, Known, StateView
from captfctl.reconcile.rendering import Rendered, render_run
from captfctl.runs.start import Deferred
from captfctl.runs.waits import Wait
from captfctl.terraform.contract.errors import InputsTooLarge
from captfctl.terraform.job.policy import policy_problem
from captfctl.terraform.state.lock import LockHolder

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a due Job does not start now. `value` is for the condition `kind`; None leaves it.
    `error` is worth trying again. `inputs_bytes` is the size of inputs that are too large."""

    requeue: timedelta
    kind: Type = Type.APPLY_JOB_SUCCEEDED
    value: ConditionValue | None = None
    error: Exception | None = None
    inputs_bytes: int = 0


def run_job(p: Pass, decided: Decided, op: Op) -> Ended:
    """Start the decided Job, or say what it waits for."""
    ready = prepare(p, decided, op)
    if isinstance(ready, Obstacle):
        return _wait(p, decided.known, ready)
    try:
        return _start(p, decided, ready)
    except NamespaceTerminating:
        return _wait(p, decided.known, _namespace_terminating(p, op))


def prepare(p: Pass, decided: Decided, op: Op) -> Rendered | Obstacle:
    """Every check before a Job, in order. The last waits for a Job slot and takes the leases."""
    failed = (
        credentials.prepare(p, decided.known.identity)
        if p.deleting
        else decided.known.credentials_error
    )
    try:
        ready = _check(p, decided, op)
    except NamespaceTerminating:
        return _namespace_terminating(p, op)
    if isinstance(ready, Obstacle):
        if _for_ever(p, ready, failed):
            return _namespace_terminating(p, op)
        if not p.deleting:  # else it is in the conditions, and the deletion only waits
            return replace(ready, error=failed)
    return ready


def _for_ever(p: Pass, obstacle: Obstacle, failed: Exception | None) -> bool:
    """Whether nobody can put right what the Job lacks, because the namespace is being deleted."""
    if isinstance(failed, NamespaceTerminating):
        return True
    waits = obstacle.value is not None and isinstance(obstacle.value.reason, WaitReason)
    if waits or not p.deleting:
        return False
    namespace = find(p.env.door, NAMESPACES, "", p.owner.namespace)
    return namespace is not None and namespace.deleting


def _namespace_terminating(p: Pass, op: Op) -> Obstacle:
    """Nothing that is tried again would help."""
    text = f"namespace {p.owner.namespace} is being deleted, so no Job can be created in it"
    if p.deleting:
        secret = names.state_secret(p.owner.suffix)
        text += (
            f" and nothing can be destroyed from here. Save the state, which Secret {secret} still "
            "holds, and destroy with it by hand, or let the infrastructure stay; then set "
            "spec.deletionPolicy to Retain, which releases the object. The state goes with the "
            "namespace"
        )
        p.conditions.set_reason(Deleting.DELETING, text)
    value = JobFailure.NAMESPACE_TERMINATING.says(text)
    return Obstacle(constants.GATE_REQUEUE, CONDITION_OF[op], value)


def _check(p: Pass, decided: Decided, op: Op) -> Rendered | Obstacle:
    obstacle = (
        _permission(p, op)
        or _dependencies(p, decided.known, op)
        or _policy(p, op)
        or _lock(p, decided.known, op)
    )
    if obstacle is not None:
        return obstacle
    rendered = _render(p, decided, op)
    if isinstance(rendered, Obstacle):
        return rendered
    return _slot(p, rendered) or _leases(p, rendered)


def _wait(p: Pass, known: Known, obstacle: Obstacle) -> Ended:
    known = replace(
        known,
        credentials_error=obstacle.error,
        inputs_bytes=obstacle.inputs_bytes or known.inputs_bytes,
    )
    value = obstacle.value
    own = value if obstacle.kind is Type.APPLY_JOB_SUCCEEDED else None
    if value is not None and own is None:
        p.set(obstacle.kind, value)
    return finish(p, known, obstacle.requeue, own)


def _permission(p: Pass, op: Op) -> Obstacle | None:
    allowed = p.conditions[Type.IDENTITY_ALLOWED]
    if op is Op.DESTROY and allowed is not None and allowed.status == FALSE:
        text = (
            f"the destroy needs credentials that the identity does not grant: {allowed.message}; "
            "restore the access, or set spec.deletionPolicy to Retain to keep the infrastructure"
        )
        return Obstacle(
            constants.GATE_REQUEUE, value=ApplyJobSucceeded.IDENTITY_NOT_ALLOWED.says(text)
        )
    lacking = credentials.missing(p)
    if lacking is None:
        return None
    if p.deleting:
        text = (
            f"{op.value} waits for {lacking.type}: {lacking.status}/{lacking.reason}: "
            f"{lacking.message}"
        )
        p.conditions.set_reason(Deleting.DELETING, text)
    return Obstacle(constants.GATE_REQUEUE)


def _dependencies(p: Pass, known: Known, op: Op) -> Obstacle | None:
    if p.deleting or op is Op.RESTORE or known.inputs.gate is None:
        return None
    return Obstacle(constants.GATE_REQUEUE)


def _policy(p: Pass, op: Op) -> Obstacle | None:
    problem = policy_problem(p.policy, op)
    if not problem:
        return None
    return Obstacle(constants.RETRY_MAX, value=ApplyJobSucceeded.JOB_POLICY_INVALID.says(problem))


_IN_THE_WAY = (
    StateReadable.STATE_CORRUPT,
    StateReadable.STATE_INCONSISTENT,
    StateReadable.STATE_ENCRYPTED,
)


def _lock(p: Pass, known: Known, op: Op) -> Obstacle | None:
    """A restore removes a state that cannot be read, but not from under somebody's hands
    (state.md: Restoring a backup). Any other Job waits for the lock itself."""
    lock, told = known.books.lock, p.conditions[Type.STATE_READABLE]
    if op is not Op.RESTORE or lock is None or lock.holder is not LockHolder.FOREIGN:
        return None
    if told is None or told.reason not in _IN_THE_WAY:
        return None
    text = f"the state, which cannot be read, is not removed for the restore: {lock.message}"
    value = StateReadable.STATE_LOCKED.says(text)
    return Obstacle(constants.STATE_REQUEUE, Type.STATE_READABLE, value)


def _slot(p: Pass, rendered: Rendered) -> Obstacle | None:
    run = rendered.run.run
    before = p.condition_before(CONDITION_OF[rendered.run.op])
    waited = before is not None and before.reason == WaitReason.JOB_SLOT
    since = before.last_transition_time if before is not None and waited else p.now
    wait = p.env.slots.take(run, p.config.max_active_jobs, since or p.now)
    if wait is None:
        return None
    extra = to_seconds(jitter(p.owner.uid, constants.SLOT_REQUEUE))
    requeue = constants.SLOT_REQUEUE + timedelta(seconds=extra)
    return _waiting(p, rendered.run.op, wait, requeue)


def _waiting(p: Pass, op: Op, wait: Wait, requeue: timedelta) -> Obstacle:
    kind = CONDITION_OF[op]
    old = p.condition_before(kind)
    if old is None or old.reason != wait.reason:
        p.env.metrics.lease_wait(p.kind, wait.reason.metric)
    return Obstacle(requeue, kind, wait.reason.says(wait.message))


def _render(p: Pass, decided: Decided, op: Op) -> Rendered | Obstacle:
    try:
        rendered = render_run(p, decided, op)
    except InputsTooLarge as problem:
        value = ApplyJobSucceeded.INPUTS_TOO_LARGE.says(str(problem))
        return Obstacle(constants.RETRY_MAX, value=value, inputs_bytes=problem.size)
    if rendered is not None:
        return rendered
    if op in (Op.APPLY, Op.PLAN):
        text = "the state is gone, and so are the Secrets with the inputs that were applied"
        value = StateReadable.STATE_LOST.says(text)
        return Obstacle(constants.STATE_REQUEUE, Type.STATE_READABLE, value)
    if op is Op.DESTROY:
        text = (
            "nothing to destroy with: the Secrets with the durable and the applied inputs are "
            "missing and the current inputs cannot be built; put the Secrets back, or set "
            "spec.deletionPolicy to Retain to keep the infrastructure"
        )
        return Obstacle(constants.RETRY_MAX, value=ApplyJobSucceeded.DESTROY_FAILED.says(text))
    text = "there are no inputs to check with"
    value = DriftJobSucceeded.DURABLE_INPUTS_MISSING.says(text)
    return Obstacle(constants.RETRY_MAX, Type.DRIFT_JOB_SUCCEEDED, value)


def _leases(p: Pass, rendered: Rendered) -> Rendered | Obstacle:
    spec, begun = rendered.run, p.env.clock.monotonic()
    try:
        wait = p.env.leases.acquire(spec.run)
    except ApiError:
        p.env.slots.give_up(spec.run)
        raise
    if wait is None:
        return replace(rendered, leased_at=begun)
    p.env.slots.give_up(spec.run)
    requeue = constants.UNSTARTED_JOB_REQUEUE if wait.short else constants.GATE_REQUEUE
    return _waiting(p, spec.op, wait, requeue)


def _start(p: Pass, decided: Decided, rendered: Rendered) -> Ended:
    spec, known = rendered.run, decided.known
    note = state_step.note_of_run(p, spec)
    started = p.env.starter.start(
        spec.run,
        p.env.work(spec),
        lambda: p.hold_moves(note),
        leased_at=rendered.leased_at,
    )
    if isinstance(started, Deferred):
        log.info("%s is not started: %s", spec.name, started.why)
        return finish(p, known, constants.LAG_REQUEUE)
    _report_start(p, decided, rendered)
    p.obj.status.active_job = ActiveJob(
        name=spec.name,
        operation=spec.op,
        attempt=spec.attempt,
        start_time=whole_seconds(p.env.clock.now()),
    )
    if spec.op is Op.APPLY:
        known = replace(known, running_apply=spec.name)
        if not p.provisioned:
            provisioning.started(p, spec.name)
    return finish(p, known, constants.ACTIVE_JOB_REQUEUE)


def _report_start(p: Pass, decided: Decided, rendered: Rendered) -> None:
    decision, known = decided.decision, decided.known
    run, job = rendered.run, rendered.run.name
    text = f"{run.op} attempt {run.attempt} with image {run.image}: {explain(decision)}"
    if run.approval_hash and known.inputs.guard is not None and known.inputs.guard.unheld:
        text += f"; it stops before it deletes or replaces, since {known.inputs.guard.unheld}"
    if wanted := rendered.images.instead_of:
        text += f"; a fallback: image {wanted} cannot be pulled"
    p.record(EventReason.JOB_CREATED.says(text, job=job))
    if removed := run.force_unlock or run.lock_to_remove:
        lock = known.books.lock
        holder = lock.who if lock and lock.who else "unknown"
        text = f"the state lock {removed} of {holder}, which is gone, is removed"
        p.record(EventReason.FORCE_UNLOCKED.says(text, job=job))
        p.env.metrics.force_unlocked(p.kind)
    if run.op not in (Op.APPLY, Op.PLAN) and not rendered.images.pinned:
        text = f"image {run.image} runs by its tag: no digest of it is recorded"
        p.record(EventReason.DIGEST_UNKNOWN.says(text, job=job))
    _report_mismatch(p, rendered, decided.state, job)
    if decision.reason is Reason.INPUTS_CHANGED and not (decision.plan or decision.expect_plan):
        p.env.metrics.inputs_changed(p.kind)
        text = f"the inputs changed to {known.inputs.hash}"
        p.record(EventReason.INPUTS_CHANGED.says(text, job=job))
    if run.drift_remediation:
        text = f"Job {job} corrects the drift that was found"
        p.record(EventReason.DRIFT_REMEDIATION_STARTED.says(text, job=job))


def _report_mismatch(p: Pass, rendered: Rendered, state: StateView, job: str) -> None:
    record = rendered.record
    if record is None or not state.inputs_hash:
        return
    if record.inputs_hash != state.inputs_hash:
        text = (
            f"the destroy uses the inputs of Job {record.job}, {record.inputs_hash or 'none'}, but "
            f"the state is of {state.inputs_hash}"
        )
        p.record(EventReason.DESTROY_INPUTS_MISMATCH.says(text, job=job))
