"""The plans of an object in its pass (plans.md: The life of a plan)."""

from collections.abc import Iterable
from dataclasses import replace

from captfctl.decide import PlanView
from captfctl.model import keys
from captfctl.model.conditions import ConditionValue, Type
from captfctl.model.ops import Op
from captfctl.model.plan import PlanPhase, PlanReason, TerraformPlan, plans_of
from captfctl.model.reasons import ApplyJobSucceeded
from captfctl.reconcile.context import DecideAgain, Pass
from captfctl.reconcile.known import Decided, Known
from captfctl.terraform.plans.drafts import Draft, Plans, made_by
from captfctl.terraform.plans.life import (
    Transition,
    approved_too_late,
    event_of,
    recorded_phase,
    restored_since,
    transition_after,
    why_unwanted,
)
from captfctl.terraform.plans.store import PlanStore
from captfctl.terraform.plans.wording import names_plan, waiting

_WAITS = frozenset(
    {
        ApplyJobSucceeded.PLAN_AWAITING_APPROVAL,
        ApplyJobSucceeded.PLAN_CHANGED,
        ApplyJobSucceeded.DESTRUCTIVE_PLAN_BLOCKED,
    }
)


def _store(p: Pass) -> PlanStore:
    return PlanStore(p.env.door, p.owner, p.now)


def load(p: Pass) -> Plans:
    """The object's plans, as cached; read live where the object says something else about them.

    The object is written after its plans, and before its Jobs are marked as read: with a current
    object, a cache of plans that is behind is noticed.
    """
    if not p.rules.keeps_plans:
        return Plans()
    owner, store = p.owner, _store(p)
    cached = plans_of(p.env.cache.plans(owner), owner.kind, owner.name, owner.uid)
    found = {plan.metadata.name: plan for plan in cached}
    for name in _doubtful(Plans(tuple(cached)), p.rules.shown_plan):
        plan = store.read(name)
        found.pop(name, None)
        if plan is not None:
            found[name] = plan
    return Plans(tuple(plans_of(found.values(), owner.kind, owner.name, owner.uid)))


def _doubtful(plans: Plans, shown: str) -> set[str]:
    live = plans.live.metadata.name if plans.live else ""
    if live == shown:
        return set()
    return {live, shown} - {""}


def view(known: Known) -> PlanView | None:
    """The live plan as the decision sees it."""
    plan = known.plans.live
    if plan is None:
        return None
    return PlanView(
        name=plan.metadata.name,
        reason=plan.spec.reason,
        inputs_hash=plan.spec.inputs_hash,
        plan_hash=plan.spec.plan_hash,
        approved=plan.spec.approved,
    )


# After bookkeeping.


def keep(p: Pass, known: Known) -> Known:
    """Move plans on by what finished runs tell, and make those that are new.

    An error leaves the Jobs unmarked: the next pass reads them again and finds what is there.
    """
    if not p.rules.keeps_plans:
        return known
    moved = (_moved(p, known, plan) for plan in known.plans.all)
    plans = Plans(tuple(plan for plan in moved if plan is not None))
    for draft in known.books.drafts:
        plans = _made(p, plans, draft)
    return replace(known, plans=_with_one_live(p, plans))


def _moved(p: Pass, known: Known, plan: TerraformPlan) -> TerraformPlan | None:
    store = _store(p)
    if not plan.live:
        if approved_too_late(plan):
            _report(p, plan, Transition(PlanPhase.SUPERSEDED, "it was so before it was approved"))
        return store.show(plan, plan.phase)  # where it was lost, as by a move
    to = transition_after(plan, known.books.finished)
    if recorded_phase(plan) == to.phase:
        return store.show(plan, to.phase)
    written = store.move(plan, to.phase, to.message)
    if written is None:
        return store.read(plan.metadata.name)
    if recorded_phase(plan) == PlanPhase.PENDING and plan.spec.approved:
        _report(p, written, Transition(PlanPhase.APPROVED))
    if to.phase is not PlanPhase.APPROVED:
        _report(p, written, to)
    return written


def _made(p: Pass, plans: Plans, draft: Draft) -> Plans:
    if plans.named(draft.name) is not None:
        return plans
    written = _store(p).make(draft)
    plans = Plans((written.plan, *plans.all))
    if not written.made:
        return Plans(tuple(_ordered(p, plans.all)))
    p.env.metrics.plan_moved(p.kind, "created", destructive=draft.summary.destructive)
    return _replaced(p, plans, written.plan)


def _with_one_live(p: Pass, plans: Plans) -> Plans:
    """A pass that ended between making a plan and ending the one before left two."""
    live = plans.live
    return plans if live is None else _replaced(p, plans, live)


def _replaced(p: Pass, plans: Plans, by: TerraformPlan) -> Plans:
    """Without any other live plan."""
    name = by.metadata.name
    to = Transition(PlanPhase.SUPERSEDED, f"TerraformPlan {name} took its place")
    for plan in plans.all:
        if plan.live and plan.metadata.name != name:
            plans = _superseded(p, plans, plan, to, current=name)
    return plans


def _superseded(
    p: Pass, plans: Plans, plan: TerraformPlan, to: Transition, *, current: str = ""
) -> Plans:
    store, name = _store(p), plan.metadata.name
    written = store.move(plan, to.phase, to.message)
    if written is not None:
        _report(p, written, to, current=current)
    left = written or store.read(name)
    others = (other for other in plans.all if other.metadata.name != name)
    return Plans(tuple(_ordered(p, (*others, *((left,) if left else ())))))


def _ordered(p: Pass, plans: Iterable[TerraformPlan]) -> list[TerraformPlan]:
    return plans_of(plans, p.owner.kind, p.owner.name, p.owner.uid)


def _report(p: Pass, plan: TerraformPlan, to: Transition, *, current: str = "") -> None:
    destructive = plan.spec.summary.destructive
    p.env.metrics.plan_moved(p.kind, to.phase.lower(), destructive=destructive)
    note = event_of(plan, to, current=current)
    if note is not None:
        p.record(note)


def end_of_earlier_state(p: Pass, known: Known, restore: str) -> Known:
    """End the live plan after a restore whose Job was deleted while it ran."""
    live = known.plans.live
    if live is None:
        return known
    p.confirm()
    to = Transition(PlanPhase.SUPERSEDED, restored_since(restore))
    return replace(known, plans=_superseded(p, known.plans, live, to))


# After the decision.


def end_unwanted(p: Pass, decided: Decided) -> Decided:
    """End a live plan that the decision is not about any more, and remove the oldest that came to
    an end. Not where the inputs are not known, and not before a restore."""
    known, decision = decided.known, decided.decision
    if not p.rules.keeps_plans or p.deleting:
        return decided
    plans, live = known.plans, known.plans.live
    unknown = not known.inputs.hash or decision.op is Op.RESTORE
    if live is not None and decision.plan != live.metadata.name and not unknown:
        message = why_unwanted(
            live,
            inputs_hash=known.inputs.hash,
            guarded=known.inputs.guard.approval_hash if known.inputs.guard else "",
            manual=p.config.manual_apply,
        )
        if message:
            p.confirm()  # an outdated object must not end the plan of the present one
            plans = _superseded(p, plans, live, Transition(PlanPhase.SUPERSEDED, message))
    plans = _store(p).prune(plans)
    return decided if plans == known.plans else replace(decided, known=replace(known, plans=plans))


def confirm_approval(p: Pass, name: str) -> None:
    """Read live that the plan which is about to be applied is approved, and has not ended."""
    plan = _store(p).read(name)
    if plan is None or not plan.live or not plan.spec.approved:
        raise DecideAgain


# At the end of the pass.


def awaits_approval(known: Known) -> bool:
    """Whether this pass found that something waits for a person."""
    plan, decision = known.plans.live, known.decision
    if plan is None or plan.spec.approved or decision is None:
        return False
    decided = decision.waiting is not None and decision.plan == plan.metadata.name
    return decided or bool(known.inputs.held)


def wait(p: Pass, known: Known) -> ConditionValue | None:
    """What `ApplyJobSucceeded` says while a plan waits; None where bookkeeping knows it better, or
    nothing waits."""
    plan = known.plans.live
    if plan is None or plan.spec.approved or p.deleting:
        return None
    if known.decision is None:
        return _said_before(p, known, plan)
    if not awaits_approval(known) or _told_by_run(known, plan):
        return None
    return waiting(plan, _change(p, known, plan))


def _told_by_run(known: Known, plan: TerraformPlan) -> bool:
    """The run that stopped names what it would destroy."""
    said = known.books.apply_condition
    blocked = said.reason == ApplyJobSucceeded.DESTRUCTIVE_PLAN_BLOCKED
    return blocked and names_plan(said.message, plan.metadata.name)


def _change(p: Pass, known: Known, plan: TerraformPlan) -> tuple[str, str] | None:
    """The newest apply and the plan it was to apply, if it found another one, which is this."""
    run = known.books.newest(Op.APPLY)
    if run is None or not run.plan_changed or made_by(run, p.owner) != plan.metadata.name:
        return None
    return run.name, run.job.metadata.annotations.get(keys.PLAN, "")


def _said_before(p: Pass, known: Known, plan: TerraformPlan) -> ConditionValue | None:
    """Where a pass decides nothing, as while a drift check runs, the wait goes on."""
    before = p.condition_before(Type.APPLY_JOB_SUCCEEDED)
    if before is None or before.reason not in _WAITS:
        return None
    if plan.spec.reason is PlanReason.MANUAL and not p.config.manual_apply:
        return None
    applied = any(run.op is Op.APPLY for run in known.books.unread)
    if applied or not names_plan(before.message, plan.metadata.name):
        return None
    return ConditionValue.of(before)
