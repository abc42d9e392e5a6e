"""Whether a plan can be approved: the checks in their order, and what is worth a warning
(plans.md: Approving)."""

from captfctl.approvals.evidence import Evidence, Request
from captfctl.approvals.refused import Refused, Rule, malformed
from captfctl.model import keys
from captfctl.model.condition_types import Type
from captfctl.model.conditions import find
from captfctl.model.meta import Condition
from captfctl.model.plan import APPROVER_MAX, PlanReason
from captfctl.model.reasons import Paused, Standing, reason_named
from captfctl.model.terraform import ApplyPolicy, TerraformCluster
from runner import wire

__all__ = ["Refused", "check", "check_before_approval", "warnings"]


def check(found: Evidence) -> None:
    """Raises `Refused` for a plan that is malformed or has ended."""
    _check_form(found)
    _check_phase(found)


def check_before_approval(found: Evidence, request: Request) -> None:
    """Raises `Refused` at the first thing that stands in the way of a plan that waits."""
    _check_target(found)
    _check_live(found)
    _check_policy(found)
    _check_hash(found, request)
    _check_user(found, request)


def _check_form(found: Evidence) -> None:
    spec, name = found.plan.spec, found.plan.metadata.name
    problem = ""
    if not spec.target_ref.name or not spec.inputs_hash:
        problem = "its target or its inputs hash is missing"
    elif not found.plan.reason_fits:
        problem = f"a {spec.target_ref.kind} has no plans for {spec.reason}"
    elif not spec.plan_hash.startswith(wire.PLAN_HASH_PREFIX):
        problem = (
            f"its plan hash does not begin with {wire.PLAN_HASH_PREFIX}: another release made it"
        )
    if problem:
        raise malformed(name, problem)


def _check_phase(found: Evidence) -> None:
    if found.plan.live:
        return
    raise Refused(
        Rule.ENDED,
        f"TerraformPlan {found.plan.metadata.name} is {found.plan.phase}: it can no longer be "
        "approved",
        do=_instead(found),
    )


def _instead(found: Evidence) -> str:
    if found.live is None:
        return "its object has no plan that waits; captfctl get shows whether one is being made"
    return f"the current plan of the object is {found.live.metadata.name}: read and approve that"


def _check_target(found: Evidence) -> None:
    if found.unreadable:
        return
    plan, ref = found.plan, found.plan.spec.target_ref
    name = f"{ref.kind} {plan.metadata.namespace}/{ref.name}"
    if found.target is None:
        raise Refused(
            Rule.TARGET_GONE,
            f"{name}, whose change it is, does not exist",
            do="nothing: the plan goes with it",
        )
    if not plan.is_for(ref.kind, ref.name, found.target.metadata.uid):
        raise Refused(
            Rule.TARGET_GONE,
            f"TerraformPlan {plan.metadata.name} is not a plan of this {name}",
            why="it belongs to an earlier object of that name, or has no controller",
            do=f"approve the object's own plan: --target {ref.shown}",
        )
    if found.target.deleting:
        raise Refused(
            Rule.TARGET_DELETING,
            f"{name} is being deleted: nothing of it is applied any more",
        )


def _check_live(found: Evidence) -> None:
    live, name = found.live, found.plan.metadata.name
    if live is not None and live.metadata.name != name:
        raise Refused(
            Rule.REPLACED,
            f"TerraformPlan {name} is about to be superseded by {live.metadata.name}",
            do=f"read and approve {live.metadata.name}",
        )


def _check_policy(found: Evidence) -> None:
    if not isinstance(found.target, TerraformCluster):
        return
    policy = found.target.spec.apply_policy or ApplyPolicy.AUTOMATIC
    wanted = ApplyPolicy.MANUAL
    if found.plan.spec.reason is PlanReason.DESTRUCTIVE:
        wanted = ApplyPolicy.AUTOMATIC
    if policy is not wanted:
        raise Refused(
            Rule.POLICY,
            f"spec.applyPolicy of the cluster is now {policy}: a {found.plan.spec.reason} plan "
            "is no longer applied",
            do="wait: the manager supersedes it, and makes another one if one is needed",
        )


def _check_hash(found: Evidence, request: Request) -> None:
    if request.expect_hash and request.expect_hash != found.plan.spec.plan_hash:
        raise Refused(
            Rule.OTHER_HASH,
            f"TerraformPlan {found.plan.metadata.name} has another hash than expected",
            why=f"it is {found.plan.spec.plan_hash}, not {request.expect_hash}",
            do="read the plan that there is now",
        )


def _check_user(found: Evidence, request: Request) -> None:
    who = found.who
    if not who.name:
        raise Refused(
            Rule.USER_UNKNOWN,
            "the server did not report your user name, so the approval would name nobody",
            why=who.problem,
            do="log in as a user; kubectl auth whoami shows which one",
        )
    if len(who.name) > APPROVER_MAX:
        raise Refused(
            Rule.USER_UNKNOWN,
            f"a user name of {len(who.name)} characters cannot be recorded",
            why=f"at most {APPROVER_MAX} fit",
        )
    if request.by and request.by != who.name:
        raise Refused(
            Rule.OTHER_USER,
            f"you are {who.name}, so you cannot approve as {request.by}",
            do="leave --by out",
        )


def warnings(found: Evidence) -> list[str]:
    """What does not stand in the way, and may still surprise."""
    plan, told = found.plan, list[str]()
    label = plan.metadata.labels.get(keys.DESTRUCTIVE)
    if label is not None and (label == keys.TRUE) != plan.spec.summary.destructive:
        told.append(f"the label {keys.DESTRUCTIVE}={label} is wrong: the counts are right")
    if found.unreadable:
        told.append(
            f"you may not read the {plan.spec.target_ref.kind}, so it is not known whether it is "
            "paused, being deleted, or has another apply policy now"
        )
    return told + _about_target(found)


def _about_target(found: Evidence) -> list[str]:
    target, told = found.target, list[str]()
    if target is None:
        return told
    name = f"the {found.plan.spec.target_ref.kind}"
    paused = find(target.status.conditions, Type.PAUSED)
    if keys.PAUSED in target.metadata.annotations or _is(paused, Paused.PAUSED):
        told.append(f"{name} is paused: nothing is applied until it is resumed")
    pending = target.status.pending_plan_ref
    if pending is None or pending.name != found.plan.metadata.name:
        named = "no plan" if pending is None else pending.name
        told.append(
            f"the status of {name} names {named} as waiting: the manager has not looked at this "
            "plan yet"
        )
    applied = find(target.status.conditions, Type.APPLY_JOB_SUCCEEDED)
    reason = reason_named(applied.type, applied.reason) if applied else None
    if reason is not None and reason.standing is Standing.FAILING:
        told.append(f"the last apply of {name} failed: the next one waits for its backoff")
    return told


def _is(condition: Condition | None, reason: Paused) -> bool:
    return condition is not None and condition.reason == reason
