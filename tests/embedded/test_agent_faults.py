"""The node agent when the disk or the API fails it."""

import errno
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from captfctl.cluster.errors import Unavailable
from captfctl.embedded.agent import containers, preparation
from captfctl.embedded.agent.stopping import StopReasons
from captfctl.embedded.supervisor import processes, records
from captfctl.model.resources import PODS
from tests.embedded.node_support import Plane, plane_in
from tests.embedded.support import NAMESPACE, until


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[Plane]:
    with plane_in(tmp_path) as plane:
        yield plane


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES])
def test_a_disk_that_refuses_is_told_in_the_pod_and_tried_again(
    plane: Plane, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    broken = threading.Event()
    broken.set()
    real = preparation.write_access

    def write(directory: Path, *rest: Any) -> None:
        if broken.is_set():
            raise OSError(number, os.strerror(number), str(directory))
        real(directory, *rest)

    monkeypatch.setattr(preparation, "write_access", write)
    plane.run("p")
    until(lambda: plane.events("FailedMount"))
    assert str(plane.base) in plane.events("FailedMount")[0]
    assert plane.phase("p") == "Pending"
    broken.clear()
    plane.wait_phase("p", "Succeeded")


def test_a_pod_directory_that_cannot_be_made_is_told_and_tried_again(plane: Plane) -> None:
    pods = plane.base / "node" / "pods"
    pods.write_text("in the way")
    plane.run("p")
    until(lambda: plane.waiting("p")[0] == "CreateContainerError")
    assert plane.events("Failed")
    pods.unlink()
    plane.wait_phase("p", "Succeeded")


def test_an_api_that_is_away_when_the_pod_ends_gets_the_end_later(
    plane: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    plane.run("p", "while [ ! -e go ]; do sleep 0.05; done; exit 5")
    plane.wait_phase("p", "Running")
    directory = plane.directory("p")
    away = threading.Event()
    away.set()
    refused = threading.Event()
    real = plane.door.patch

    def patch(resource: Any, *rest: Any, **more: Any) -> Any:
        if away.is_set() and resource.name == PODS.name:
            refused.set()
            raise Unavailable("the API server is away")
        return real(resource, *rest, **more)

    monkeypatch.setattr(plane.door, "patch", patch)
    (directory / "root" / "go").touch()
    assert refused.wait(30)
    assert plane.door.get(PODS, "p", NAMESPACE).status.phase == "Running"
    away.clear()
    plane.wait_phase("p", "Failed")
    assert plane.terminated("p").exit_code == 5


def test_a_pod_runs_and_is_ended_while_the_api_refuses_its_status(
    plane: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = plane.door.patch
    away = threading.Event()
    away.set()

    def patch(resource: Any, *rest: Any, **more: Any) -> Any:
        if away.is_set() and more.get("subresource") == "status" and resource.name == PODS.name:
            raise Unavailable("the API server is away")
        return real(resource, *rest, **more)

    plane.run(
        "p",
        "echo started; sleep 300",
        activeDeadlineSeconds=2,
        terminationGracePeriodSeconds=1,
    )
    monkeypatch.setattr(plane.door, "patch", patch)
    plane.wait_log("p", "started")
    exit_record = plane.directory("p") / "containers" / "source" / "exit.json"
    until(exit_record.exists)
    away.clear()
    pod = plane.wait_phase("p", "Failed")
    assert pod.status.reason == "DeadlineExceeded"


@pytest.fixture
def impatient(plane: Plane) -> Plane:
    """The agent waits half a second for a supervisor to do what it was told."""
    assert plane.agent.stop(10)
    plane.agent = plane.new_agent(kill_wait=0.5)
    plane.agent.start()
    return plane


@pytest.fixture
def frozen(impatient: Plane, monkeypatch: pytest.MonkeyPatch) -> processes.Process:
    """The supervisor of the pod `p`, which waits for the file `go`; it cannot be woken."""
    monkeypatch.setattr(containers.Container, "wake_supervisor", lambda _: None)
    impatient.run("p", "echo ready; while [ ! -e go ]; do sleep 0.05; done; exit 5")
    impatient.wait_log("p", "ready")
    impatient.wait_phase("p", "Running")
    home = impatient.directory("p") / "containers" / "source"
    claim = records.read_claim(home)
    assert claim is not None
    os.kill(claim.pid, signal.SIGSTOP)
    return processes.Process(claim.pid, claim.start)


def test_a_pod_is_ended_without_its_supervisor(impatient: Plane, frozen: processes.Process) -> None:
    impatient.door.delete(PODS, "p", NAMESPACE, grace_period_seconds=1)
    tree = processes.descendants(frozen.pid)
    until(lambda: not impatient.door.list(PODS, NAMESPACE).items)
    assert not any(processes.alive(process) for process in (frozen, *tree))


def test_a_pod_that_ends_by_itself_is_reported_without_its_supervisor(
    impatient: Plane, frozen: processes.Process
) -> None:
    (impatient.directory("p") / "root" / "go").touch()
    impatient.wait_phase("p", "Failed")
    assert impatient.terminated("p").exit_code == 5
    assert not processes.alive(frozen)


def test_a_tree_whose_pod_vanished_is_ended_without_its_supervisor_and_without_spinning(
    impatient: Plane, frozen: processes.Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = []
    real = StopReasons.current

    def current(self: StopReasons, *given: Any) -> Any:
        looks.append(given)
        return real(self, *given)

    monkeypatch.setattr(StopReasons, "current", current)
    directory, tree = impatient.directory("p"), processes.descendants(frozen.pid)
    assert tree
    impatient.door.delete(PODS, "p", NAMESPACE, grace_period_seconds=0)
    until(lambda: not directory.exists())
    assert not any(processes.alive(process) for process in (frozen, *tree))
    assert len(looks) < 50


@pytest.mark.parametrize("vanished", [False, True])
def test_a_tree_that_cannot_be_ended_is_told(
    impatient: Plane,
    frozen: processes.Process,
    vanished: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As a process that hangs in the kernel."""
    monkeypatch.setattr(processes, "end_all", lambda *_, **__: None)
    impatient.door.delete(PODS, "p", NAMESPACE, grace_period_seconds=0 if vanished else 1)
    until(lambda: impatient.events("FailedKillPod"))
    assert str(frozen.pid) in impatient.events("FailedKillPod")[0]
    assert vanished or impatient.phase("p") == "Running"
    monkeypatch.undo()
