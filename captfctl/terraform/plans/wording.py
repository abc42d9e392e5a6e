"""What conditions and events say about a plan that waits
(plans.md: Conditions while a plan waits)."""

from captfctl.model.conditions import ConditionValue
from captfctl.model.plan import PlanReason, TerraformPlan
from captfctl.model.reasons import ApplyJobSucceeded


def approve_command(name: str, namespace: str) -> str:
    """What a person runs to approve the plan; the last words of what is said."""
    return f"captfctl approve {name} -n {namespace}"


def how_to_approve(name: str, namespace: str) -> str:
    """Names the plan and tells how to approve it."""
    return (
        f"TerraformPlan {name} waits for an approval; read it, then run "
        f"{approve_command(name, namespace)}"
    )


def names_plan(message: str, name: str) -> bool:
    """Whether a condition's message is about the plan of that name."""
    return f"TerraformPlan {name} " in message


def waiting(plan: TerraformPlan, changed: tuple[str, str] | None = None) -> ConditionValue:
    """That nothing is applied before the plan is approved. `changed`: the Job that made it, and the
    approved plan that the Job was to apply."""
    spec, meta = plan.spec, plan.metadata
    text = (
        f"{spec.summary.counts}, from the inputs {spec.inputs_hash}; nothing is applied before; "
        f"{how_to_approve(meta.name, meta.namespace)}"
    )
    if spec.reason is not PlanReason.MANUAL:
        return ApplyJobSucceeded.DESTRUCTIVE_PLAN_BLOCKED.says(text)
    if changed is None:
        return ApplyJobSucceeded.PLAN_AWAITING_APPROVAL.says(text)
    job, before = changed
    old = f" ({before})" if before else ""
    start = f"Job {job}: what it would do is not what was approved{old}, nothing was applied; now "
    return ApplyJobSucceeded.PLAN_CHANGED.says(start + text)
