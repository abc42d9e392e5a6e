"""The inputs the object would be applied with now, and the gates before them
(reconcile.md: Inputs and their gates)."""

from dataclasses import replace

from captfctl.cluster.door import Door, find
from captfctl.model import keys
from captfctl.model.conditions import ConditionValue, Type
from captfctl.model.core import ConfigMap, Secret
from captfctl.model.plan import PlanReason, TerraformPlan
from captfctl.model.reasons import DependenciesReady
from captfctl.model.resources import CONFIG_MAPS, SECRETS
from captfctl.reconcile.context import Pass
from captfctl.reconcile.finish import first_apply_unfinished
from captfctl.reconcile.kinds import Applied, Built, GuardedChange
from captfctl.reconcile.known import Guard, Inputs, Known, StateView
from captfctl.terraform.contract.errors import VariablesError
from captfctl.terraform.contract.hashing import approval_hash, inputs_hash
from captfctl.terraform.contract.values import ContractInputs
from captfctl.terraform.contract.variables import (
    SourceKind,
    SourceRef,
    UserVariables,
    merge_variables,
    source_refs,
)
from captfctl.terraform.contract.variables_schema import variable_problems
from captfctl.terraform.state.records import Records


def build(p: Pass, known: Known, view: StateView) -> Inputs:
    """Build and hash the inputs, or set `DependenciesReady` to the first unmet dependency."""
    applied = Applied(
        exists=view.exists,
        state_hash=view.inputs_hash,
        own_first=first_apply_unfinished(p, known),
    )
    inputs, built = _build(p, known.records, applied, known.plans.live)
    if built is None:
        if inputs.gate is not None:
            p.set(Type.DEPENDENCIES_READY, inputs.gate)
        return inputs
    p.conditions.set_reason(DependenciesReady.DEPENDENCIES_READY)
    for kind, found in built.conditions:
        p.set(kind, found)
    for key, value in built.annotations.items():
        if value is None:
            p.obj.metadata.annotations.pop(key, None)
        else:
            p.obj.metadata.annotations[key] = value
    return inputs


def build_for_destroy(p: Pass, records: Records) -> Inputs:
    """For a destroy without any record: the current inputs if they build, silently none if not."""
    return _build(p, records, Applied(), None)[0]


def _build(
    p: Pass, records: Records, applied: Applied, plan: TerraformPlan | None
) -> tuple[Inputs, Built | None]:
    """The inputs, and what they settle once every gate has passed. `plan` is the live one."""
    built = p.rules.build(p.env.door, records, applied)
    if isinstance(built, ConditionValue):
        return Inputs(built), None
    try:
        variables = _variables(p)
    except VariablesError as problem:
        return Inputs(problem.reason.says(str(problem))), None
    if problems := _unfit(p, variables):
        return Inputs(DependenciesReady.VARIABLES_INVALID.says("; ".join(problems))), None
    inputs = _hashed(p, built.inputs, variables)
    change = built.change
    if change is not None and (change.partial or inputs.hash != applied.state_hash):
        return _guarded(p, inputs, change, plan), built
    return inputs, built


def _hashed(p: Pass, values: ContractInputs, variables: UserVariables) -> Inputs:
    parts = p.obj.spec.source.image, values, variables
    hashed = inputs_hash(*parts)
    by_approval = p.rules.counted_by == keys.APPROVAL_HASH
    return Inputs(
        values=values,
        variables=variables,
        hash=hashed,
        counted_hash=approval_hash(*parts) if by_approval else hashed,
    )


def _guarded(p: Pass, inputs: Inputs, change: GuardedChange, plan: TerraformPlan | None) -> Inputs:
    """With a change that may replace everything. While exactly that waits for an approval, other
    changes are applied without it (plans.md: Changed exports of a pool)."""
    guard = Guard(inputs.counted_hash, change.exports_hash, change.unheld)
    waits = plan is not None and not plan.spec.approved and is_for(plan, guard)
    if plan is None or not waits or change.before is None:
        return replace(inputs, guard=guard)
    held = (
        f"TerraformPlan {plan.metadata.name} with changed exports of the cluster waits for an "
        "approval; until then the applied ones are used"
    )
    return replace(_hashed(p, change.before, inputs.variables), guard=guard, held=held)


def is_for(plan: TerraformPlan, guard: Guard) -> bool:
    """Whether it is the plan of that change."""
    spec = plan.spec
    return spec.reason is PlanReason.EXPORTS_CHANGE and spec.inputs_hash == guard.approval_hash


def _variables(p: Pass) -> UserVariables:
    """Sources are read live on every pass: what they hold is part of the inputs."""
    spec = p.obj.spec
    sources = [
        (ref, read_source(p.env.door, ref, p.owner.namespace))
        for ref in source_refs(spec.variables_from)
    ]
    return merge_variables(p.rules.kind.role, spec.variables, sources)


def _unfit(p: Pass, variables: UserVariables) -> list[str]:
    """What the module would refuse, where it is known."""
    schema = p.env.schema_of(p.obj.spec.source.image, p.rules.kind.role)
    return list(map(str, variable_problems(schema, variables))) if schema is not None else []


def read_source(door: Door, ref: SourceRef, namespace: str) -> Secret | ConfigMap | None:
    """What the entry refers to, labelled for it or not; None when there is no such object."""
    if ref.kind is SourceKind.SECRET:
        return find(door, SECRETS, namespace, ref.name)
    return find(door, CONFIG_MAPS, namespace, ref.name)
