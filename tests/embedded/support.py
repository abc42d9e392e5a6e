"""What the tests of the local control plane share."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

from captfctl.clock import SystemClock
from captfctl.cluster.door import Door
from captfctl.cluster.errors import NotFound
from captfctl.embedded.store import EmbeddedStore
from captfctl.model.resource import Document, Resource
from captfctl.model.resources import CRDS, JOBS, NODES

T = TypeVar("T")
DEADLINE = 30.0
NAMESPACE = "default"


def until(condition: Callable[[], T], what: str = "") -> T:
    """Wait until `condition` gives something true, and return that."""
    limit = time.monotonic() + DEADLINE
    pause = threading.Event()
    while not (found := condition()):
        assert time.monotonic() < limit, f"not in time: {what or condition}"
        pause.wait(0.01)
    return found


class Part(Protocol):
    def start(self) -> None: ...

    def stop(self, timeout: float) -> bool: ...


@contextmanager
def running(*parts: Part) -> Iterator[None]:
    for part in parts:
        part.start()
    try:
        yield
    finally:
        stopped = [part.stop(10) for part in reversed(parts)]
        assert all(stopped)


def new_store() -> EmbeddedStore:
    return EmbeddedStore.in_memory(SystemClock())


def exists(door: Door, resource: Resource[Any], name: str, namespace: str = NAMESPACE) -> bool:
    try:
        door.get(resource, name, namespace if resource.namespaced else "")
    except NotFound:
        return False
    return True


def create(door: Door, resource: Resource[Any], document: Document) -> Document:
    body = {"apiVersion": resource.api_version, "kind": resource.kind, **document}
    namespace = document["metadata"].get("namespace", NAMESPACE) if resource.namespaced else ""
    return door.create(resource.untyped(), body, namespace)


def job(name: str, script: str = "true", **spec: Any) -> Document:
    container = {
        "name": "source",
        "image": "example.com/a:v1",
        "command": ["/bin/sh", "-c", script],
    }
    pod = {"restartPolicy": "Never", "containers": [container]}
    return {
        "metadata": {"name": name},
        "spec": {"backoffLimit": 0, "template": {"spec": pod}, **spec},
    }


def ready_node(door: Door, name: str = "node") -> None:
    create(door, NODES, {"metadata": {"name": name}})
    condition = {"type": "Ready", "status": "True"}
    door.patch(NODES, name, "", {"status": {"conditions": [condition]}}, subresource="status")


def conditions(door: Door, name: str) -> dict[str, str]:
    """A Job's conditions that hold, with their reasons."""
    found = door.get(JOBS, name, NAMESPACE)
    return {c.type: c.reason for c in found.status.conditions if c.status == "True"}


def install(door: Door, definitions: list[Document]) -> None:
    for definition in definitions:
        door.create(CRDS.untyped(), definition)
