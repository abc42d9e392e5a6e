"""Emptying namespaces that are being deleted, as Kubernetes' namespace controller does."""

import contextlib
from collections.abc import Callable, Iterable
from typing import Any

from captfctl.clock import Clock
from captfctl.cluster.door import Door, Propagation
from captfctl.cluster.errors import Conflict, Forbidden, Invalid, MethodNotAllowed, NotFound
from captfctl.controller import Controller, Handler, Informer, Result
from captfctl.model.meta import PartialObject
from captfctl.model.resource import Resource
from captfctl.model.resources import NAMESPACES

_FINALIZER = "kubernetes"
_LOOK_AGAIN = 0.5


class NamespaceController:
    """Deletes everything in a dying namespace, waits until it is gone, then lets it go."""

    def __init__(
        self, door: Door, resources: Callable[[], Iterable[Resource[Any]]], clock: Clock
    ) -> None:
        self._door = door
        self._resources = resources
        self._namespaces = Informer(door, NAMESPACES, clock)
        self._controller: Controller[str] = Controller("namespaces", self.reconcile, clock)

    def start(self) -> None:
        """Follow namespaces from now on."""
        queue = self._controller.queue
        self._namespaces.add_handler(
            Handler(
                on_add=lambda namespace: queue.add(namespace.metadata.name),
                on_update=lambda _, namespace: queue.add(namespace.metadata.name),
            )
        )
        self._namespaces.start()
        self._controller.start()

    def stop(self, timeout: float) -> bool:
        """Tell whether everything ended; each part gets `timeout` seconds."""
        stopped = self._controller.stop(timeout)
        return self._namespaces.stop(timeout) and stopped

    def reconcile(self, name: str) -> Result:
        """Raises what the door raises."""
        try:
            namespace = self._door.get(NAMESPACES.untyped(), name)
        except NotFound:
            return Result()
        if not namespace["metadata"].get("deletionTimestamp"):
            return Result()
        left = [self._empty(resource, name) for resource in self._namespaced()]
        if any(left):
            return Result(requeue_after=_LOOK_AGAIN)
        finalizers = namespace.get("spec", {}).get("finalizers", [])
        namespace["spec"] = {"finalizers": [f for f in finalizers if f != _FINALIZER]}
        with contextlib.suppress(NotFound):
            self._door.update(NAMESPACES.untyped(), namespace, subresource="finalize")
        return Result()

    def _namespaced(self) -> list[Resource[PartialObject]]:
        return [r.metadata_only() for r in self._resources() if r.namespaced]

    def _empty(self, resource: Resource[PartialObject], namespace: str) -> bool:
        """Delete what is there; tell whether anything is left. What admission protects stays."""
        try:
            found = self._door.list(resource, namespace).items
        except (NotFound, MethodNotAllowed):
            return False
        for obj in found:
            if obj.deleting:
                continue
            try:
                self._door.delete(
                    resource,
                    obj.metadata.name,
                    namespace,
                    uid=obj.metadata.uid,
                    propagation=Propagation.BACKGROUND,
                )
            except (NotFound, Conflict, Forbidden, Invalid):
                continue
        return bool(found)
