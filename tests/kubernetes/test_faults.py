"""Whatever goes wrong: one Job per object at a time, none of a cluster beside those of its machines
and pools, each told once, all Ready in the end.

Of the server, of one request, of the managers. All of them, at full length and with a table of
figures: `python -m tests.kubernetes.faults`.
"""

import pytest

from tests.kubernetes.faults import FAULTS, happen

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(900)]


CHOSEN = ("killed-api-server", "lost-answers", "two-managers")


def test_every_chosen_fault_is_one():
    assert set(CHOSEN) <= set(FAULTS)


@pytest.mark.parametrize("fault", CHOSEN)
def test_objects_come_through(site, fault):
    row = happen(site, fault)
    assert row.most_live == 1, row
    assert row.overlaps == 0, row
    assert row.twice == 0, row
    assert row.leases == 0, row
    assert row.jobs >= row.objects, row
