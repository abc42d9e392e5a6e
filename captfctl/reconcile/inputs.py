"""The inputs the object would be applied with now, and the gates before them
(reconcile.md: Inputs and their gates)."""

from captfctl.cluster.door import Door, find
from captfctl.model import keys
from captfctl.model.conditions import ConditionValue, Type
from captfctl.model.core import ConfigMap, Secret
from captfctl.model.kinds import Role
from captfctl.model.reasons import DependenciesReady
from captfctl.model.resources import CONFIG_MAPS, SECRETS
from captfctl.reconcile.context import Inputs, Pass
from captfctl.reconcile.owners import WAITING_FOR_OWNER, owner_gone
from captfctl.terraform.contract.build import (
    SOURCE_USER,
    ClusterBuild,
    EndpointSourceChange,
    build_cluster_inputs,
)
from captfctl.terraform.contract.errors import VariablesError
from captfctl.terraform.contract.hashing import inputs_hash
from captfctl.terraform.contract.variables import (
    SourceKind,
    SourceRef,
    UserVariables,
    merge_variables,
    source_refs,
)
from runner import wire


def build(p: Pass) -> None:
    """Build and hash the inputs, or set `DependenciesReady` to the first unmet dependency."""
    p.inputs, built = _build(p)
    gate = p.inputs.gate
    if gate is not None:
        p.set(Type.DEPENDENCIES_READY, gate)
        return
    p.conditions.set_reason(DependenciesReady.DEPENDENCIES_READY)
    assert built is not None
    _record_endpoint_source(p, built.endpoint_source)


def build_for_destroy(p: Pass) -> None:
    """For a destroy without any record: the current inputs if they build, silently none if not."""
    p.inputs, _ = _build(p)


def _build(p: Pass) -> tuple[Inputs, ClusterBuild | None]:
    cluster = p.lookup.cluster
    if cluster is None:
        return Inputs(gate=_owner_gate(p)), None
    try:
        variables = _variables(p)
    except VariablesError as problem:
        return Inputs(gate=problem.reason.says(str(problem))), None
    built = build_cluster_inputs(p.obj, cluster, previous_tfvars(p))
    hashed = inputs_hash(p.obj.spec.source.image, built.inputs, variables)
    return Inputs(values=built.inputs, variables=variables, hash=hashed), built


def _owner_gate(p: Pass) -> ConditionValue:
    if p.lookup.gate is not None:
        return p.lookup.gate
    return owner_gone(p.lookup.reference) if p.lookup.reference else WAITING_FOR_OWNER


def previous_tfvars(p: Pass) -> bytes | None:
    """What the last attempt rendered; None before the first."""
    attempt = p.records.attempt
    return attempt.files.get(wire.VARIABLES_FILE) if attempt is not None else None


def _variables(p: Pass) -> UserVariables:
    """Sources are read live on every pass: what they hold is part of the inputs."""
    spec = p.obj.spec
    sources = [
        (ref, _read(p.env.door, ref, p.owner.namespace)) for ref in source_refs(spec.variables_from)
    ]
    return merge_variables(Role.CLUSTER, spec.variables, sources)


def _read(door: Door, ref: SourceRef, namespace: str) -> Secret | ConfigMap | None:
    if ref.kind is SourceKind.SECRET:
        return find(door, SECRETS, namespace, ref.name)
    return find(door, CONFIG_MAPS, namespace, ref.name)


def _record_endpoint_source(p: Pass, change: EndpointSourceChange) -> None:
    """Who decides the endpoint is settled by the first apply
    (module-contract.md: The control plane endpoint)."""
    annotations = p.obj.metadata.annotations
    if change is EndpointSourceChange.RECORD_USER:
        annotations[keys.ENDPOINT_SOURCE] = SOURCE_USER
    elif change is EndpointSourceChange.REMOVE:
        annotations.pop(keys.ENDPOINT_SOURCE, None)
