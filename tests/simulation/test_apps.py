"""The runs engine keeps its promises to a subject that is no Terraform.

`CAPTF_SIMULATION_SEEDS=500 pytest tests/simulation` tries more seeds than the default few.
"""

import os

import pytest

from tests.simulation.apps import APPS, AppSimulation
from tests.simulation.course import Broken

SEEDS = int(os.environ.get("CAPTF_SIMULATION_SEEDS", "12"))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_runs_of_apps_are_live_once_counted_once_and_leave_no_lease(seed: int):
    simulation = AppSimulation(seed)
    try:
        simulation.run()
    except Broken as broken:
        pytest.fail(f"{broken}\nreplay it: python -m tests.simulation --apps --seed {seed}")


def test_without_faults_each_app_runs_once():
    simulation = AppSimulation(0, steps=0)
    simulation.run()
    assert len(simulation.counted) == len(APPS) + 1
