"""What every kind of Cluster API does with the infrastructure object that it names: take it,
mirror its readiness, and delete it before itself."""

import logging
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

import msgspec

from captfctl.clock import Clock
from captfctl.cluster.door import Door
from captfctl.cluster.errors import Conflict, NotFound
from captfctl.model.capi import InfrastructureRef
from captfctl.model.conditions import FALSE, TRUE, Type, find
from captfctl.model.keys import CLUSTER_NAME
from captfctl.model.kinds import INFRASTRUCTURE
from captfctl.model.meta import ApiObject, Condition, OwnerReference, whole_seconds
from captfctl.model.resource import Resource
from captfctl.model.terraform import TerraformObject

INFRASTRUCTURE_READY = "InfrastructureReady"

log = logging.getLogger(__name__)
T = TypeVar("T", bound=ApiObject)
Infra = TypeVar("Infra", bound=TerraformObject)


class Owners(Generic[T, Infra]):
    """The objects of one kind of Cluster API, with the infrastructure that they own."""

    def __init__(
        self,
        door: Door,
        clock: Clock,
        resource: Resource[T],
        infrastructure: Resource[Infra],
        finalizer: str,
    ) -> None:
        self.resource, self.infrastructure = resource, infrastructure
        self._door, self._clock, self._finalizer = door, clock, finalizer

    def names_ours(self, ref: InfrastructureRef | None) -> bool:
        """Whether the infrastructure is of our kind: others are left alone."""
        ours = (INFRASTRUCTURE, self.infrastructure.kind)
        return ref is not None and (ref.api_group, ref.kind) == ours

    def infrastructure_of(self, obj: T, ref: InfrastructureRef | None) -> Infra | None:
        """The infrastructure object, read again."""
        if ref is None:
            return None
        try:
            return self._door.get(self.infrastructure, ref.name, obj.metadata.namespace)
        except NotFound:
            return None

    def hold(self, obj: T, labels: dict[str, str] | None = None) -> T:
        """Keep the object, once deleted, until its infrastructure is gone; with `labels` on it."""
        meta, wanted = obj.metadata, labels or {}
        if self._finalizer in meta.finalizers and wanted.items() <= meta.labels.items():
            return obj
        finalizers = dict.fromkeys([*meta.finalizers, self._finalizer])
        return self.patch(obj, {"metadata": {"finalizers": list(finalizers), "labels": wanted}})

    def adopt(self, obj: T, infrastructure: TerraformObject, cluster: str) -> None:
        """Owner reference and label, unless another object has it."""
        metadata = infrastructure.metadata
        controller = metadata.controller
        if controller is not None and controller.uid != obj.metadata.uid:
            log.warning("%s belongs to %s %s", metadata.name, controller.kind, controller.name)
            return
        owner = OwnerReference(
            api_version=self.resource.api_version,
            kind=self.resource.kind,
            name=obj.metadata.name,
            uid=obj.metadata.uid,
            controller=True,
            block_owner_deletion=True,
        )
        if owner in metadata.owner_references and metadata.labels.get(CLUSTER_NAME) == cluster:
            return
        others = [ref for ref in metadata.owner_references if ref.uid != owner.uid]
        patch = {
            "metadata": {
                "labels": {CLUSTER_NAME: cluster},
                "ownerReferences": msgspec.to_builtins([*others, owner]),
            }
        }
        self._door.patch(
            self.infrastructure,
            metadata.name,
            metadata.namespace,
            patch,
            resource_version=metadata.resource_version,
        )

    def ready_condition(
        self,
        obj: T,
        conditions: Sequence[Condition],
        infrastructure: TerraformObject | None,
        ready: bool,
    ) -> list[Condition]:
        """`conditions` with our `Ready` under the name that Cluster API gives it."""
        status, reason, message = _readiness(infrastructure, ready)
        old = find(conditions, INFRASTRUCTURE_READY)
        moved = old is None or old.status != status
        now = whole_seconds(self._clock.now())
        condition = Condition(
            type=INFRASTRUCTURE_READY,
            status=status,
            reason=reason or "Unknown",
            message=message,
            last_transition_time=now if moved or old is None else old.last_transition_time,
            observed_generation=obj.metadata.generation,
        )
        return [*(c for c in conditions if c.type != INFRASTRUCTURE_READY), condition]

    def let_go(self, obj: T, infrastructure: TerraformObject | None) -> None:
        """Delete the infrastructure, and take the finalizer off the object when that is gone.

        An infrastructure object that belongs to somebody else is not waited for.
        """
        if infrastructure is not None:
            controller = infrastructure.metadata.controller
            if controller is None or controller.uid == obj.metadata.uid:
                self.delete(self.infrastructure, infrastructure)
                return
        if self._finalizer not in obj.metadata.finalizers:
            return
        rest = [name for name in obj.metadata.finalizers if name != self._finalizer]
        self.patch(obj, {"metadata": {"finalizers": rest or None}})

    def delete(self, resource: Resource[Any], obj: ApiObject) -> None:
        """Unless it is being deleted already, or is another one by now."""
        if obj.deleting:
            return
        meta = obj.metadata
        try:
            self._door.delete(resource, meta.name, meta.namespace, uid=meta.uid)
        except (NotFound, Conflict):
            return

    def write_status(self, obj: T, before: object, status: dict[str, Any]) -> T:
        """Only what differs from `before`, the object's status."""
        current = msgspec.to_builtins(before)
        changed = {key: value for key, value in status.items() if current.get(key) != value}
        return self.patch(obj, {"status": changed}, subresource="status") if changed else obj

    def patch(self, obj: T, patch: dict[str, Any], *, subresource: str = "") -> T:
        """Raises `Conflict` when the object has changed since it was read."""
        return self._door.patch(
            self.resource,
            obj.metadata.name,
            obj.metadata.namespace,
            patch,
            resource_version=obj.metadata.resource_version,
            subresource=subresource,
        )


def provisioned(infrastructure: TerraformObject | None) -> bool:
    """Whether the infrastructure object says so."""
    if infrastructure is None or infrastructure.status.initialization is None:
        return False
    return bool(infrastructure.status.initialization.provisioned)


def _readiness(infrastructure: TerraformObject | None, ready: bool) -> tuple[str, str, str]:
    """Status, reason and message."""
    if infrastructure is None:
        gone = "Deleted" if ready else "DoesNotExist"
        return FALSE, gone, "the infrastructure object does not exist"
    ours = find(infrastructure.status.conditions, Type.READY)
    if ours is not None:
        return ours.status, ours.reason, ours.message
    if ready:
        return TRUE, "Ready", ""
    return FALSE, "NotReady", "the infrastructure object has no Ready condition yet"
