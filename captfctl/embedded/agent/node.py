"""The Node object and its Lease: what the rest of the control plane sees of the agent."""

import contextlib
import logging
import os
import threading
from datetime import datetime
from typing import Any

import msgspec

from captfctl.clock import Clock
from captfctl.cluster.door import Door
from captfctl.cluster.errors import AlreadyExists, ApiError, NotFound
from captfctl.embedded.agent.settings import AgentSettings
from captfctl.model import keys
from captfctl.model.core import Lease, LeaseSpec, Namespace, Node, NodeStatus
from captfctl.model.meta import ObjectMeta, OwnerReference, micro_time, whole_seconds
from captfctl.model.resources import LEASES, NAMESPACES, NODES
from captfctl.version import VERSION

LEASE_NAMESPACE = "kube-node-lease"
_MOST_PODS = "110"

log = logging.getLogger(__name__)


class Registration:
    """Keeps the Node registered and its Lease fresh, in a thread of its own."""

    def __init__(
        self, door: Door, name: str, address: str, clock: Clock, settings: AgentSettings
    ) -> None:
        self._door = door
        self._name = name
        self._address = address
        self._clock = clock
        self._settings = settings
        self._port = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="node-lease", daemon=True)

    def start(self, kubelet_port: int = 0) -> None:
        """Raises what the door raises when the node cannot be registered."""
        self._port = kubelet_port
        self._register()
        self._renew()
        self._thread.start()

    def stop(self, timeout: float) -> bool:
        """Renew nothing any more; tell whether the thread ended in `timeout` seconds."""
        self._stop.set()
        if self._thread.ident is None:
            return True
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def mark_not_ready(self, message: str) -> None:
        """Say that no pod should come here any more. Best effort."""
        try:
            self._write_status(ready=False, message=message)
        except ApiError as problem:
            log.info("node %s: status not written: %s", self._name, problem)

    def _run(self) -> None:
        status_at = self._clock.monotonic() + self._settings.status_interval
        while not self._clock.wait(self._stop, self._settings.renew_interval):
            try:
                self._renew()
                if self._clock.monotonic() >= status_at or self._given_up():
                    self._register()
                    status_at = self._clock.monotonic() + self._settings.status_interval
            except NotFound:
                status_at = 0.0  # somebody deleted the node: register it again
            except ApiError as problem:
                log.info("node %s: lease not renewed: %s", self._name, problem)

    def _given_up(self) -> bool:
        """Whether the control plane, hearing nothing for a while, took the node for dead: until its
        status is written again no pod comes here."""
        node = self._door.get(NODES, self._name)
        ready = [c.get("status") for c in node.status.conditions if c.get("type") == "Ready"]
        return ready != ["True"]

    def _register(self) -> None:
        labels = {
            keys.HOSTNAME: self._name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": _architecture(),
        }
        try:
            self._door.patch(NODES, self._name, "", {"metadata": {"labels": labels}})
        except NotFound:
            node = Node(
                api_version=NODES.api_version,
                kind=NODES.kind,
                metadata=ObjectMeta(name=self._name, labels=labels),
            )
            self._door.create(NODES, node)
        self._write_status(ready=True, message="the node agent runs pods")

    def _write_status(self, *, ready: bool, message: str) -> None:
        node = self._door.get(NODES, self._name)
        capacity = _capacity()
        status = NodeStatus(
            capacity=capacity,
            allocatable=capacity,
            conditions=_conditions(node, ready, message, self._clock.now()),
            addresses=[
                {"type": "InternalIP", "address": self._address},
                {"type": "Hostname", "address": self._name},
            ],
            node_info=_node_info(),
        )
        if self._port:
            status.daemon_endpoints = {"kubeletEndpoint": {"Port": self._port}}
        self._door.patch(
            NODES, self._name, "", {"status": msgspec.to_builtins(status)}, subresource="status"
        )

    def _renew(self) -> None:
        spec = {
            "holderIdentity": self._name,
            "leaseDurationSeconds": self._settings.lease_duration,
            "renewTime": micro_time(self._clock.now()),
        }
        try:
            self._door.patch(LEASES, self._name, LEASE_NAMESPACE, {"spec": spec})
        except NotFound:
            self._create_lease(LeaseSpec(**_snake(spec)))

    def _create_lease(self, spec: LeaseSpec) -> None:
        node = self._door.get(NODES, self._name)
        namespace = Namespace(
            api_version=NAMESPACES.api_version,
            kind=NAMESPACES.kind,
            metadata=ObjectMeta(name=LEASE_NAMESPACE),
        )
        with contextlib.suppress(AlreadyExists):
            self._door.create(NAMESPACES, namespace)
        owner = OwnerReference(
            api_version=NODES.api_version,
            kind=NODES.kind,
            name=self._name,
            uid=node.metadata.uid,
        )
        lease = Lease(
            api_version=LEASES.api_version,
            kind=LEASES.kind,
            metadata=ObjectMeta(
                name=self._name, namespace=LEASE_NAMESPACE, owner_references=[owner]
            ),
            spec=spec,
        )
        self._door.create(LEASES, lease, LEASE_NAMESPACE)


def _conditions(node: Node, ready: bool, message: str, now: datetime) -> list[dict[str, Any]]:
    stamp = whole_seconds(now).strftime("%Y-%m-%dT%H:%M:%SZ")
    wanted = {
        "MemoryPressure": ("False", "KubeletHasSufficientMemory", "memory is not watched"),
        "DiskPressure": ("False", "KubeletHasNoDiskPressure", "disk space is not watched"),
        "PIDPressure": ("False", "KubeletHasSufficientPID", "processes are not counted"),
        "Ready": (
            ("True", "KubeletReady", message) if ready else ("False", "KubeletNotReady", message)
        ),
    }
    old = {str(c.get("type")): c for c in node.status.conditions}
    made = []
    for kind, (status, reason, text) in wanted.items():
        before = old.get(kind, {})
        since = before.get("lastTransitionTime") if before.get("status") == status else None
        made.append(
            {
                "type": kind,
                "status": status,
                "reason": reason,
                "message": text,
                "lastHeartbeatTime": stamp,
                "lastTransitionTime": since or stamp,
            }
        )
    return made


def _capacity() -> dict[str, str]:
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 1024
    disk = os.statvfs("/")
    return {
        "cpu": str(os.cpu_count() or 1),
        "memory": f"{memory}Ki",
        "ephemeral-storage": f"{disk.f_blocks * disk.f_frsize // 1024}Ki",
        "pods": _MOST_PODS,
    }


def _architecture() -> str:
    machine = os.uname().machine
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)


def _node_info() -> dict[str, str]:
    uname = os.uname()
    return {
        "architecture": _architecture(),
        "operatingSystem": "linux",
        "kernelVersion": uname.release,
        "osImage": f"{uname.sysname} (no container engine)",
        "containerRuntimeVersion": f"captfctl://{VERSION}",
        "kubeletVersion": f"v{VERSION}",
        "kubeProxyVersion": "",
        "machineID": "",
        "systemUUID": "",
        "bootID": "",
    }


def _snake(spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "holder_identity": spec["holderIdentity"],
        "lease_duration_seconds": spec["leaseDurationSeconds"],
        "renew_time": spec["renewTime"],
    }
