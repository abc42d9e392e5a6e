"""Telling a MachinePool how many members its autoscaled pool has (reconcile.md: Pools)."""

from collections.abc import Sequence

from captfctl.cluster.door import Door
from captfctl.cluster.errors import NotFound
from captfctl.model import keys
from captfctl.model.capi import MachinePool
from captfctl.model.events import EventReason, Note
from captfctl.model.machine import TerraformMachinePool
from captfctl.model.resources import MACHINE_POOLS
from captfctl.terraform.contract.autoscaling import autoscaling_of, managed_by_others


def write_back(door: Door, obj: TerraformMachinePool, pool: MachinePool) -> Sequence[Note]:
    """Claim the number of replicas and write it, or give up the claim. `pool` is as cached.

    Raises `Conflict` when the MachinePool changed meanwhile: the next pass decides again.
    """
    patch = _patch(obj, pool)
    if not patch:
        return ()
    meta = pool.metadata
    try:
        door.patch(
            MACHINE_POOLS, meta.name, meta.namespace, patch, resource_version=meta.resource_version
        )
    except NotFound:
        return ()
    if "spec" not in patch:
        return ()
    text = f"MachinePool {meta.name} has {obj.status.replicas} replicas now, as the module reports"
    return (EventReason.REPLICAS_WRITTEN_BACK.says(text),)


def write_back_is_due(obj: TerraformMachinePool, pool: MachinePool) -> bool:
    """Whether `write_back` would write anything."""
    return bool(_patch(obj, pool))


def _patch(obj: TerraformMachinePool, pool: MachinePool) -> dict[str, object]:
    annotations = pool.metadata.annotations
    owner = annotations.get(keys.REPLICAS_MANAGED_BY)
    limits, _ = autoscaling_of(annotations)
    if not limits.enabled:
        ours = owner == keys.MANAGED_BY_CAPTF
        return {"metadata": {"annotations": {keys.REPLICAS_MANAGED_BY: None}}} if ours else {}
    if managed_by_others(annotations):
        return {}
    patch: dict[str, object] = {}
    if owner != keys.MANAGED_BY_CAPTF:
        claim = {keys.REPLICAS_MANAGED_BY: keys.MANAGED_BY_CAPTF}
        patch["metadata"] = {"annotations": claim}
    if obj.status.replicas is not None and obj.status.replicas != pool.spec.replicas:
        patch["spec"] = {"replicas": obj.status.replicas}
    return patch
