"""The embedded control plane as a whole: everything `captfctl local up` runs in one process.

Each part is a controller of its own over the store's door; this module only decides in which order
they start and stop.
"""

import contextlib
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from captfctl.clock import Clock
from captfctl.cluster.door import Door
from captfctl.cluster.errors import AlreadyExists
from captfctl.embedded.agent import AgentSettings, ApiAccess, NodeAgent
from captfctl.embedded.agent.settings import inherited_environment
from captfctl.embedded.apiserver.apply import noted_door
from captfctl.embedded.apiserver.server import ApiServer
from captfctl.embedded.capi import CapiStandIn, capi_crds, capi_policies
from captfctl.embedded.garbage_collector import GarbageCollector
from captfctl.embedded.images import ImageTable
from captfctl.embedded.job_controller import JobController
from captfctl.embedded.layout import API, IMAGES, NODE, STORE
from captfctl.embedded.scheduler import Scheduler
from captfctl.embedded.store import IN_PROCESS, LOCAL_ADMIN, MANAGER, EmbeddedStore
from captfctl.install.permissions import runner_role
from captfctl.install.policies import policies
from captfctl.model import keys
from captfctl.model.core import Namespace
from captfctl.model.crds import crds
from captfctl.model.meta import ObjectMeta
from captfctl.model.resource import Resource
from captfctl.model.resources import (
    ADMISSION_POLICIES,
    ADMISSION_POLICY_BINDINGS,
    CLUSTER_ROLES,
    CRDS,
    NAMESPACES,
)

NODE_NAME = "local"
PARTS = "captfctl-local"
"""Who writes what a cluster's own controllers and its node write."""
GRACE_SECONDS = 30.0
"""How long runs may take to end when the control plane goes down with them."""
STOP_SECONDS = 5.0
PORTS = range(16443, 17443)
"""Where a free port is looked for: below those that the kernel hands to outgoing connections."""

_NAMESPACES = ("default", "kube-system", "kube-node-lease", "kube-public")


class Part(Protocol):
    """Something that runs until it is stopped."""

    def start(self) -> None:
        """Start, and return."""
        ...

    def stop(self, timeout: float) -> object:
        """End, within `timeout` seconds."""
        ...


@dataclass(kw_only=True)
class LocalPlane:
    """A control plane for one machine, with everything it keeps under `data`.

    `controllers` makes further parts over a door of the manager's, started last and stopped first.
    `environ` is what a pod's processes inherit from (PATH above all). `port` 0 keeps the one of the
    last time, or finds a free one.
    """

    data: Path
    images: ImageTable
    clock: Clock
    port: int = 0
    environ: Mapping[str, str] = field(default_factory=dict)
    controllers: Callable[[Door], Sequence[Part]] = field(default=lambda _: ())

    def start(self) -> None:
        """Raises `EnvironmentFault` when the directory or the port cannot be had.

        What was started is stopped again then.
        """
        with contextlib.ExitStack() as undo:
            self.store = EmbeddedStore.open(self.data / STORE, self.clock)
            undo.callback(self.store.close)
            self.door = self.door_of(keys.COMMANDS, LOCAL_ADMIN)
            install(self.door)
            self.agent = self._make_agent()
            self.api = self._make_api()
            self.api.start()
            undo.callback(self.api.stop)
            self._remember()
            self.agent.api = ApiAccess(
                server=self.api.url, ca_path=self.api.ca_path, token_path=self.api.token_path
            )
            for part in self._cluster_parts():
                self._begin(part, undo)
            runs = undo.enter_context(contextlib.ExitStack())
            self.agent.start()
            runs.callback(self._stop_agent)
            for part in self.controllers(self.door_of(keys.FIELD_OWNER, MANAGER)):
                self._begin(part, runs)
            self._runs, self._undo = runs, undo.pop_all()

    def end_runs(self) -> None:
        """End the manager, so that nothing new starts, then the runs in order: their pods record
        how they ended, which the door still shows until `stop`."""
        self._runs.close()

    def stop(self) -> None:
        """End the runs in order, then everything else."""
        self._undo.close()

    def door_of(self, field_owner: str, user: Mapping[str, Any] = IN_PROCESS) -> Door:
        """A door whose writes are noted as this owner's and admitted as this user's, as by an API
        server."""
        return noted_door(self.store, field_owner, self.clock, user)

    @property
    def kubeconfig(self) -> Path:
        """The file that leads kubectl here."""
        return self.api.kubeconfig_path

    @staticmethod
    def _begin(part: Part, undo: contextlib.ExitStack) -> None:
        part.start()
        undo.callback(part.stop, STOP_SECONDS)

    def _stop_agent(self) -> None:
        self.agent.shut_down(GRACE_SECONDS)
        self.agent.stop(STOP_SECONDS)

    def _cluster_parts(self) -> Sequence[Part]:
        door = self.door_of(PARTS)
        return (
            JobController(door, self.clock),
            Scheduler(door, self.clock),
            GarbageCollector(door, self._served, self.clock),
            CapiStandIn(door, self.clock),
        )

    def _served(self) -> list[Resource[Any]]:
        return [served.resource for served in self.store.registry]

    def _make_agent(self) -> NodeAgent:
        return NodeAgent(
            self.door_of(PARTS),
            NODE_NAME,
            self.images,
            self.data / NODE,
            None,
            self.clock,
            AgentSettings(base_env=inherited_environment(self.environ)),
        )

    def _make_api(self) -> ApiServer:
        return ApiServer(
            self.store,
            data_dir=self.data / API,
            ports=(self.port,) if self.port else self._ports(),
            clock=self.clock,
            logs=self.agent,
        )

    @property
    def _port_file(self) -> Path:
        return self.data / API / "port"

    def _ports(self) -> list[int]:
        """The port of the last time first: runs that outlived a crash still use it.

        Otherwise each directory begins at a place of its own, so that two control planes seldom
        want the same one.
        """
        last: list[int] = []
        with contextlib.suppress(OSError, ValueError):
            last.append(int(self._port_file.read_text()))
        start = zlib.crc32(str(self.data).encode()) % len(PORTS)
        return [*last, *PORTS[start:], *PORTS[:start], 0]

    def _remember(self) -> None:
        source = self.images.source
        (self.data / IMAGES).write_text(str(Path(source).absolute()) if source else "")
        self._port_file.write_text(f"{self.api.port}\n")


def install(door: Door) -> None:
    """What a cluster with captfctl on it has before any object; what is there already stays."""
    for name in _NAMESPACES:
        with contextlib.suppress(AlreadyExists):
            door.create(NAMESPACES, Namespace(metadata=ObjectMeta(name=name)))
    with contextlib.suppress(AlreadyExists):
        door.create(CLUSTER_ROLES, runner_role())
    rules = (*policies(MANAGER["username"]), *capi_policies())
    for document in (*crds(), *capi_crds(), *rules):
        resource = _INSTALLED[document["kind"]]
        try:
            door.create(resource, document)
        except AlreadyExists:
            # An older release's: the schemas and rules of this one count.
            name = document["metadata"]["name"]
            door.patch(resource, name, "", {"spec": document["spec"]})


_INSTALLED = {
    resource.kind: resource.untyped()
    for resource in (CRDS, ADMISSION_POLICIES, ADMISSION_POLICY_BINDINGS)
}
