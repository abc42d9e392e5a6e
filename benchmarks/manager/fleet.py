"""Many machines created at once under one cluster; then what `manager` measures, with clusters,
machines and pools (issue 10).

The control plane is real, Cluster API is the stand-in of the local mode, and a Job takes no longer
than it takes to write its end: what is left is the manager.
"""

import contextlib
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure, Missing
from benchmarks.manager.bench import CHANGES, bare_plane, door_to, figures, manager_command
from benchmarks.manager.finishing import Finishing
from benchmarks.manager.measured import Measured, measured
from benchmarks.manager.population import PER_NAMESPACE, Subject
from benchmarks.manager.watching import NewJobs
from benchmarks.timing import percentile
from captfctl.clock import SystemClock
from captfctl.cluster.errors import ApiError
from captfctl.cluster.live import LiveDoor
from captfctl.embedded.capi import CapiStandIn
from captfctl.embedded.plane import install
from captfctl.model.crds import DEFINITIONS
from captfctl.model.resource import Resource
from captfctl.model.resources import TERRAFORM_MACHINE_POOLS
from tests.controlplane.assets import AssetsMissingError, find
from tests.controlplane.processes import ControlPlane, free_port
from tests.kubernetes.fleet import Fleet

_PATIENCE = 1800.0
_POLL = 0.5
_SERVED = 60.0
_STAND_IN_WORKERS = 8
_FAMILY = 3  # a cluster with a machine and a pool


def run(counts: Sequence[int], machines: int) -> Iterator[Figure]:
    try:
        assets = find()
    except AssetsMissingError as error:
        raise Missing(f"{error}; `make control-plane` builds what is missing") from None
    for count in counts:
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            with (
                bare_plane(assets, folder / "plane") as plane,
                contextlib.closing(door_to(plane)) as door,
            ):
                _install(door)
                with _working(plane, door, folder) as working:
                    yield from _burst(door, working, machines)
                    _tell(f"making {count} objects of all kinds with their runs")
                    fleets = _population(door, working, count - machines - 1)
                made = machines + 1 + sum(fleet.size for fleet in fleets)
                yield from figures(plane, door, made, _changed(fleets), folder)


def _install(door: LiveDoor) -> None:
    install(door)
    deadline = time.monotonic() + _SERVED
    while not all(_is_served(door, definition.resource) for definition in DEFINITIONS):
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {_SERVED:.0f} s: the kinds are served")
        time.sleep(_POLL)


def _is_served(door: LiveDoor, resource: Resource[Any]) -> bool:
    try:
        door.list(resource.untyped(), limit=1)
    except ApiError:
        return False
    return True


@dataclass(frozen=True)
class _Working:
    """A manager whose runs end at once."""

    manager: Measured
    runs: Finishing

    def settle(self, fleets: Sequence[Fleet]) -> None:
        """Until all objects of the fleets are Ready. Raises `DidNotHappen`."""
        left = list(fleets)

        def settled() -> bool:
            time.sleep(_POLL)  # looking at all of them is work for the server, too
            self.runs.check()
            while left and left[0].settled():
                left.pop(0)
            return not left

        self.manager.wait_until(settled, "all were Ready", _PATIENCE)


@contextlib.contextmanager
def _working(plane: ControlPlane, door: LiveDoor, folder: Path) -> Iterator["_Working"]:
    """A manager, the stand-in for Cluster API, and runs that end at once."""
    stand_in = CapiStandIn(door, SystemClock(), workers=_STAND_IN_WORKERS)
    runs = Finishing(door)
    with measured(manager_command(plane, free_port()), folder / "working.log") as manager:
        stand_in.start()
        try:
            yield _Working(manager, runs)
        finally:
            stand_in.stop(10)
            runs.close()


def _burst(door: LiveDoor, working: _Working, machines: int) -> Iterator[Figure]:
    """All machines of one cluster at once, and a change of the cluster among them."""
    fleet = Fleet(door, "burst", 1)
    fleet.create()
    working.settle([fleet])
    _tell(f"{machines} machines at once")
    jobs = NewJobs(door)
    cpu = working.manager.usage.cpu
    begun = time.perf_counter()
    created = {}
    for name in fleet.grow(machines):
        created[name] = time.perf_counter()
    change = time.perf_counter()
    fleet.change()
    waited = jobs.of(fleet.names[0], _PATIENCE) - change
    working.settle([fleet])
    ready = time.perf_counter() - begun
    started = {name: jobs.of(name, _PATIENCE) for name in created}
    jobs.close()
    waits = [started[name] - at for name, at in created.items()]
    what = f"{machines} machines at once"
    yield Figure(what=f"{what}: all Ready", value=ready, unit="s")
    yield Figure(what=f"{what}: created in", value=change - begun, unit="s")
    yield Figure(what=f"{what}: CPU", value=working.manager.usage.cpu - cpu, unit="s")
    yield Figure(what=f"{what}: creation to Job, p50", value=statistics.median(waits), unit="s")
    yield Figure(what=f"{what}: creation to Job, p99", value=percentile(waits, 0.99), unit="s")
    yield Figure(what=f"{what}: most that overtook one", value=most_overtaken(created, started))
    yield Figure(what=f"{what}: change of their cluster to its Job", value=waited, unit="s")


def most_overtaken(created: dict[str, float], started: dict[str, float]) -> int:
    """The greatest number of machines that were created after one and started before it."""
    order = sorted(started, key=started.__getitem__)
    return max(
        sum(created[other] > created[name] for other in order[:place])
        for place, name in enumerate(order)
    )


def _population(door: LiveDoor, working: _Working, count: int) -> list[Fleet]:
    """About so many objects, in namespaces of a few clusters with a machine and a pool each."""
    clusters = max(1, count // _FAMILY)
    fleets = []
    for number, first in enumerate(range(0, clusters, PER_NAMESPACE)):
        size = min(PER_NAMESPACE, clusters - first)
        fleet = Fleet(door, f"team-{number:03}", size, machines=1, pools=1)
        fleet.first = 1 + first  # the name of every object is its own: 0 is that of the burst
        fleet.create()
        fleets.append(fleet)
    working.settle(fleets)
    return fleets


def _changed(fleets: Sequence[Fleet]) -> list[Subject]:
    """Clusters, and pools of other clusters: a change of its cluster makes a pool wait."""
    clusters = [(fleet, name) for fleet in fleets for name in fleet.names]
    chosen = clusters[:: max(1, len(clusters) // CHANGES)][:CHANGES]
    return [
        Subject(fleet.namespace, fleet.pool_names(name)[0], TERRAFORM_MACHINE_POOLS)
        if place % 2
        else Subject(fleet.namespace, name)
        for place, (fleet, name) in enumerate(chosen)
    ]


def _tell(text: str) -> None:
    print(f"fleet: {text}", file=sys.stderr, flush=True)
