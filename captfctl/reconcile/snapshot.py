"""Everything the decision depends on, put together (decision.md: What the decision reads)."""

from datetime import timedelta

from captfctl.decide import DecideInput, Jobs, State
from captfctl.model import keys
from captfctl.model.conditions import TRUE, Type
from captfctl.model.ops import Op
from captfctl.model.terraform import DriftAction
from captfctl.reconcile import plans
from captfctl.reconcile.context import Pass
from captfctl.reconcile.deletion import retaining
from captfctl.reconcile.finish import first_apply_unfinished, last_apply_failed
from captfctl.reconcile.known import Known, StateView
from captfctl.reconcile.state_step import pending
from captfctl.terraform.job.policy import failed_limit

_OFF = timedelta(0)


def snapshot(p: Pass, known: Known, view: StateView) -> DecideInput:
    """The object as `decide_op` sees it."""
    status, config = p.obj.status, p.config
    newest = known.books.newest(Op.APPLY)
    guard = known.inputs.guard if known.inputs.guarded else None
    return DecideInput(
        now=p.now,
        deleting=p.deleting,
        mutable=p.rules.mutable,
        state=_state(p, known, view),
        jobs=_jobs(p, known),
        last_refresh=status.last_refresh,
        last_drift_check=status.last_drift_check,
        drift_interval=config.drift_interval,
        last_apply_succeeded=newest.finished_at if newest is not None and newest.ok else None,
        pending_refreshes=status.pending_refreshes,
        remediate=p.rules.mutable and config.drift_action is DriftAction.REMEDIATE and _drifted(p),
        health_interval=config.health_interval if p.provisioned else _OFF,
        membership_interval=config.membership_interval,
        refresh_after_apply=p.rules.refresh_after_apply,
        converging=view.state is not None and (p.rules.converging or _comes_up(p)),
        uid=p.owner.uid,
        created=p.obj.metadata.creation_timestamp,
        state_held=p.deleting and view.held,
        restore=known.restore.backup is not None,
        retain=retaining(p),
        first_apply=first_apply_unfinished(p, known),
        manual_apply=config.manual_apply,
        approval_hash=guard.approval_hash if guard is not None else "",
        unheld=guard is not None and bool(guard.unheld),
        plan=plans.view(known),
    )


def _comes_up(p: Pass) -> bool:
    """A pool that is still coming up is looked at as often as one whose members change."""
    return bool(p.config.membership_interval) and pending(p)


def _state(p: Pass, known: Known, view: StateView) -> State:
    state = view.state
    return State(
        exists=view.exists or known.books.unsaved.kept is not None,
        inputs_hash=view.inputs_hash,
        current_hash=known.inputs.hash,
        pending=pending(p),
        empty=state is not None and state.resources == 0 and _all_is_known(known),
    )


def _all_is_known(known: Known) -> bool:
    """Whether the state tells of everything: no apply is unconfirmed, none left a state that is not
    stored, and no one works on it."""
    lock = known.books.lock
    at_work = lock is not None and lock.in_use
    return not (known.records.marks.interrupted_apply or known.books.unsaved or at_work)


def _jobs(p: Pass, known: Known) -> Jobs:
    books = known.books
    newest = books.newest(Op.APPLY, Op.RESTORE)  # another state may not be in the way of it
    blocked = newest if newest is not None and newest.blocked else None
    annotations = blocked.job.metadata.annotations if blocked else {}
    failed = {op: books.failures.of(op, known.inputs.counted_hash) for op in Op}
    return Jobs(
        failures={op: found.count for op, found in failed.items()},
        last_failure={op: f.last for op, f in failed.items() if f.last is not None},
        failed_limit=failed_limit(p.policy),
        remediation_failures=books.remediation_failures,
        last_apply_failed=last_apply_failed(known),
        blocked_hash=annotations.get(keys.INPUTS_HASH, ""),
        blocked_at=blocked.finished_at if blocked else None,
        blocked_approval=annotations.get(keys.APPROVAL_HASH, ""),
        empty_plan=books.empty_plan,
    )


def _drifted(p: Pass) -> bool:
    found = p.conditions[Type.DRIFT_DETECTED]
    return found is not None and found.status == TRUE
