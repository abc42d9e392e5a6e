"""The inputs the object would be applied with now, and the gates before them
(reconcile.md: Inputs and their gates)."""

from captfctl.cluster.door import Door, find
from captfctl.model import keys
from captfctl.model.conditions import ConditionValue, Type
from captfctl.model.core import ConfigMap, Secret
from captfctl.model.reasons import DependenciesReady
from captfctl.model.resources import CONFIG_MAPS, SECRETS
from captfctl.reconcile.context import Pass
from captfctl.reconcile.kinds import Built
from captfctl.reconcile.known import Inputs
from captfctl.terraform.contract.errors import VariablesError
from captfctl.terraform.contract.hashing import approval_hash, inputs_hash
from captfctl.terraform.contract.variables import (
    SourceKind,
    SourceRef,
    UserVariables,
    merge_variables,
    source_refs,
)
from captfctl.terraform.contract.variables_schema import variable_problems
from captfctl.terraform.state.records import Records


def build(p: Pass, records: Records) -> Inputs:
    """Build and hash the inputs, or set `DependenciesReady` to the first unmet dependency."""
    inputs, built = _build(p, records)
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
    return _build(p, records)[0]


def _build(p: Pass, records: Records) -> tuple[Inputs, Built | None]:
    """The inputs, and what they settle once every gate has passed."""
    built = p.rules.build(p.env.door, records)
    if isinstance(built, ConditionValue):
        return Inputs(built), None
    try:
        variables = _variables(p)
    except VariablesError as problem:
        return Inputs(problem.reason.says(str(problem))), None
    if problems := _unfit(p, variables):
        return Inputs(DependenciesReady.VARIABLES_INVALID.says("; ".join(problems))), None
    parts = p.obj.spec.source.image, built.inputs, variables
    hashed = inputs_hash(*parts)
    by_approval = p.rules.counted_by == keys.APPROVAL_HASH
    inputs = Inputs(
        values=built.inputs,
        variables=variables,
        hash=hashed,
        counted_hash=approval_hash(*parts) if by_approval else hashed,
        held=built.held,
    )
    return inputs, built


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
