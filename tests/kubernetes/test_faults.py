"""Whatever goes wrong: one Job per object at a time, each told once, all Ready in the end.

The full lengths, with a table of figures: `python -m tests.kubernetes.faults`.
"""

import pytest

from tests.kubernetes.faults import FAULTS, happen

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(900)]


@pytest.mark.parametrize("fault", FAULTS)
def test_objects_come_through(site, fault):
    row = happen(site, fault)
    assert row.most_live == 1, row
    assert row.twice == 0, row
    assert row.leases == 0, row
    assert row.jobs >= row.objects, row
