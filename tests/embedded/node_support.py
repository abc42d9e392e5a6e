"""A node agent with a control plane around it, in one process."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from captfctl.clock import SystemClock
from captfctl.cluster.errors import NotFound
from captfctl.embedded.agent import AgentSettings, ApiAccess, NodeAgent
from captfctl.embedded.images import Entry, ImageTable
from captfctl.embedded.job_controller import JobController
from captfctl.embedded.scheduler import Scheduler
from captfctl.embedded.store import EmbeddedStore
from captfctl.embedded.supervisor import processes
from captfctl.embedded.supervisor.launch import MARKER
from captfctl.model.core import ContainerStateTerminated, Pod
from captfctl.model.resources import EVENTS, PODS
from tests.embedded.support import NAMESPACE, create, running, until

IMAGE = "example.com/a:v1"


class Plane:
    """The store, the node's files, and the agent of the moment."""

    def __init__(
        self, base: Path, store: EmbeddedStore, access: ApiAccess | None, real: bool
    ) -> None:
        self.base = base
        self.store = store
        self.door = store.door()
        module = base / "module"
        module.mkdir()
        (module / "main.tf").write_text("# nothing\n")
        self.path = "/usr/local/bin:/usr/bin:/bin"
        if not real:
            runtime = base / "bin" / "terraform"
            runtime.parent.mkdir()
            runtime.write_text("#!/bin/sh\n")
            runtime.chmod(0o755)
            self.path = f"{runtime.parent}:{self.path}"
        self.ca = base / "ca.crt"
        self.ca.write_text("certificate")
        self.token = base / "token"
        self.token.write_text("shared-token")
        self.access = access or ApiAccess(
            server="https://127.0.0.1:6443", ca_path=self.ca, token_path=self.token
        )
        self.images = ImageTable({IMAGE: Entry(module=module)})
        self.agent = self.new_agent()

    def new_agent(self, **settings: Any) -> NodeAgent:
        return NodeAgent(
            self.door,
            "node",
            self.images,
            self.base / "node",
            self.access,
            SystemClock(),
            AgentSettings(
                base_env={"PATH": self.path}, mount_retry=0.1, image_retry=0.1, **settings
            ),
        )

    def replace_agent(self) -> None:
        """As after a crash: the old one just stops looking, a new one takes over."""
        assert self.agent.stop(10)
        self.agent = self.new_agent()
        self.agent.start()

    def run(self, name: str, script: str = "true", *, python: bool = False, **spec: Any) -> None:
        command = ["/usr/bin/env", "python3", "-IS", "-c"] if python else ["/bin/sh", "-c"]
        container = {"name": "source", "image": IMAGE, "command": [*command, script]}
        container |= spec.pop("container", {})
        pod = {"restartPolicy": "Never", "containers": [container], **spec}
        create(self.door, PODS, {"metadata": {"name": name}, "spec": pod})

    def pod(self, name: str) -> Pod:
        return self.door.get(PODS, name, NAMESPACE)

    def phase(self, name: str) -> str:
        return self.pod(name).status.phase

    def wait_phase(self, name: str, *phases: str) -> Pod:
        until(lambda: self.phase(name) in phases, f"{name} in {phases}")
        return self.pod(name)

    def wait_log(self, name: str, text: str) -> None:
        until(lambda: text in self.log_so_far(name), f"{text!r} in the log of {name}")

    def log_so_far(self, name: str) -> str:
        try:
            return self.log(name)
        except NotFound:  # not bound yet
            return ""

    def log(self, name: str, **options: Any) -> str:
        return b"".join(self.agent.open(NAMESPACE, name, "source", **options)).decode()

    def terminated(self, name: str) -> ContainerStateTerminated:
        status = self.pod(name).status.container_statuses[0]
        assert status.state is not None
        assert status.state.terminated is not None
        return status.state.terminated

    def waiting(self, name: str) -> tuple[str, str]:
        statuses = self.pod(name).status.container_statuses
        if not statuses or statuses[0].state is None or statuses[0].state.waiting is None:
            return "", ""
        return statuses[0].state.waiting.reason, statuses[0].state.waiting.message

    def processes(self, name: str) -> list[processes.Process]:
        return processes.belonging(f"{MARKER}={self.pod(name).metadata.uid}")

    def directory(self, name: str) -> Path:
        return self.base / "node" / "pods" / self.pod(name).metadata.uid

    def events(self, reason: str) -> list[str]:
        return [e.note for e in self.door.list(EVENTS, NAMESPACE).items if e.reason == reason]


@contextmanager
def plane_in(
    base: Path,
    *,
    store: EmbeddedStore | None = None,
    access: ApiAccess | None = None,
    real: bool = False,
) -> Iterator[Plane]:
    """`real`: no stand-in for Terraform is put on PATH."""
    store = store or EmbeddedStore.in_memory(SystemClock())
    plane = Plane(base, store, access, real)
    clock = SystemClock()
    with running(JobController(plane.door, clock), Scheduler(plane.door, clock)):
        plane.agent.start()
        try:
            yield plane
        finally:
            plane.agent.shut_down(0)
            plane.agent.stop(10)
            left = [
                process
                for path in (base / "node" / "pods").glob("*")
                for process in processes.belonging(f"{MARKER}={path.name}")
            ]
            processes.end_all(lambda: [p for p in left if processes.alive(p)], timeout=10)
    store.close()
    assert left == []
