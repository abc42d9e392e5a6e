"""What a machine's outputs change on its object (module-contract.md: What outputs change)."""

import re
from dataclasses import dataclass

from captfctl.model.capi import Machine
from captfctl.model.conditions import ConditionValue, Type, find
from captfctl.model.events import EventReason, Note
from captfctl.model.machine import MachineAddress, TerraformMachine
from captfctl.model.meta import Condition, seconds_stamp
from captfctl.model.reasons import InfrastructureHealthy, OutputsValid
from captfctl.terraform.contract.findings import Findings, Violation
from captfctl.terraform.contract.mapping import infrastructure_healthy, latches
from captfctl.terraform.contract.outputs_workers import MachineOutputs

_MARKER = re.compile(r"\((?:sample|refresh) ([^)]*)\)")
_NEVER = "none"


@dataclass(frozen=True, kw_only=True)
class MachineMapping:
    """The new values; the caller writes them to the object."""

    outputs_valid: ConditionValue
    infrastructure_healthy: ConditionValue | None
    """None keeps the present one: no apply has succeeded yet."""
    provisioned: bool
    provider_id: str
    """For `spec.providerID`, which is set once and never cleared."""
    addresses: tuple[MachineAddress, ...]
    failure_domain: str
    interruptible: bool
    notes: tuple[Note, ...] = ()


def map_machine(
    obj: TerraformMachine, machine: Machine | None, outputs: MachineOutputs, *, state_has_hash: bool
) -> MachineMapping:
    """Everything that the state's outputs say about the object. Pure: `obj` is not changed.

    `machine` is its owner, where that is known.
    """
    was_provisioned = bool(obj.status.initialization and obj.status.initialization.provisioned)
    applied = state_has_hash or was_provisioned
    findings = outputs.findings.with_violations(*_contradictions(obj, machine, outputs, applied))
    set_now = applied and not obj.spec.provider_id and bool(outputs.provider_id)
    said = f"the module reports {outputs.provider_id}"
    return MachineMapping(
        outputs_valid=findings.condition(),
        infrastructure_healthy=_health(obj, outputs, was_provisioned) if applied else None,
        provisioned=was_provisioned
        or latches(findings, outputs.health, state_has_hash=state_has_hash),
        provider_id=outputs.provider_id if set_now else obj.spec.provider_id,
        addresses=_addresses(obj, outputs, findings),
        failure_domain=(
            obj.status.failure_domain
            if findings.concerns("failure_domain")
            else outputs.failure_domain
        ),
        interruptible=(
            obj.status.interruptible is True
            if findings.concerns("interruptible")
            else outputs.interruptible
        ),
        notes=(EventReason.PROVIDER_ID_SET.says(said),) if set_now else (),
    )


def _contradictions(
    obj: TerraformMachine, machine: Machine | None, outputs: MachineOutputs, applied: bool
) -> list[Violation]:
    """What the object, or its owner, does not allow the outputs to be."""
    found = []
    wanted = machine.spec.failure_domain if machine is not None else ""
    known = not outputs.findings.concerns("failure_domain")
    if wanted and known and outputs.failure_domain != wanted:
        got = f"is {outputs.failure_domain}" if outputs.failure_domain else "is null"
        message = f"failure_domain {got}, but the Machine asks for {wanted}"
        found.append(_violation("failure_domain", message, OutputsValid.FAILURE_DOMAIN_MISMATCH))
    kept, reported = obj.spec.provider_id, outputs.provider_id
    if applied and kept and reported and reported != kept:
        message = f"provider_id is {reported}, but spec.providerID is {kept} and never changes"
        found.append(_violation("provider_id", message, OutputsValid.PROVIDER_ID_CHANGED))
    return found


def _violation(output: str, message: str, reason: OutputsValid) -> Violation:
    return Violation(output=output, message=message, reason=reason)


def _addresses(
    obj: TerraformMachine, outputs: MachineOutputs, findings: Findings
) -> tuple[MachineAddress, ...]:
    if findings.concerns("addresses"):
        return tuple(obj.status.addresses)
    return tuple(MachineAddress(type=a.type, address=a.address) for a in outputs.addresses)


def _health(
    obj: TerraformMachine, outputs: MachineOutputs, was_provisioned: bool
) -> ConditionValue:
    if was_provisioned and "provider_id" in outputs.findings.pending:
        return _vanished(obj)
    return infrastructure_healthy(outputs.health)


def _vanished(obj: TerraformMachine) -> ConditionValue:
    """A provisioned machine without a provider id: unclear once, gone with the second sample."""
    sample = seconds_stamp(obj.status.last_refresh) or _NEVER
    before = find(obj.status.conditions, Type.INFRASTRUCTURE_HEALTHY)
    if before is not None and before.reason == InfrastructureHealthy.INSTANCE_TERMINATED:
        return ConditionValue.of(before)
    if before is not None and _is_second_sample(before, sample):
        text = f"the module reports no provider id any more (sample {sample})"
        return InfrastructureHealthy.INSTANCE_TERMINATED.says(text)
    text = f"the module reports no provider id (sample {sample})"
    return InfrastructureHealthy.PROVIDER_ID_MISSING.says(text)


def _is_second_sample(before: Condition, sample: str) -> bool:
    if before.reason != InfrastructureHealthy.PROVIDER_ID_MISSING:
        return False
    found = _MARKER.search(before.message)
    return found is not None and found.group(1) != sample
