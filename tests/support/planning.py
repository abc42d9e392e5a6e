"""What runs say about plans, and people who approve them, in a world of tests."""

from typing import Any

from captfctl.model.core import Job
from captfctl.model.plan import TerraformPlan, plans_of
from captfctl.model.resources import TERRAFORM_PLANS
from runner import wire
from tests.support.cluster_world import NAMESPACE, World, variables

APPROVER = "jane@example.com"


def fingerprint(what: str) -> str:
    """The hash of a plan that does `what`."""
    return f"p2:{what.encode().hex():0<64}"


def planned(what: str = "replace", **counts: Any) -> dict[str, Any]:
    """A plan as a result has it."""
    resources = [f"t.{what} ({what})"]
    found = {"hash": fingerprint(what), "resources": resources} | {what: 1}
    return {"create": 0, "update": 0, "replace": 0, "delete": 0, **found, **counts}


NOTHING = {"hash": wire.EMPTY_PLAN, "create": 0, "update": 0, "delete": 0}


def block(world: World, job: Job, plan: dict[str, Any] | None = None) -> None:
    """The guarded apply stops before it deletes or replaces."""
    _stop(world, job, wire.BLOCKED, planned() if plan is None else plan)


def find_changed(world: World, job: Job, plan: dict[str, Any]) -> None:
    """The approved apply finds that it would do something else."""
    _stop(world, job, wire.PLAN_CHANGED, plan)


def _stop(world: World, job: Job, kind: str, plan: dict[str, Any]) -> None:
    error = {"kind": kind, "step": None, "tail": f"stopped: {kind}"}
    steps = [{"name": name, "exit": 0, "seconds": 0.1} for name in ("init", "validate", "plan")]
    result = {"op": "apply", "steps": steps, "error": error, "plan": plan}
    world.runner.end(job, ok=False, result=result)


def plans(world: World) -> list[TerraformPlan]:
    """Those of the world's object, newest first."""
    owner = world.owner
    found = world.door.list(TERRAFORM_PLANS, NAMESPACE).items
    return plans_of(found, owner.kind, owner.name, owner.uid)


def the_plan(world: World) -> TerraformPlan:
    (plan,) = plans(world)
    return plan


def live(world: World) -> TerraformPlan:
    (plan,) = [plan for plan in plans(world) if plan.live]
    return plan


def phases(world: World) -> list[str]:
    """As their status shows them, oldest first."""
    return [str(plan.status.phase) for plan in reversed(plans(world))]


def shown(plan: TerraformPlan) -> dict[str, str]:
    """`<status>/<reason>` of its conditions."""
    return {c.type: f"{c.status}/{c.reason}" for c in plan.status.conditions}


def approve(world: World, name: str = "") -> TerraformPlan:
    """As a person does."""
    spec = {"spec": {"approved": True, "approvedBy": APPROVER}}
    name = name or live(world).metadata.name
    return world.door.patch(TERRAFORM_PLANS, name, NAMESPACE, spec)


def change(world: World, text: str = '{"region":"eu-2"}') -> None:
    world.edit(variables(text))
