"""The Nodes that machines become, made by hand from the provider IDs that machines report."""

import contextlib
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime

from captfctl.cluster.errors import AlreadyExists, NotFound, Unavailable
from captfctl.cluster.live import LiveDoor
from captfctl.model import keys
from captfctl.model.resources import NODES, SECRETS, TERRAFORM_MACHINES
from tests.e2e.scenarios import NAME, Story

_LOOK_SECONDS = 0.2
_HEARTBEAT_SECONDS = 10.0


@contextlib.contextmanager
def joining(story: Story) -> Iterator[None]:
    """Meanwhile each machine of the story that reports a provider ID joins the workload cluster,
    which is the same API server."""
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": f"{NAME}-kubeconfig", "labels": {keys.CLUSTER_NAME: NAME}},
        "type": "cluster.x-k8s.io/secret",
        "stringData": {"value": story.site.kubectl("config", "view", "--raw", "--flatten")},
    }
    story.door.create(SECRETS.untyped(), secret, story.namespace)
    with contextlib.closing(story.site.door()) as door:
        nodes = _Nodes(door, story.namespace)
        try:
            yield
        finally:
            nodes.close()


class _Nodes:
    """Plays the kubelets, in a thread. Nothing is scheduled on these Nodes."""

    def __init__(self, door: LiveDoor, namespace: str) -> None:
        self._door = door
        self._namespace = namespace
        self._reported: dict[str, float] = {}
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._play, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Nobody else removes Nodes of a Cluster that is deleted as a whole."""
        self._ending.set()
        self._thread.join()
        for name in self._reported:
            with contextlib.suppress(NotFound):
                self._door.delete(NODES, name)

    def _play(self) -> None:
        while not self._ending.wait(_LOOK_SECONDS):
            with contextlib.suppress(Unavailable):  # what is missed now is done next time
                self._look()

    def _look(self) -> None:
        for machine in self._door.list(TERRAFORM_MACHINES, self._namespace).items:
            name = machine.metadata.name
            if machine.spec.provider_id and name not in self._reported:
                self._join(name, machine.spec.provider_id)
        late = time.monotonic() - _HEARTBEAT_SECONDS
        for name in [name for name, at in self._reported.items() if at < late]:
            self._report(name)

    def _join(self, name: str, provider_id: str) -> None:
        node = {
            "apiVersion": NODES.api_version,
            "kind": NODES.kind,
            "metadata": {"name": name},
            "spec": {"providerID": provider_id, "unschedulable": True},
        }
        with contextlib.suppress(AlreadyExists):
            self._door.create(NODES.untyped(), node)
        self._report(name)

    def _report(self, name: str) -> None:
        """Ready, as kubelets say it again and again: a Node that is silent for long is not."""
        self._reported[name] = time.monotonic()
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        said = {"Ready": "True", "MemoryPressure": "False", "DiskPressure": "False"}
        said["PIDPressure"] = "False"
        times = {"lastHeartbeatTime": now, "lastTransitionTime": now}
        conditions = [
            {"type": kind, "status": status, "reason": "Said", **times}
            for kind, status in said.items()
        ]
        status = {"status": {"conditions": conditions}}
        with contextlib.suppress(NotFound):  # Cluster API removes those of deleted Machines
            self._door.patch(NODES, name, "", status, subresource="status")
