"""Sites whose managers and whose node agent are processes of their own: each can be stopped, frozen
or killed without the others."""

import contextlib
import os
import re
import signal
import urllib.error
import urllib.request
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from captfctl.clock import SystemClock
from captfctl.cluster.door import Door
from captfctl.embedded.apiserver import ApiServer
from captfctl.embedded.capi import CapiStandIn
from captfctl.embedded.garbage_collector import GarbageCollector
from captfctl.embedded.job_controller import JobController
from captfctl.embedded.plane import install
from captfctl.embedded.scheduler import Scheduler
from captfctl.embedded.store import EmbeddedStore
from captfctl.model.core import ConfigMap
from captfctl.model.meta import ObjectMeta
from captfctl.model.resources import CONFIG_MAPS
from tests.e2e.site import CAPTFCTL, Captfctl, Site

MANAGER_IMAGE = "registry.example.com/captfctl:test"
NODE = "node-1"
STARTED = "manager started"


class ManagedSite(Site):
    """One that runs a manager called `a`, unless it is told otherwise."""

    environment: ClassVar[Mapping[str, str]] = {}
    """Of each manager."""

    def __init__(self, folder: Path, kubeconfig: Path) -> None:
        super().__init__(folder)
        self.kubeconfig = kubeconfig
        self.managers: dict[str, Captfctl] = {}

    @cached_property
    def node(self) -> Captfctl:
        return Captfctl(
            self.folder / "node.log",
            "local",
            "node",
            f"--kubeconfig={self.kubeconfig}",
            f"--images={self.images}",
            f"--data={self.folder / 'node'}",
            f"--name={NODE}",
        )

    @property
    @abstractmethod
    def port(self) -> int:
        """The API server's."""

    @property
    @abstractmethod
    def manager_kubeconfig(self) -> Path: ...

    def kubeconfig_through(self, port: int) -> Path:
        """A manager's kubeconfig that finds the API server at another port of this machine."""
        path = self.folder / f"through-{port}.kubeconfig"
        path.touch(mode=0o600)
        own = self.manager_kubeconfig.read_text()
        path.write_text(own.replace(f"127.0.0.1:{self.port}", f"127.0.0.1:{port}"))
        return path

    def add_manager(
        self,
        name: str,
        *flags: str,
        kubeconfig: Path | None = None,
        command: Sequence[str] = (str(CAPTFCTL),),
    ) -> Captfctl:
        """Start a manager process; several are told apart by `name`. Later flags win."""
        manager = Captfctl(
            self.folder / f"manager-{name}.log",
            *self.manager_arguments(kubeconfig),
            *flags,
            command=command,
            **self.environment,
        )
        manager.start(STARTED)
        self.managers[name] = manager
        return manager

    def manager_arguments(self, kubeconfig: Path | None = None) -> list[str]:
        return [
            "manage",
            f"--kubeconfig={kubeconfig or self.manager_kubeconfig}",
            f"--runner-image={MANAGER_IMAGE}",
            "--health-addr=127.0.0.1:0",
            "--diagnostics-address=127.0.0.1:0",
        ]

    @contextlib.contextmanager
    def without_manager(self) -> Iterator[None]:
        """No manager but those that the caller adds, until the block ends."""
        first = self.managers.pop("a")
        first.terminate()
        try:
            yield
        finally:
            self.stop_managers()
            self.managers = {"a": first}
            first.start(STARTED)

    def stop_managers(self) -> None:
        for manager in self.managers.values():
            if manager.alive:
                manager.terminate()

    def stop_node(self) -> None:
        if self.node.alive:
            self.node.terminate()
        for pid in self.processes():  # pods outlive their node's agent, not the tests
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def crash_manager(self) -> None:
        manager = self.managers["a"]
        manager.kill()
        manager.start(STARTED)

    def crash_node(self) -> None:
        self.node.kill()
        self.node.start("is up")

    @property
    def node_data(self) -> Path:
        return self.folder / "node" / "node"


def port_of(manager: Captfctl, server: str) -> int:
    """Where a manager's `health` or `diagnostics` server listens, by its log."""
    found = re.search(rf"{server} is served on [^ ]*:(\d+)", manager.output())
    assert found, manager.output()
    return int(found[1])


def probe(manager: Captfctl, path: str) -> tuple[int, str]:
    """What a manager answers to a probe: the status, and the text."""
    url = f"http://127.0.0.1:{port_of(manager, 'health')}{path}"
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refusal:
        return refusal.code, refusal.read().decode()


class EmbeddedSite(ManagedSite):
    """The embedded API server and its controllers in this process."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, folder / "api" / "kubeconfig")
        self._undo = contextlib.ExitStack()
        self._port = 0

    @property
    def port(self) -> int:
        return self._port

    @property
    def manager_kubeconfig(self) -> Path:
        return self.kubeconfig

    def start(self) -> None:
        with self._undo as undo:
            clock = SystemClock()
            store = EmbeddedStore.in_memory(clock)
            undo.callback(store.close)
            door: Door = store.door()
            install(door)
            (self.folder / "api").mkdir()
            server = ApiServer(store, data_dir=self.folder / "api", clock=clock)
            server.start()
            undo.callback(server.stop)
            self._port = int(server.url.rpartition(":")[2])
            _publish(door, server.ca_path.read_text())
            for part in (
                JobController(door, clock),
                Scheduler(door, clock),
                GarbageCollector(door, lambda: [s.resource for s in store.registry], clock),
                CapiStandIn(door, clock),
            ):
                part.start()
                undo.callback(part.stop, 10)
            undo.callback(self.stop_node)
            self.node.start("is up")
            undo.callback(self.stop_managers)
            self.add_manager("a")
            self._undo = undo.pop_all()

    def stop(self) -> None:
        self._undo.close()


def _publish(door: Door, authority: str) -> None:
    """What Kubernetes' controller manager does, for nodes to know the server."""
    metadata = ObjectMeta(name="kube-root-ca.crt", namespace="kube-system")
    door.create(
        CONFIG_MAPS, ConfigMap(metadata=metadata, data={"ca.crt": authority}), "kube-system"
    )
