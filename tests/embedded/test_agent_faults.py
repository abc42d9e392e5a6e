"""The node agent when the disk or the API fails it."""

import errno
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from captfctl.cluster.errors import Unavailable
from captfctl.embedded.agent import preparation
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
