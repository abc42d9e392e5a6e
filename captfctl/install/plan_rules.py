"""Who may approve a plan, and who may say what became of one (plans.md: Who may do what).

That a plan is otherwise immutable, and an approval never withdrawn, is in the schema of the kind.
These rules ask who makes the request, and read a label, which a schema cannot.
"""

from captfctl.install.policy_parts import SPEC_CHANGES, Helper, Policy, Rule, text, texts
from captfctl.model import keys
from captfctl.model.plan import TERMINAL, PlanPhase
from captfctl.model.resources import TERRAFORM_PLANS

_USER = "request.userInfo.username"
_FINAL = texts(phase.value for phase in TERMINAL)


def _label(root: str) -> str:
    """CEL: the phase that an object's label records; empty without one."""
    key = text(keys.PLAN_PHASE)
    return (
        f"has({root}.metadata.labels) && {key} in {root}.metadata.labels ? "
        f"{root}.metadata.labels[{key}] : ''"
    )


def _approved(root: str) -> str:
    return f"(has({root}.spec.approved) && {root}.spec.approved)"


_HELPERS = (
    Helper(name="phase", expression=_label("object")),
    Helper(name="storedPhase", expression=f"oldObject == null ? '' : ({_label('oldObject')})"),
    Helper(
        name="approves",
        expression=(f"{_approved('object')} && (oldObject == null || !{_approved('oldObject')})"),
    ),
)

# A plan that is created with its end is one that was moved: it can start nothing, so it keeps its
# approver. Anything else would let who may create plans approve in any name.
_BY_ANOTHER = (
    f"variables.approves && has(object.spec.approvedBy) && object.spec.approvedBy != {_USER} && "
    f"!(oldObject == null && variables.phase in {_FINAL})"
)

_APPROVER = Rule(
    name="approver",
    items=f"{_BY_ANOTHER} ? [object.spec.approvedBy.replace('\\n', ' ')] : []",
    field="'spec.approvedBy'",
    message=f"'must be the user name of who approves, \"' + {_USER} + '\", not \"' + item + '\"'",
)
_ENDED = Rule(
    name="ended",
    items=(
        f"variables.approves && variables.storedPhase in {_FINAL} ? [variables.storedPhase] : []"
    ),
    field="'spec.approved'",
    message="'the plan is ' + item + ' and can no longer be approved'",
)


def _phase(manager: str) -> Rule:
    """The label outlives the status in a move, so it decides for ever."""
    as_created = (
        f"variables.phase in {texts(('', PlanPhase.PENDING))} || variables.phase in {_FINAL} || "
        f"(variables.phase == {text(PlanPhase.APPROVED)} && {_approved('object')})"
    )
    fine = f"(oldObject == null ? ({as_created}) : variables.phase == variables.storedPhase)"
    if manager:
        fine = f"{_USER} == {text(manager)} || {fine}"
    return Rule(
        name="phaseLabel",
        items=f"{fine} ? [] : [variables.phase]",
        field=text(f"metadata.labels[{keys.PLAN_PHASE}]"),
        message=(
            "'is the manager\\'s record of what became of the plan: user \"' + "
            f"{_USER} + '\" may not set, change or remove it'"
        ),
    )


def plan_policy(manager: str) -> Policy:
    """The policy of plans. `manager` is the user name of the manager; empty: nobody is known to be
    the manager."""
    return Policy(
        resource=TERRAFORM_PLANS.untyped(),
        matches=f"{SPEC_CHANGES} || ({_label('object')}) != ({_label('oldObject')})",
        helpers=_HELPERS,
        rules=(_APPROVER, _ENDED, _phase(manager)),
        about_who_asks=True,
    )
