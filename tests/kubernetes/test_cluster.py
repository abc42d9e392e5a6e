"""`make cluster`: what a contributor gets, from its first line to Ctrl-C."""

import os
import signal
import sys
from pathlib import Path

import pytest

from captfctl.cluster.live import LiveDoor
from captfctl.model.resources import TERRAFORM_CLUSTERS
from tests.e2e.site import CAPTFCTL, ROOT, Captfctl, command_lines, eventually, kubectl

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(300)]

COMMAND = (sys.executable, "-m", "tests.kubernetes.cluster")
START_SECONDS = 150.0


def test_a_cluster_runs_the_quick_start_until_ctrl_c_and_leaves_nothing(tmp_path):
    cluster = Captfctl(tmp_path / "cluster.log", command=COMMAND)
    cluster.launch()
    try:
        kubeconfig = exported(cluster)
        kubectl(kubeconfig, "apply", "-f", str(ROOT / "examples/quickstart/cluster.yaml"))
        eventually(lambda: ready(kubeconfig), "the quick start's cluster is Ready", 120)
        jobs = kubectl(kubeconfig, "get", "jobs", "-o", "name").split()
        assert "Apply complete!" in kubectl(kubeconfig, "logs", jobs[0])
    finally:
        code = end(cluster)

    assert code == 0, cluster.output()
    folder = kubeconfig.parents[1]
    assert not folder.exists()
    assert not [line for _, line in command_lines() if str(folder) in line]


def test_without_a_manager_its_command_is_told_and_a_part_that_ends_ends_it_all(tmp_path):
    cluster = Captfctl(tmp_path / "cluster.log", "--without-manager", command=COMMAND)
    cluster.launch()
    try:
        kubeconfig = exported(cluster)
        eventually(lambda: "Ctrl-C" in cluster.output(), "everything is told")
        line = next(s for s in cluster.output().splitlines() if s.startswith("manager: "))
        words = line.removeprefix("manager: ").split()
        program = words.index(str(CAPTFCTL))
        environment = dict(word.split("=", 1) for word in words[:program])
        manager = Captfctl(tmp_path / "manager.log", command=words[program:], **environment)
        manager.start("manager started")
        assert manager.terminate() == 0
        folder = str(kubeconfig.parent)
        scheduler = [pid for pid, s in command_lines() if "kube-scheduler" in s and folder in s]
        os.kill(scheduler[0], signal.SIGKILL)
        assert cluster.wait(100) == 1
    finally:
        end(cluster)
    assert "kube-scheduler ended by itself" in cluster.output()
    assert not kubeconfig.exists()


def end(cluster: Captfctl) -> int:
    """Ctrl-C, unless it ended by itself; the exit code."""
    if cluster.alive:
        cluster.signal(signal.SIGINT)
    return cluster.wait(100)


def exported(cluster: Captfctl) -> Path:
    """The kubeconfig that the command tells."""

    def told() -> list[str]:
        assert cluster.alive, cluster.output()
        return [s for s in cluster.output().splitlines() if s.startswith("export KUBECONFIG=")]

    eventually(told, cluster.output, START_SECONDS)
    return Path(told()[0].partition("=")[2])


def ready(kubeconfig: Path) -> bool:
    door = LiveDoor.from_kubeconfig(kubeconfig)
    try:
        found = door.get(TERRAFORM_CLUSTERS, "quickstart", "default")
    finally:
        door.close()
    return any(c.type == "Ready" and c.status == "True" for c in found.status.conditions)
