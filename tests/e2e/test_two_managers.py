"""Two managers that do not elect a leader, on the embedded control plane: the run lease decides
(leases.md: Two managers). On a real one: tests/kubernetes/test_faults.py."""

import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from captfctl.cluster.door import EventType
from captfctl.cluster.live import LiveDoor
from captfctl.model import keys
from captfctl.model.core import Job
from captfctl.model.resources import JOBS
from captfctl.runs.jobs import is_finished
from tests.e2e.bare_plane import UP
from tests.e2e.site import QUICK_IMAGE, QUICK_RUNTIME, QUICKSTART, ROOT, Captfctl, eventually
from tests.kubernetes.fleet import Fleet

pytestmark = [pytest.mark.timeout(900)]

OBJECTS = 50


class LiveJobs:
    """Watches every Job from the beginning: the most unfinished ones each object ever had."""

    def __init__(self, door: LiveDoor) -> None:
        self.most: dict[str, int] = defaultdict(int)
        self._live: dict[str, set[str]] = defaultdict(set)
        self._watch = door.watch(JOBS)
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def _follow(self) -> None:
        with self._watch as events:
            for event in events:
                if event.object is not None:
                    self._see(event.type, event.object)

    def _see(self, change: EventType, job: Job) -> None:
        owner = job.metadata.labels[keys.OWNER_NAME]
        live = self._live[owner]
        if change is EventType.DELETED or is_finished(job):
            live.discard(job.metadata.uid)
        else:
            live.add(job.metadata.uid)
        self.most[owner] = max(self.most[owner], len(live))

    def close(self) -> None:
        self._watch.close()
        self._thread.join(10)


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Iterator[Path]:
    images = tmp_path / "images.yaml"
    images.write_text(f"{QUICK_IMAGE}:\n  module: {QUICKSTART}\n  runtime: {QUICK_RUNTIME}\n")
    plane = Captfctl(
        tmp_path / "plane.log",
        str(tmp_path / "data"),
        str(images),
        command=(
            "/usr/bin/env",
            f"PYTHONPATH={ROOT}",
            sys.executable,
            "-m",
            "tests.e2e.bare_plane",
        ),
    )
    plane.start(UP)
    try:
        yield tmp_path / "data" / "api" / "kubeconfig"
    finally:
        plane.terminate()


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


def test_fifty_objects_at_once_never_have_two_live_jobs_each(kubeconfig, managers):
    with closing(LiveDoor.from_kubeconfig(kubeconfig)) as door:
        watching = LiveJobs(door)
        fleet = Fleet(door, "fifty", OBJECTS)
        fleet.create()
        eventually(fleet.settled, lambda: f"all ready: {fleet.explain()}", 600)
        eventually(lambda: not fleet.leases(), lambda: f"leases left: {fleet.leases()}", 30)
        watching.close()

        assert len(watching.most) == OBJECTS
        assert set(watching.most.values()) == {1}
        assert len(fleet.jobs()) == OBJECTS
        outcomes = fleet.outcomes()
        assert set(outcomes.values()) <= {1}
        for manager in managers:
            assert manager.alive
