"""The node agent as a process of its own against an API server, killed while pods run."""

import json
import os
import signal
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from captfctl.clock import SystemClock
from captfctl.cluster.door import Door
from captfctl.embedded.apiserver import ApiServer
from captfctl.embedded.scheduler import Scheduler
from captfctl.embedded.store import EmbeddedStore
from captfctl.embedded.supervisor import processes
from captfctl.embedded.supervisor.launch import MARKER
from captfctl.model.resources import NODES, PODS, SERVICE_ACCOUNTS
from tests.embedded.node_support import IMAGE
from tests.embedded.support import NAMESPACE, create, exists, running, until


class AgentProcess:
    def __init__(self, base: Path, api: ApiServer) -> None:
        self.base = base
        self._arguments = [
            sys.executable,
            "-m",
            "tests.embedded.agent_process",
            str(api.kubeconfig_path),
            str(base),
            IMAGE,
            str(api.ca_path),
        ]
        self.process = self.start()

    def start(self) -> "subprocess.Popen[bytes]":
        bin_ = self.base / "bin"
        with (self.base / "agent.err").open("ab") as errors:
            process = subprocess.Popen(
                self._arguments,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, "PATH": f"{bin_}:{os.environ['PATH']}"},
                start_new_session=True,
            )
        assert process.stdout is not None
        if process.stdout.readline() != b"up\n":
            raise AssertionError((self.base / "agent.err").read_text())
        return process

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()

    def kill_and_restart(self) -> None:
        self.kill()
        self.process = self.start()


class Site:
    def __init__(self, door: Door, agent: AgentProcess) -> None:
        self.door = door
        self.agent = agent

    def run(self, name: str, script: str) -> None:
        container = {"name": "source", "image": IMAGE, "command": ["/bin/sh", "-c", script]}
        spec = {"restartPolicy": "Never", "containers": [container]}
        create(self.door, PODS, {"metadata": {"name": name}, "spec": spec})

    def phase(self, name: str) -> str:
        return self.door.get(PODS, name, NAMESPACE).status.phase

    def home(self, name: str) -> Path:
        uid = self.door.get(PODS, name, NAMESPACE).metadata.uid
        return self.agent.base / "node" / "pods" / uid

    def log(self, name: str) -> str:
        path = self.home(name) / "containers" / "source" / "0.log"
        return path.read_text() if path.exists() else ""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    store = EmbeddedStore.in_memory(SystemClock())
    api = ApiServer(store, data_dir=tmp_path / "api", clock=SystemClock())
    api.start()
    (tmp_path / "module").mkdir()
    (tmp_path / "module" / "main.tf").write_text("")
    runtime = tmp_path / "bin" / "terraform"
    runtime.parent.mkdir()
    runtime.write_text("#!/bin/sh\n")
    runtime.chmod(0o755)
    door = store.door()
    if not exists(door, SERVICE_ACCOUNTS, "default"):
        create(door, SERVICE_ACCOUNTS, {"metadata": {"name": "default"}})
    agent = AgentProcess(tmp_path, api)
    with running(Scheduler(door, SystemClock())):
        yield Site(door, agent)
    agent.kill()
    for path in (tmp_path / "node" / "pods").glob("*"):
        marker = f"{MARKER}={path.name}"
        assert processes.end_all(lambda m=marker: processes.belonging(m), timeout=10) is not None
    api.stop()
    store.close()


def test_kill_9_of_the_agent_kills_no_pod_and_the_next_one_adopts_it(site: Site) -> None:
    site.run("p", "echo $$$$; while [ ! -e go ]; do sleep 0.05; done; exit 6")
    until(lambda: site.phase("p") == "Running")
    until(lambda: site.log("p"))
    pid = int(site.log("p").split()[-1])
    started = processes.identify(pid)
    site.agent.kill_and_restart()
    assert processes.identify(pid) == started
    (site.home("p") / "root" / "go").touch()
    until(lambda: site.phase("p") == "Failed")
    status = site.door.get(PODS, "p", NAMESPACE).status.container_statuses[0]
    assert status.state is not None
    assert status.state.terminated is not None
    assert status.state.terminated.exit_code == 6
    assert len(site.log("p").splitlines()) == 1  # started once


def test_a_container_starts_once_however_often_the_agent_is_killed_meanwhile(site: Site) -> None:
    names = [f"p{number}" for number in range(4)]
    for name in names:
        site.run(name, "echo start; exit 0")
    for _ in range(3):
        site.agent.kill_and_restart()
    for name in names:
        until(lambda name=name: site.phase(name) == "Succeeded", name)
        assert site.log(name).count("start") == 1


def test_a_pod_deleted_while_the_agent_was_dead_gets_its_sigterm_from_the_next(site: Site) -> None:
    script = "trap 'echo stopping; exit 0' TERM; echo ready; while :; do sleep 0.05; done"
    site.run("p", script)
    until(lambda: "ready" in site.log("p"))
    uid = site.door.get(PODS, "p", NAMESPACE).metadata.uid
    site.agent.kill()
    site.door.patch(PODS, "p", NAMESPACE, {"metadata": {"finalizers": ["example.com/keep"]}})
    site.door.delete(PODS, "p", NAMESPACE)
    site.agent.process = site.agent.start()
    until(lambda: site.phase("p") == "Succeeded")
    assert "stopping" in site.log("p")
    assert processes.belonging(f"{MARKER}={uid}") == []
    site.door.patch(PODS, "p", NAMESPACE, {"metadata": {"finalizers": None}})
    until(lambda: not exists(site.door, PODS, "p"))


def test_a_supervisor_killed_together_with_the_agent_is_a_failed_pod(site: Site) -> None:
    site.run("p", "setsid sleep 300 & echo ready; sleep 300")
    until(lambda: "ready" in site.log("p"))
    claim = json.loads((site.home("p") / "containers" / "source" / "supervisor.json").read_text())
    uid = site.door.get(PODS, "p", NAMESPACE).metadata.uid
    site.agent.kill()
    os.kill(claim["pid"], signal.SIGKILL)
    site.agent.process = site.agent.start()
    until(lambda: site.phase("p") == "Failed")
    assert processes.belonging(f"{MARKER}={uid}") == []


def test_logs_are_served_as_a_kubelet_serves_them(site: Site) -> None:
    site.run("p", "seq 1 3")
    until(lambda: site.phase("p") == "Succeeded")
    status = site.door.get(NODES, "node").status
    port = status.daemon_endpoints["kubeletEndpoint"]["Port"]
    context = ssl.create_default_context(cafile=str(site.agent.base / "node" / "pki" / "ca.crt"))

    def get(path: str) -> bytes:
        url = f"https://127.0.0.1:{port}/{path}"
        with urllib.request.urlopen(url, context=context, timeout=30) as answer:
            body: bytes = answer.read()
            return body

    assert get(f"containerLogs/{NAMESPACE}/p/source") == b"1\n2\n3\n"
    assert get(f"containerLogs/{NAMESPACE}/p/source?follow=true&tailLines=1") == b"3\n"
    with pytest.raises(urllib.error.HTTPError, match="404"):
        get(f"containerLogs/{NAMESPACE}/none/source")
    with pytest.raises(urllib.error.HTTPError, match="400"):
        get(f"containerLogs/{NAMESPACE}/p/source?tailLines=x")
