"""Asking Cluster API to replace a machine (reconcile.md: Machine remediation)."""

from collections.abc import Sequence

from captfctl.cluster.door import Door
from captfctl.cluster.errors import NotFound
from captfctl.model import keys
from captfctl.model.capi import Machine
from captfctl.model.events import EventReason, Note
from captfctl.model.machine import TerraformMachine
from captfctl.model.reasons import InfrastructureHealthy
from captfctl.model.resources import MACHINES
from captfctl.terraform.contract.effective import Config

UNHEALTHY = frozenset(
    {
        InfrastructureHealthy.INSTANCE_UNHEALTHY,
        InfrastructureHealthy.INSTANCE_DEGRADED,
        InfrastructureHealthy.INSTANCE_STOPPED,
    }
)


def remediate(
    door: Door, obj: TerraformMachine, machine: Machine, health: str, config: Config
) -> Sequence[Note]:
    """Mark the Machine for replacement, or take our mark off it. `machine` is as cached.

    Raises `Conflict` when the Machine changed meanwhile: the next pass decides again.
    """
    change = _change(obj, machine, health, config)
    return _write(door, machine, change) if change is not None else ()


def _change(
    obj: TerraformMachine, machine: Machine, health: str, config: Config
) -> dict[str, str | None] | None:
    """The annotations to set or to remove; None: nothing to do."""
    if obj.deleting or machine.deleting:
        return None
    marks = machine.metadata.annotations
    why = _reason(obj, health, config)
    if why and keys.REMEDIATE not in marks:
        return {keys.REMEDIATE: "", keys.REMEDIATION_REQUESTED: why}
    ours = keys.REMEDIATION_REQUESTED in marks
    if not why and ours and health == InfrastructureHealthy.HEALTHY:
        return {keys.REMEDIATE: None, keys.REMEDIATION_REQUESTED: None}
    return None


def _reason(obj: TerraformMachine, health: str, config: Config) -> str:
    """Why the machine is to be replaced; empty when it is not."""
    started, samples = obj.status.initialization, obj.status.unhealthy_samples
    if not config.annotate_machine or started is None or not started.provisioned:
        return ""
    if health == InfrastructureHealthy.INSTANCE_TERMINATED:
        return "the instance is terminated"
    if health in UNHEALTHY and samples >= config.unhealthy_threshold:
        return f"{health} for {samples} consecutive samples"
    return ""


def _write(door: Door, machine: Machine, change: dict[str, str | None]) -> Sequence[Note]:
    meta = machine.metadata
    patch = {"metadata": {"annotations": change}}
    try:
        door.patch(
            MACHINES, meta.name, meta.namespace, patch, resource_version=meta.resource_version
        )
    except NotFound:
        return ()
    why = change[keys.REMEDIATION_REQUESTED]
    if why is None:
        text = f"Machine {meta.name} is healthy again and need not be replaced"
        return (EventReason.REMEDIATION_WITHDRAWN.says(text),)
    text = f"Machine {meta.name} was marked for replacement: {why}"
    return (EventReason.REMEDIATION_REQUESTED.says(text),)
