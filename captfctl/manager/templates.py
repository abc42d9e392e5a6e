"""The controller of `TerraformMachineTemplate`: the capacity that autoscalers read
(api.md: Capacity)."""

from captfctl.clock import Clock
from captfctl.cluster.door import Door
from captfctl.controller import Result
from captfctl.manager.caches import Caches
from captfctl.model.conditions import Conditions
from captfctl.model.reasons import CapacityResolved
from captfctl.model.resources import TERRAFORM_MACHINE_TEMPLATES
from captfctl.reconcile.patch import document, merge_patch


class TemplateReconciler:
    """Shows in the status what the spec says a Node will offer."""

    def __init__(self, door: Door, caches: Caches, clock: Clock) -> None:
        self._door, self._caches, self._clock = door, caches, clock

    def __call__(self, key: tuple[str, str]) -> Result:
        cached = self._caches.templates.get(*key) if self._caches.templates else None
        if cached is None or cached.deleting:
            return Result()
        template = TERRAFORM_MACHINE_TEMPLATES.copy(cached)
        before, meta, status = document(template), template.metadata, template.status
        conditions = Conditions(list(status.conditions), self._clock.now(), meta.generation)
        declared = bool(template.spec.capacity)
        conditions.set_reason(
            CapacityResolved.RESOLVED if declared else CapacityResolved.NOT_DECLARED
        )
        status.capacity, status.node_info = template.spec.capacity, template.spec.node_info
        status.conditions, status.observed_generation = conditions.list(), meta.generation
        patch = merge_patch(before, document(template))
        if patch:
            self._door.patch(
                TERRAFORM_MACHINE_TEMPLATES,
                meta.name,
                meta.namespace,
                patch,
                resource_version=meta.resource_version,
                subresource="status",
            )
        return Result()
