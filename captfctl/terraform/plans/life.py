"""What becomes of a plan (plans.md: Phases and what moves them). Nothing here writes."""

from dataclasses import dataclass

from captfctl.model import keys, names
from captfctl.model.conditions import Type, find
from captfctl.model.events import EventReason, Note
from captfctl.model.ops import Op
from captfctl.model.plan import PlanPhase, PlanReason, TerraformPlan
from captfctl.model.reasons import PlanApproved
from captfctl.terraform.books.results import FinishedRun
from captfctl.terraform.books.runs import Runs


@dataclass(frozen=True, slots=True)
class Transition:
    """The phase that a live plan has reached, and why."""

    phase: PlanPhase
    message: str = ""


def transition_after(plan: TerraformPlan, runs: Runs) -> Transition:
    """What these finished runs make of a live plan."""
    run = _apply_of(plan, runs)
    if run is not None and run.ok:
        return Transition(PlanPhase.APPLIED, f"Job {run.name} applied exactly this plan")
    if run is not None and run.plan_changed:
        text = f"Job {run.name} found that something else would be done by now; nothing was applied"
        return Transition(PlanPhase.FAILED, text)
    if runs.restore is not None and not any(_made(r, plan) for r in runs.of_this_state):
        return Transition(PlanPhase.SUPERSEDED, restored_since(runs.restore.name))
    return Transition(plan.phase)


def restored_since(job: str) -> str:
    """Why a plan from before a restore is not wanted: an address of it may be that of another
    object by now, which neither the address nor the hash of the plan tells."""
    return f"Job {job} may have put another state in place since it was made"


def _made(run: FinishedRun, plan: TerraformPlan) -> bool:
    spec = plan.spec
    return names.plan(spec.target_ref.name, run.name, spec.plan_hash) == plan.metadata.name


def _apply_of(plan: TerraformPlan, runs: Runs) -> FinishedRun | None:
    """The newest finished apply of the plan."""
    name = plan.metadata.name
    return next(
        (r for r in runs if r.op is Op.APPLY and r.job.metadata.annotations.get(keys.PLAN) == name),
        None,
    )


def recorded_phase(plan: TerraformPlan) -> str:
    """The phase that was written down last."""
    return plan.metadata.labels.get(keys.PLAN_PHASE, "")


def approved_too_late(plan: TerraformPlan) -> bool:
    """Whether it was approved after it was superseded, and nobody was told that this is ignored."""
    if plan.phase is not PlanPhase.SUPERSEDED or not plan.spec.approved:
        return False
    told = find(plan.status.conditions, Type.APPROVED)
    return told is None or told.reason != PlanApproved.APPROVAL_IGNORED


def why_unwanted(plan: TerraformPlan, *, inputs_hash: str, guarded: str, manual: bool) -> str:
    """Why a plan that the decision does not name is not wanted any more; empty when it still is.

    `inputs_hash`: of the inputs as they are. `guarded`: the approval hash of a change of exports
    that is held or guarded now.
    """
    spec = plan.spec
    if spec.reason is PlanReason.EXPORTS_CHANGE:
        if guarded == spec.inputs_hash:
            return ""
        return "other inputs are wanted by now" if guarded else _WITHDRAWN
    if spec.reason is PlanReason.MANUAL and not manual:
        return "applyPolicy is not Manual any more"
    if spec.reason is PlanReason.DESTRUCTIVE and manual:
        return "applyPolicy is Manual now"
    if spec.inputs_hash != inputs_hash:
        return f"the inputs are {inputs_hash} by now"
    return "nothing of these inputs has to be applied any more"


_WITHDRAWN = "the exports of the cluster are the applied ones again"


def event_of(plan: TerraformPlan, to: Transition, *, current: str = "") -> Note | None:
    """The event of a plan that came to a phase; None for one that its run tells.

    `current`: the plan that took its place.
    """
    name = plan.metadata.name
    match to.phase:
        case PlanPhase.APPROVED:
            by = f" by {plan.spec.approved_by}" if plan.spec.approved_by else ""
            return EventReason.PLAN_APPROVED.says(f"TerraformPlan {name} is approved{by}")
        case PlanPhase.APPLIED:
            return EventReason.PLAN_APPLIED.says(f"TerraformPlan {name}: {to.message}")
        case PlanPhase.SUPERSEDED:
            text = f"TerraformPlan {name} is superseded: {to.message}{_lost(plan, current)}"
            return EventReason.PLAN_SUPERSEDED.says(text, warning=plan.spec.approved)
    return None


def _lost(plan: TerraformPlan, current: str) -> str:
    if not plan.spec.approved:
        return ""
    by = f" by {plan.spec.approved_by}" if plan.spec.approved_by else ""
    now = f"; the current one is {current}" if current else ""
    return f"; its approval{by} applies nothing{now}"
