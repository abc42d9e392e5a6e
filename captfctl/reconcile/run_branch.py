"""What a pass does for an object that is not paused (reconcile.md: The run branch)."""

import math
from dataclasses import replace
from datetime import timedelta

from captfctl.decide import Action, Decision, Reason, constants, decide_op
from captfctl.model.events import EventReason
from captfctl.model.meta import ObjectMeta
from captfctl.model.ops import Op
from captfctl.reconcile import (
    active,
    cleanup,
    credentials,
    deletion,
    inputs,
    plans,
    restore,
    state_step,
)
from captfctl.reconcile.context import Pass
from captfctl.reconcile.finish import finish
from captfctl.reconcile.known import Decided, Ended, Known, StateView
from captfctl.reconcile.retain import retained_uid
from captfctl.reconcile.snapshot import snapshot
from captfctl.reconcile.starting import run_job
from captfctl.terraform.state.owners import repair_owner_references
from captfctl.terraform.state.reader import State, Unreadable, read_state


def run_branch(p: Pass, known: Known, found: State | Unreadable | None) -> Ended:
    """Decide, and do what was decided."""
    decided = decide(p, known, found)
    return decided if isinstance(decided, Ended) else act(p, decided)


def decide(p: Pass, known: Known, found: State | Unreadable | None) -> Decided | Ended:
    """Everything up to the decision; how the pass ended where it ends before anything is decided.

    `found` is the state, where the setup read it.
    """
    if known.books.active is not None:
        return active.watch(p, known, known.books.active)
    settled = active.settle(p, known)
    if settled is None:
        return finish(p, known, constants.LAG_REQUEUE)
    if p.deleting and deletion.is_destroyed(settled):
        return cleanup.destroyed(p, settled)
    if p.deleting and deletion.is_stopped(p):
        return _restore_or_wait(p, settled, found)
    found = found or read_state(p.env.door, p.owner)
    ended = deletion.retained_state(p, settled, found)
    if ended is not None:
        return ended
    known, view = state_step.take_over(p, settled, found)
    known = _with_request(p, known, view)
    ended = deletion.policy_gate(p, known, view)
    if ended is not None:
        return ended
    if not p.deleting:
        failed = credentials.prepare(p, known.identity)
        left = credentials.leave_old_copies(p, known.identity)
        known = replace(known, credentials_error=failed or left)
    _repair_owner_references(p, known, view)
    if not p.deleting and (p.rules.mutable or not p.provisioned):
        known = replace(known, inputs=inputs.build(p, known, view))
    if view.held and not deletion.retaining(p) and known.restore.backup is None:
        _count(p, "none", "DeletionHeld" if p.deleting else "StateHeld")
        return finish(p, known, constants.STATE_REQUEUE)
    decision = decide_op(snapshot(p, known, view))
    return Decided(decision, replace(known, decision=decision), view)


def _with_request(p: Pass, known: Known, view: StateView) -> Known:
    """With the restore that is asked for. A deletion that a state does not hold ignores it."""
    if p.deleting and (deletion.retaining(p) or not view.held):
        return known
    return replace(known, restore=restore.requested(p, known.books))


def _restore_or_wait(p: Pass, known: Known, found: State | Unreadable | None) -> Decided | Ended:
    """A deletion that is stopped: a restore that is asked for destroys nothing, and what its end
    says of the state is taken over at once."""
    if restore.is_asked_for(p) or known.books.unread:
        found = found or read_state(p.env.door, p.owner)
        if not retained_uid(p, known.records, found):
            known, view = state_step.take_over(p, known, found)
            known = _with_request(p, known, view)
            if known.restore.backup is not None:
                decision = decide_op(snapshot(p, known, view))
                return Decided(decision, replace(known, decision=decision), view)
    else:
        restore.forget_request(p)
    return finish(p, known, constants.GATE_REQUEUE)


def act(p: Pass, decided: Decided) -> Ended:
    """Do what was decided."""
    decided = plans.end_unwanted(p, decided)
    decision, known = decided.decision, decided.known
    match decision.action:
        case Action.DROP_FINALIZER:
            _count(p, "finalizer", decision.reason)
            return cleanup.nothing_to_destroy(p, known)
        case Action.RETAIN:
            _count(p, "finalizer", decision.reason)
            return cleanup.retained(p, known)
    if decision.op is not None:
        _count(p, decision.op.value, decision.reason)
        if decision.op is Op.APPLY and decision.plan:
            plans.confirm_approval(p, decision.plan)
        return run_job(p, decided, decision.op)
    _count(p, "none", decision.reason)
    wait = requeue(decision)
    if decided.state.backup_due or known.restore.refused:
        return finish(p, known, min(wait or constants.STATE_REQUEUE, constants.STATE_REQUEUE))
    settled = decision.reason is Reason.UP_TO_DATE and known.credentials_error is None
    return finish(p, known, wait, idle=decision.requeue_after if settled else None)


def requeue(decision: Decision) -> timedelta:
    """Not before the wait is over: the decision counts nanoseconds, and a remainder that is rounded
    down to nothing would mean "never"."""
    return timedelta(milliseconds=math.ceil(decision.requeue_seconds * 1000))


def _count(p: Pass, op: str, reason: str) -> None:
    p.env.metrics.decided(p.kind, op, reason)


def _owned(p: Pass, meta: ObjectMeta) -> bool:
    return any(ref.uid == p.owner.uid for ref in meta.owner_references)


def _repair_owner_references(p: Pass, known: Known, view: StateView) -> None:
    """After a move, or where a record was put back by hand. All of an object's Secrets move
    together, so what this pass read anyway tells whether there is anything to repair."""
    records = (known.records.attempt, known.records.applied)
    read = [record.metadata for record in records if record]
    read += view.state.chunks if view.state is not None else ()
    if all(_owned(p, meta) for meta in read):
        return
    replaced = repair_owner_references(p.env.door, p.owner, view.state).replaced
    if replaced:
        text = f"{replaced} Secrets named an earlier object of this name as their owner"
        p.record(EventReason.OWNER_REFERENCES_REPAIRED.says(text))
