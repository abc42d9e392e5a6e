"""What a pass does for an object that is not paused (reconcile.md: The run branch)."""

import math
from datetime import timedelta

from captfctl.controller import Result
from captfctl.decide import Action, Decision, Reason, constants, decide_op
from captfctl.model.events import EventReason
from captfctl.model.meta import ObjectMeta
from captfctl.reconcile import (
    active,
    bookkeeping,
    cleanup,
    credentials,
    deletion,
    inputs,
    state_step,
)
from captfctl.reconcile.act import run_job
from captfctl.reconcile.context import Pass
from captfctl.reconcile.finish import MANUAL_WAIT, finish
from captfctl.reconcile.snapshot import snapshot
from captfctl.terraform.state.owners import repair_owner_references
from captfctl.terraform.state.reader import read_state


def run_branch(p: Pass) -> Result:
    """Decide, and do what was decided."""
    decided = decide(p)
    return decided if isinstance(decided, Result) else act(p, decided)


def decide(p: Pass) -> Decision | Result:
    """Everything up to the decision; a Result where the pass ends before anything is decided."""
    books = bookkeeping.keep(p)
    if books.active is not None:
        return active.watch(p, books.active)
    if not active.settle(p):
        return finish(p, constants.LAG_REQUEUE)
    if p.deleting:
        ended = deletion.before_state(p)
        if ended is not None:
            return ended
    found = p.state_read or read_state(p.env.door, p.owner)
    ended = deletion.retained_state(p, found)
    if ended is not None:
        return ended
    state_step.take_over(p, found)
    if not p.deleting:
        credentials.prepare(p)
        credentials.leave_old_copies(p)
    _repair_owner_references(p)
    if not p.deleting:
        inputs.build(p)
    assert p.state is not None
    if p.state.held and not deletion.retaining(p):
        # A requested restore is the one thing that may still run; it joins here.
        _count(p, "none", "DeletionHeld" if p.deleting else "StateHeld")
        return finish(p, constants.STATE_REQUEUE)
    return decide_op(snapshot(p))


def act(p: Pass, decision: Decision) -> Result:
    """Do what was decided."""
    awaited = decision.waiting is Reason.PLAN_AWAITING_APPROVAL
    p.awaiting_approval = MANUAL_WAIT if awaited else ""
    match decision.action:
        case Action.DROP_FINALIZER:
            _count(p, "finalizer", decision.reason)
            return cleanup.nothing_to_destroy(p)
        case Action.RETAIN:
            _count(p, "finalizer", decision.reason)
            return cleanup.retained(p)
        case Action.JOB:
            assert decision.op is not None
            _count(p, decision.op.value, decision.reason)
            return run_job(p, decision)
    _count(p, "none", decision.reason)
    if decision.reason is Reason.UP_TO_DATE and p.credentials_error is None:
        p.idle = decision.requeue_after
    return finish(p, requeue(decision))


def requeue(decision: Decision) -> timedelta:
    """Not before the wait is over: the decision counts nanoseconds, and a remainder that is rounded
    down to nothing would mean "never"."""
    return timedelta(milliseconds=math.ceil(decision.requeue_seconds * 1000))


def _count(p: Pass, op: str, reason: str) -> None:
    p.env.metrics.decided(p.kind, op, reason)


def _owned(p: Pass, meta: ObjectMeta) -> bool:
    return any(ref.uid == p.owner.uid for ref in meta.owner_references)


def _repair_owner_references(p: Pass) -> None:
    """After a move, or where a record was put back by hand. All of an object's Secrets move
    together, so what this pass read anyway tells whether there is anything to repair."""
    state = p.state.state if p.state is not None else None
    read = [record.metadata for record in (p.records.attempt, p.records.applied) if record]
    read += state.chunks if state is not None else ()
    if all(_owned(p, meta) for meta in read):
        return
    replaced = repair_owner_references(p.env.door, p.owner, state).replaced
    if replaced:
        text = f"{replaced} Secrets named an earlier object of this name as their owner"
        p.record(EventReason.OWNER_REFERENCES_REPAIRED.says(text))
