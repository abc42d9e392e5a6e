"""Nothing that waits is overtaken for ever.

The operation gate (leases.md: The operation gate), and the limits (runs.md: Limits on running
Jobs).
"""

from collections.abc import Callable, Iterator

import pytest

from captfctl.decide.constants import GATE_REQUEUE
from tests.simulation.fleet import Fleet

POOLS = 3
GATE = GATE_REQUEUE.total_seconds()


@pytest.fixture
def fleet() -> Iterator[Callable[..., Fleet]]:
    """Makes a cluster with pools, which were applied once, and ends its queue."""
    made: list[Fleet] = []

    def make(limit: int, **options: int) -> Fleet:
        found = Fleet(1, limit, pools=POOLS, **options)
        made.append(found)
        found.run_until(started=1 + POOLS)
        while {name for name, op, _ in found.started if op == "apply"} < {"c-0", *found.pools}:
            found.step()
        return found

    yield make
    for one in made:
        one.queue.shut_down()


class Stream:
    """Every pool wants to be applied again as soon as its Job runs."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._served = len(fleet.started)
        for name in fleet.pools:
            fleet.rotate(name)

    def step(self) -> None:
        """The next thing that happens."""
        self._fleet.step()
        started = self._fleet.started[self._served :]
        self._served += len(started)
        for name, _, _ in started:
            if name in self._fleet.pools:
                self._fleet.rotate(name)


@pytest.mark.parametrize("limit", [2, 20])
def test_a_clusters_apply_is_not_starved_by_a_stream_of_applies_of_its_pools(
    fleet: Callable[..., Fleet], limit: int
) -> None:
    busy = fleet(limit)
    stream = Stream(busy)
    begun = busy.clock.monotonic()
    while len(busy.starts_since(begun)) < 2 * POOLS:
        stream.step()
    changed = busy.clock.monotonic()
    busy.change("c-0", "eu-2")
    while ("c-0", "apply") not in busy.starts_since(changed):
        stream.step()
        # The runs that were there, a slot, and one more look at the gate.
        assert busy.clock.monotonic() - changed <= 2 * busy.seconds + GATE + 1
    assert len(busy.starts_since(changed)) <= 1 + limit
    # And the pools go on after it.
    ended = busy.clock.monotonic()
    while {name for name, _ in busy.starts_since(ended)} < set(busy.pools):
        stream.step()
        assert busy.clock.monotonic() - ended <= (POOLS + 1) * (busy.seconds + GATE)


@pytest.mark.parametrize("limit", [1, 20])
def test_a_deletion_is_not_starved_by_refreshes(fleet: Callable[..., Fleet], limit: int) -> None:
    """All pools look at their members without a pause, also the one that is deleted."""
    busy = fleet(limit, membership=15)
    begun = busy.clock.monotonic()
    while [op for _, op in busy.starts_since(begun)].count("refresh") < 2 * POOLS:
        busy.step()
    while "p-0" not in busy.running:
        busy.step()
    deleted = busy.clock.monotonic()
    busy.delete("p-0")
    while ("p-0", "destroy") not in busy.starts_since(deleted):
        busy.step()
        # Its own refresh, and a slot.
        assert busy.clock.monotonic() - deleted <= 2 * busy.seconds + 1
