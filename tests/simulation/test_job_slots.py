"""Limits are limits, and slots are used (runs.md: Limits on running Jobs).

`CAPTF_FLEET_OBJECTS=500 pytest tests/simulation/test_job_slots.py` tries it with more objects.
"""

import os

import pytest

from tests.simulation.fleet import Fleet

OBJECTS = int(os.environ.get("CAPTF_FLEET_OBJECTS", "10"))
DUE = 3600


@pytest.fixture
def fleet():
    """Makes fleets, and ends their queues."""
    made: list[Fleet] = []

    def make(*args, **options) -> Fleet:
        made.append(Fleet(*args, **options))
        return made[-1]

    yield make
    for one in made:
        one.queue.shut_down()


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_never_more_jobs_than_the_limit_and_hardly_a_slot_idle(fleet, limit):
    many = fleet(OBJECTS, limit)
    many.run_until(started=OBJECTS)
    last = many.started[-1][2]
    first = many.started[0][2]
    assert many.most == limit
    assert sorted(name for name, _, _ in many.started) == sorted(f"c-{n}" for n in range(OBJECTS))
    wanted = (OBJECTS // limit - 1) * many.seconds
    assert last - first <= wanted * 1.05


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_a_persons_change_starts_within_one_slot_time_while_checks_are_due(fleet, limit):
    many = fleet(OBJECTS, limit, drift=DUE)
    many.run_until(started=OBJECTS)
    many.rest()
    many.clock.advance(DUE * 2)  # all of them are due at once
    many.run_until(started=OBJECTS + 1)
    changed = many.clock.monotonic()
    before = len(many.started)
    many.change("c-0", "eu-2")
    while not any(name == "c-0" and op == "apply" for name, op, _ in many.started[before:]):
        assert many.clock.monotonic() - changed <= many.seconds + 1
        many.step()
    many.run_until(started=2 * OBJECTS)  # the checks go on: one object was applied instead
    assert many.most <= limit
