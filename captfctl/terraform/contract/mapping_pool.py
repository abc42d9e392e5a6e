"""What a pool's outputs change on its object (module-contract.md: What outputs change)."""

from dataclasses import dataclass

from captfctl.model.conditions import ConditionValue
from captfctl.model.events import EventReason, Note
from captfctl.model.machine import MachineAddress, PoolInstance, TerraformMachinePool
from captfctl.terraform.contract.mapping import infrastructure_healthy, latches
from captfctl.terraform.contract.outputs_workers import Instance, MachinePoolOutputs


@dataclass(frozen=True, kw_only=True)
class MachinePoolMapping:
    """The new values; the caller writes them to the object."""

    outputs_valid: ConditionValue
    infrastructure_healthy: ConditionValue | None
    """None keeps the present one: no apply has succeeded yet."""
    provisioned: bool
    provider_id: str
    provider_id_list: tuple[str, ...]
    replicas: int | None
    instances: tuple[PoolInstance, ...]
    notes: tuple[Note, ...] = ()


def map_pool(
    obj: TerraformMachinePool, outputs: MachinePoolOutputs, *, state_has_hash: bool
) -> MachinePoolMapping:
    """Everything that the state's outputs say about the object. Pure: `obj` is not changed."""
    was_provisioned = bool(obj.status.initialization and obj.status.initialization.provisioned)
    findings, spec, status = outputs.findings, obj.spec, obj.status
    changed = bool(outputs.provider_id) and outputs.provider_id != spec.provider_id
    what = "now reports" if spec.provider_id else "reports"
    text = f"the module {what} {outputs.provider_id}"
    return MachinePoolMapping(
        outputs_valid=findings.condition(),
        infrastructure_healthy=(
            infrastructure_healthy(outputs.health) if state_has_hash or was_provisioned else None
        ),
        provisioned=was_provisioned
        or latches(findings, outputs.health, state_has_hash=state_has_hash),
        provider_id=outputs.provider_id if changed else spec.provider_id,
        provider_id_list=(
            tuple(spec.provider_id_list)
            if findings.concerns("provider_id_list")
            else outputs.provider_id_list
        ),
        replicas=status.replicas if findings.concerns("replicas") else outputs.replicas,
        instances=(
            tuple(status.instances)
            if findings.concerns("instances")
            else tuple(map(_instance, outputs.instances))
        ),
        notes=(EventReason.PROVIDER_ID_SET.says(text),) if changed else (),
    )


def _instance(reported: Instance) -> PoolInstance:
    return PoolInstance(
        provider_id=reported.provider_id,
        instance_id=reported.instance_id,
        addresses=[MachineAddress(type=a.type, address=a.address) for a in reported.addresses],
        failure_domain=reported.failure_domain,
        state=reported.state,
    )
