"""A real apply stopped at a random instant in each of three ways: a small interrupt matrix.

`python tests/tools/interrupt_matrix.py` runs the whole one.
"""

import random
import shutil
import subprocess

import pytest

from tests.tools import interrupt_matrix


def _can_name_hosts() -> bool:
    for command in (["unshare", "--uts"], ["unshare", "--user", "--map-root-user", "--uts"]):
        done = subprocess.run([*command, "true"], capture_output=True, check=False)
        if done.returncode == 0:
            return True
    return False


@pytest.mark.terraform
@pytest.mark.skipif(shutil.which("terraform") is None, reason="terraform is not on PATH")
@pytest.mark.skipif(not _can_name_hosts(), reason="needs a host name of its own (unshare --uts)")
def test_a_stopped_apply_leaves_nothing_that_keeps_the_next_one_from_converging():
    tallies = interrupt_matrix.run(1, "terraform", random.Random())
    assert all(tally.rounds == 1 for tally in tallies.values())
    assert not any(tally.failures for tally in tallies.values()), interrupt_matrix.table(tallies)
