"""The scheduler of the embedded control plane: pending pods go to the one ready node.

Left out: everything that chooses between nodes, such as resources, affinity, taints, priorities.
"""

import contextlib

import msgspec

from captfctl.clock import Clock
from captfctl.cluster.door import Door
from captfctl.cluster.errors import Conflict, NotFound
from captfctl.controller import Controller, Handler, Informer, Result
from captfctl.embedded.events import Events
from captfctl.model.core import Node, ObjectReference, Pod, PodCondition
from captfctl.model.meta import ApiObject, ObjectMeta, whole_seconds
from captfctl.model.resources import NODES, PODS

COMPONENT = "default-scheduler"
_SCHEDULED = "PodScheduled"
Key = tuple[str, str]


class Binding(ApiObject):
    """A core/v1 Binding."""

    target: ObjectReference = msgspec.field(default_factory=ObjectReference)


class Scheduler:
    """The scheduler as a controller over a door."""

    def __init__(self, door: Door, clock: Clock) -> None:
        self._door = door
        self._clock = clock
        self._pods = Informer(door, PODS, clock, fields="spec.nodeName=")
        self._nodes = Informer(door, NODES, clock)
        self._controller: Controller[Key] = Controller(COMPONENT, self.reconcile, clock)
        self._events = Events(door, clock, COMPONENT, COMPONENT)

    def start(self) -> None:
        """Follow pods and nodes from now on."""
        queue = self._controller.queue
        self._pods.add_handler(
            Handler(
                on_add=lambda pod: queue.add(pod.key),
                on_update=lambda _, pod: queue.add(pod.key),
            )
        )
        self._nodes.add_handler(
            Handler(
                on_add=lambda _: self._look_at_all(),
                on_update=lambda old, new: self._node_changed(old, new),
            )
        )
        self._nodes.start()
        self._pods.start()
        self._controller.start()

    def stop(self, timeout: float) -> bool:
        """Tell whether everything ended; each part gets `timeout` seconds."""
        stopped = [self._controller.stop(timeout), self._pods.stop(timeout)]
        return all([*stopped, self._nodes.stop(timeout)])

    def _node_changed(self, old: Node, new: Node) -> None:
        if _is_ready(new) and not _is_ready(old):
            self._look_at_all()

    def _look_at_all(self) -> None:
        for pod in self._pods.list():
            self._controller.queue.add(pod.key)

    def reconcile(self, key: Key) -> Result:
        """Bind one pod, or say why not. Raises what the door raises."""
        pod = self._pods.get(*key)
        if pod is None or pod.spec.node_name or pod.deleting:
            return Result()
        nodes = self._nodes.list()
        ready = [node for node in nodes if _is_ready(node)]
        if not ready:
            self._report_unschedulable(pod, len(nodes))
            return Result()
        with contextlib.suppress(NotFound, Conflict):  # gone, deleted or bound meanwhile
            self._bind(pod, ready[0].metadata.name)
        return Result()

    def _bind(self, pod: Pod, node: str) -> None:
        metadata = pod.metadata
        binding = Binding(
            api_version="v1",
            kind="Binding",
            metadata=ObjectMeta(name=metadata.name, namespace=metadata.namespace, uid=metadata.uid),
            target=ObjectReference(api_version="v1", kind=NODES.kind, name=node),
        )
        self._door.create_subresource(
            PODS, metadata.name, metadata.namespace, "binding", binding, ApiObject
        )
        self._events.normal(
            _reference(pod),
            "Scheduled",
            f"Successfully assigned {metadata.namespace}/{metadata.name} to {node}",
            "Binding",
        )

    def _report_unschedulable(self, pod: Pod, nodes: int) -> None:
        message = f"0/{nodes} nodes are available: no node is ready"
        condition = PodCondition(
            type=_SCHEDULED,
            status="False",
            reason="Unschedulable",
            message=message,
            last_transition_time=whole_seconds(self._clock.now()),
        )
        if any(c.type == _SCHEDULED and c.message == message for c in pod.status.conditions):
            return
        others = [c for c in pod.status.conditions if c.type != _SCHEDULED]
        with contextlib.suppress(NotFound, Conflict):
            self._door.patch(
                PODS,
                pod.metadata.name,
                pod.metadata.namespace,
                {"status": {"conditions": msgspec.to_builtins([*others, condition])}},
                resource_version=pod.metadata.resource_version,
                subresource="status",
            )
        self._events.warning(_reference(pod), "FailedScheduling", message, "Scheduling")


def _is_ready(node: Node) -> bool:
    if node.deleting or node.spec.get("unschedulable"):
        return False
    return any(
        c.get("type") == "Ready" and c.get("status") == "True" for c in node.status.conditions
    )


def _reference(pod: Pod) -> ObjectReference:
    return ObjectReference(
        api_version=PODS.api_version,
        kind=PODS.kind,
        namespace=pod.metadata.namespace,
        name=pod.metadata.name,
        uid=pod.metadata.uid,
    )
