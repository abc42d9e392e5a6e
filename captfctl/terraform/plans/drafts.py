"""Which finished runs make a plan that can be approved (plans.md: Which runs make a plan)."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from captfctl.model import keys, names
from captfctl.model.ops import Op
from captfctl.model.owner import Owner
from captfctl.model.plan import PlanReason, PlanSummary, TerraformPlan, live_plan
from captfctl.terraform.books.results import FinishedRun
from captfctl.terraform.books.runs import Runs
from runner import wire

_HASH_MAX = 128


@dataclass(frozen=True, slots=True)
class Plans:
    """The plans of one object, newest first."""

    all: Sequence[TerraformPlan] = field(default=())

    @property
    def live(self) -> TerraformPlan | None:
        """The one that may still be applied."""
        return live_plan(self.all)

    @property
    def ended(self) -> frozenset[str]:
        """The names of those that came to an end."""
        return frozenset(plan.metadata.name for plan in self.all if not plan.live)

    def named(self, name: str) -> TerraformPlan | None:
        """The plan of that name; None when there is none, or none any more."""
        return next((plan for plan in self.all if plan.metadata.name == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A plan that a finished run made, before it is an object."""

    name: str
    job: str
    reason: PlanReason
    plan_hash: str
    inputs_hash: str
    summary: PlanSummary


def plan_hash(run: FinishedRun) -> str:
    """The fingerprint of the plan that a run reported, from its result or from its mark; empty for
    one that nothing could be compared with."""
    if run.result is not None:
        found = run.result.plan.hash if run.result.plan else ""
    else:
        found = run.job.metadata.annotations.get(keys.PLAN_HASH, "")
    return found if found.startswith(wire.PLAN_HASH_PREFIX) and len(found) <= _HASH_MAX else ""


def made_by(run: FinishedRun, owner: Owner) -> str:
    """The name of the plan that a run made; empty when it made none that changes anything."""
    found = plan_hash(run)
    if found in ("", wire.EMPTY_PLAN):
        return ""
    return names.plan(owner.name, run.name, found)


def empty_plan(runs: Runs) -> str:
    """The inputs hash that the newest apply or plan found nothing to do for; empty when it was not
    asked, or found something."""
    run = runs.newest(Op.APPLY, Op.PLAN)
    if run is None or not (run.plan_changed or (run.op is Op.PLAN and run.ok)):
        return ""
    return run.inputs_hash if plan_hash(run) == wire.EMPTY_PLAN else ""


def drafts_of(runs: Runs, owner: Owner, plans: Plans, *, manual: bool) -> tuple[Draft, ...]:
    """What the unread runs made, in the order in which they ended. What was planned for a state
    that is not there any more is no plan."""
    unread = runs.of_this_state.unread
    found = (draft(run, owner, plans, manual=manual) for run in reversed(unread))
    return tuple(one for one in found if one is not None)


def draft(run: FinishedRun, owner: Owner, plans: Plans, *, manual: bool) -> Draft | None:
    """The plan that an unread run made; None when there is nothing to approve.

    `manual`: the object's apply policy is `Manual`. A plan of the name that has ended is of a Job
    whose name came up again, as after a move: nobody can approve it.
    """
    name, result = made_by(run, owner), run.result
    if run.bookkept or result is None or result.plan is None or not name:
        return None
    if name in plans.ended:
        return None
    reason = _reason(run, plans, manual=manual)
    if reason is None:
        return None
    inputs = run.inputs_hash
    if reason is PlanReason.EXPORTS_CHANGE:
        inputs = run.job.metadata.annotations[keys.APPROVAL_HASH]
    return Draft(
        name=name,
        job=run.name,
        reason=reason,
        plan_hash=plan_hash(run),
        inputs_hash=inputs,
        summary=PlanSummary.of(result.plan),
    )


def _reason(run: FinishedRun, plans: Plans, *, manual: bool) -> PlanReason | None:
    """None: what is found to have changed since a destructive plan was approved is planned again by
    the next guarded apply."""
    if run.op is Op.PLAN and run.ok:
        return PlanReason.MANUAL
    notes = run.job.metadata.annotations
    if run.plan_changed:
        approved = plans.named(notes.get(keys.PLAN, ""))
        was_manual = manual if approved is None else approved.spec.reason is PlanReason.MANUAL
        return PlanReason.MANUAL if was_manual else None
    if run.blocked:
        by_approval = keys.APPROVAL_HASH in notes
        return PlanReason.EXPORTS_CHANGE if by_approval else PlanReason.DESTRUCTIVE
    return None
