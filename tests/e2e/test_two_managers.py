"""Two managers that do not elect a leader, on the embedded control plane: the run lease decides
(leases.md: Two managers). On a real one: tests/kubernetes/test_faults.py."""

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from captfctl.clock import SystemClock
from captfctl.cluster.door import Door
from captfctl.cluster.live import LiveDoor
from captfctl.embedded.apiserver import ApiServer
from captfctl.embedded.capi import CapiStandIn
from captfctl.embedded.plane import install
from captfctl.embedded.store import EmbeddedStore
from captfctl.model.core import Job
from captfctl.model.resources import JOBS
from captfctl.runs.jobs import is_finished
from tests.e2e.live_jobs import LiveJobs
from tests.e2e.site import Captfctl, eventually
from tests.kubernetes.fleet import Fleet
from tests.support.fake_runner import FakeRunner

pytestmark = [pytest.mark.timeout(900)]

OBJECTS = 50


@pytest.fixture
def store() -> Iterator[EmbeddedStore]:
    store = EmbeddedStore.in_memory(SystemClock())
    yield store
    store.close()


@pytest.fixture
def kubeconfig(tmp_path: Path, store: EmbeddedStore) -> Iterator[Path]:
    """A control plane without a node."""
    door, clock = store.door(), SystemClock()
    install(door)
    api = ApiServer(store, data_dir=tmp_path / "api", clock=clock)
    capi = CapiStandIn(door, clock)
    api.start()
    capi.start()
    yield api.kubeconfig_path
    capi.stop(10)
    api.stop()


class Runs:
    """Every Job runs for a moment and succeeds, without a process of its own: what is tested is
    who creates it."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._runner = FakeRunner(door, SystemClock())
        self._started: dict[str, Job] = {}
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ending.wait(0.05):
            ended, self._started = self._started, {}
            for job in ended.values():
                self._runner.succeed(job)
            for job in self._door.list(JOBS).items:
                if not is_finished(job):
                    self._runner.start(job)
                    self._started[job.metadata.uid] = job

    def close(self) -> None:
        self._ending.set()
        self._thread.join()


@pytest.fixture
def managers(tmp_path: Path, kubeconfig: Path) -> Iterator[list[Captfctl]]:
    both = [
        Captfctl(
            tmp_path / f"manager-{name}.log",
            "manage",
            f"--kubeconfig={kubeconfig}",
            "--runner-image=registry.example.com/captfctl:test",
            "--health-addr=",
            "--diagnostics-address=",
        )
        for name in ("a", "b")
    ]
    for manager in both:
        manager.start("manager started")
    yield both
    for manager in both:
        assert manager.terminate() == 0


def test_fifty_objects_at_once_never_have_two_live_jobs_each(store, kubeconfig, managers):
    with closing(LiveDoor.from_kubeconfig(kubeconfig)) as door, closing(Runs(store.door())):
        watching = LiveJobs(kubeconfig)
        fleet = Fleet(door, "fifty", OBJECTS)
        fleet.create()
        eventually(fleet.settled, lambda: f"all ready: {fleet.explain()}", 600)
        eventually(lambda: not fleet.leases(), lambda: f"leases left: {fleet.leases()}", 30)
        watching.close()

        assert len(watching.most_of_owner) == OBJECTS
        assert set(watching.most_of_owner.values()) == {1}
        assert len(fleet.jobs()) == OBJECTS
        outcomes = fleet.outcomes()
        assert set(outcomes.values()) <= {1}
        for manager in managers:
            assert manager.alive
