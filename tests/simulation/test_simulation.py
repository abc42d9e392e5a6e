"""Whatever happens, in whatever order: the invariants hold, and everything ends well.

`CAPTF_SIMULATION_SEEDS=500 pytest tests/simulation` tries more seeds than the default few.
"""

import os

import pytest

from tests.simulation.course import Broken
from tests.simulation.simulator import Simulation

SEEDS = int(os.environ.get("CAPTF_SIMULATION_SEEDS", "8"))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_course_of_events_ends_where_one_without_faults_does(seed: int):
    simulation = Simulation(seed)
    try:
        simulation.run()
    except Broken as broken:
        pytest.fail(f"{broken}\nreplay it: python -m tests.simulation --seed {seed}")


def test_a_seed_always_tells_the_same_story():
    first, second = Simulation(1, steps=60), Simulation(1, steps=60)
    first.run()
    second.run()
    assert first.story == second.story


def test_a_simulation_without_faults_ends_at_once_with_one_apply_each():
    simulation = Simulation(0, steps=0)
    simulation.run()
    assert len(simulation.metrics.runs) == len(simulation.keys)
