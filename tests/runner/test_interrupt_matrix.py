"""A real apply stopped at a random instant in each of three ways, or whose API server goes away for
two seconds at the end of each of its steps: a small interrupt matrix.

`python tests/tools/interrupt_matrix.py` runs the whole one.
"""

import os
import random
import subprocess

import pytest

from tests.support.binaries import NEEDS_TERRAFORM
from tests.tools import interrupt_matrix
from tests.tools.tally import table

BRIEF = [
    name
    for name, outage in interrupt_matrix.BY_NAME.items()
    if outage.seconds == 2 and (not outage.full_disk or os.geteuid() == 0)
]


def _can_name_hosts() -> bool:
    for command in (["unshare", "--uts"], ["unshare", "--user", "--map-root-user", "--uts"]):
        done = subprocess.run([*command, "true"], capture_output=True, check=False)
        if done.returncode == 0:
            return True
    return False


@pytest.mark.terraform
@NEEDS_TERRAFORM
@pytest.mark.skipif(not _can_name_hosts(), reason="needs a host name of its own (unshare --uts)")
@pytest.mark.parametrize("ways", [interrupt_matrix.STOPS, BRIEF], ids=["stopped", "server away"])
def test_a_disturbed_apply_leaves_nothing_that_keeps_the_next_one_from_converging(ways):
    tallies = interrupt_matrix.run(1, "terraform", random.Random(), ways)
    assert all(tally.rounds == 1 for tally in tallies.values())
    assert not any(tally.failures for tally in tallies.values()), table(tallies)
