"""Doing what was decided: the checks before a Job, then the Job (10 §11)."""

from dataclasses import dataclass
from datetime import timedelta

from captfctl.cluster.errors import ApiError
from captfctl.controller import Result
from captfctl.decide import Decision, Reason, constants, explain, jitter
from captfctl.decide.duration import to_seconds
from captfctl.model import keys
from captfctl.model.conditions import FALSE, ConditionValue, Type
from captfctl.model.events import EventReason
from captfctl.model.ops import Op
from captfctl.model.reasons import ApplyJobSucceeded, Deleting, DriftJobSucceeded
from captfctl.model.terraform import TerraformCluster
from captfctl.reconcile import credentials
from captfctl.reconcile.active import CONDITION_OF, provisioning
from captfctl.reconcile.context import Pass
from captfctl.reconcile.finish import finish
from captfctl.reconcile.rendering import Rendered, render_run
from captfctl.runs.slots import SlotLimits, slot_wait
from captfctl.runs.start import Deferred, Started, claim_of
from captfctl.runs.waits import Wait
from captfctl.terraform.contract.errors import InputsTooLarge
from captfctl.terraform.job.policy import policy_problem


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a due Job does not start now. `value` is for the condition `kind`; None leaves it."""

    requeue: timedelta
    kind: Type = Type.APPLY_JOB_SUCCEEDED
    value: ConditionValue | None = None


def run_job(p: Pass, decision: Decision) -> Result:
    """Start the decided Job, or say what it waits for."""
    ready = prepare(p, decision)
    if isinstance(ready, Obstacle):
        return _wait(p, ready)
    return _start(p, decision, ready)


def prepare(p: Pass, decision: Decision) -> Rendered | Obstacle:
    """Every check before a Job, in order. The last takes the leases."""
    op = decision.op
    assert op is not None
    if p.deleting:
        credentials.prepare(p)
        p.credentials_error = None  # it is in the conditions; the deletion only waits
    obstacle = _permission(p, op) or _dependencies(p) or _policy(p, op)
    if obstacle is not None:
        return obstacle
    slot = _slot(p, op)
    if slot is not None:
        return slot
    rendered = _render(p, decision)
    if isinstance(rendered, Obstacle):
        return rendered
    return _leases(p, rendered) or rendered


def _wait(p: Pass, obstacle: Obstacle) -> Result:
    value = obstacle.value
    own = value if obstacle.kind is Type.APPLY_JOB_SUCCEEDED else None
    if value is not None and own is None:
        p.set(obstacle.kind, value)
    return finish(p, obstacle.requeue, own)


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


def _dependencies(p: Pass) -> Obstacle | None:
    if p.deleting or p.inputs.gate is None:
        return None
    return Obstacle(constants.GATE_REQUEUE)


def _policy(p: Pass, op: Op) -> Obstacle | None:
    problem = "" if op in (Op.DESTROY, Op.RESTORE) else policy_problem(p.policy)
    if not problem:
        return None
    return Obstacle(constants.RETRY_MAX, value=ApplyJobSucceeded.JOB_POLICY_INVALID.says(problem))


def _slot(p: Pass, op: Op) -> Obstacle | None:
    limits = SlotLimits(p.env.settings.max_active_jobs, p.config.max_active_jobs)
    wait = slot_wait(p.env.cache, p.owner, op, limits)
    if wait is None:
        return None
    extra = to_seconds(jitter(p.owner.uid, constants.SLOT_REQUEUE))
    return _waiting(p, op, wait, constants.SLOT_REQUEUE + timedelta(seconds=extra))


def _waiting(p: Pass, op: Op, wait: Wait, requeue: timedelta) -> Obstacle:
    kind = CONDITION_OF[op]
    old = next((c for c in p.before if c.type == kind), None)
    if old is None or old.reason != wait.reason:
        p.env.metrics.lease_wait(p.kind, wait.reason.metric)
    return Obstacle(requeue, kind, wait.reason.says(wait.message))


def _render(p: Pass, decision: Decision) -> Rendered | Obstacle:
    try:
        rendered = render_run(p, decision)
    except InputsTooLarge as problem:
        p.inputs_bytes = problem.size
        return Obstacle(
            constants.RETRY_MAX, value=ApplyJobSucceeded.INPUTS_TOO_LARGE.says(str(problem))
        )
    if rendered is not None:
        return rendered
    if decision.op is Op.DESTROY:
        text = (
            "nothing to destroy with: the Secrets with the durable and the applied inputs are "
            "missing and the current inputs cannot be built; restore the Secrets, or set "
            "spec.deletionPolicy to Retain to keep the infrastructure"
        )
        return Obstacle(constants.RETRY_MAX, value=ApplyJobSucceeded.DESTROY_FAILED.says(text))
    text = "there are no inputs to check with"
    value = DriftJobSucceeded.DURABLE_INPUTS_MISSING.says(text)
    return Obstacle(constants.RETRY_MAX, Type.DRIFT_JOB_SUCCEEDED, value)


def _leases(p: Pass, rendered: Rendered) -> Obstacle | None:
    run = rendered.run
    wait = p.env.leases.acquire(claim_of(run))
    return _waiting(p, run.op, wait, constants.GATE_REQUEUE) if wait is not None else None


def _start(p: Pass, decision: Decision, rendered: Rendered) -> Result:
    run, starter = rendered.run, p.env.starter
    try:
        # On the server before the Job is: a move must not begin while something may be running.
        p.write_now(_hold_moves)
    except ApiError:
        starter.give_back(run)
        raise
    started = starter.start(run, explanation=explain(decision), lock=p.kept.lock)
    if isinstance(started, Deferred):
        return _deferred(p, started)
    _report_start(p, decision, rendered, started)
    p.obj.status.active_job = started.active
    if run.op is Op.APPLY:
        p.running_apply = started.job.metadata.name
        if not p.provisioned:
            provisioning(p)
    return finish(p, constants.ACTIVE_JOB_REQUEUE)


def _hold_moves(obj: TerraformCluster) -> None:
    obj.metadata.annotations.setdefault(keys.BLOCK_MOVE, keys.TRUE)


def _deferred(p: Pass, deferred: Deferred) -> Result:
    if not deferred.block_move:
        p.follow()
        p.stored.metadata.annotations.pop(keys.BLOCK_MOVE, None)
        p.obj.metadata.annotations.pop(keys.BLOCK_MOVE, None)
    return finish(p, constants.LAG_REQUEUE)


def _report_start(p: Pass, decision: Decision, rendered: Rendered, started: Started) -> None:
    p.record(*started.notes)
    job = started.job.metadata.name
    if rendered.run.force_unlock:
        p.env.metrics.force_unlocked(p.kind)
    if rendered.run.op not in (Op.APPLY, Op.PLAN) and not rendered.images.pinned:
        text = f"image {rendered.run.image} runs by its tag: no digest of it is recorded"
        p.record(EventReason.DIGEST_UNKNOWN.says(text, job=job))
    _report_mismatch(p, rendered, job)
    if decision.reason is Reason.INPUTS_CHANGED and not decision.plan:
        p.env.metrics.inputs_changed(p.kind)
        text = f"the inputs changed to {p.inputs.hash}"
        p.record(EventReason.INPUTS_CHANGED.says(text, job=job))
    if rendered.run.drift_remediation:
        text = f"Job {job} corrects the drift that was found"
        p.record(EventReason.DRIFT_REMEDIATION_STARTED.says(text, job=job))


def _report_mismatch(p: Pass, rendered: Rendered, job: str) -> None:
    record, state = rendered.record, p.state
    if record is None or state is None or not state.inputs_hash:
        return
    if record.inputs_hash != state.inputs_hash:
        text = (
            f"the destroy uses the inputs of Job {record.job}, {record.inputs_hash or 'none'}, but "
            f"the state is of {state.inputs_hash}"
        )
        p.record(EventReason.DESTROY_INPUTS_MISMATCH.says(text, job=job))
