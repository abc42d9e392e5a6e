"""Two managers that elect a leader: the other one goes on where the first one ended."""

import os
import signal
import time
from pathlib import Path

import pytest

from captfctl.model.ops import Op
from tests.e2e.scenarios import Story
from tests.e2e.site import Captfctl, eventually
from tests.kubernetes.audit import most_live_jobs
from tests.kubernetes.faults import LEADER_LEASE
from tests.kubernetes.site import NAMESPACE

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(300)]

LEADS = "leads: it holds"
LEASE_SECONDS = 15.0
RETRY_SECONDS = 2.0


def leads(manager: Captfctl) -> bool:
    return LEADS in manager.output()


@pytest.fixture
def pair(site):
    """A leader and one that waits, with the default times."""
    with site.without_manager():
        first = site.add_manager("a", "--leader-elect")
        eventually(lambda: leads(first), "the first one leads", 30)
        second = site.add_manager("b", "--leader-elect")
        yield first, second


def seconds_until(check, what: str, limit: float) -> float:
    began = time.monotonic()
    eventually(check, what, limit)
    return time.monotonic() - began


def tell(capsys, text: str) -> None:
    with capsys.disabled():
        print(f"\n{text}")


def test_a_killed_leaders_running_job_is_adopted_by_the_other_manager(site, pair, capsys):
    first, second = pair
    story = Story(site, "failover", seconds=20)
    story.create()
    terraform = story.wait_applying()
    first.kill()
    taken = seconds_until(lambda: leads(second), "the takeover", 2 * LEASE_SECONDS)
    assert Path(f"/proc/{terraform}").exists(), "the run goes on meanwhile"
    story.wait_settled()

    assert len(story.jobs(Op.APPLY)) == 1
    assert most_live_jobs(site.plane.audit_log, story.namespace) == 1
    assert story.no_lease_left()
    tell(capsys, f"takeover after kill -9 of the leader: {taken:.1f} s")
    # The rival waits for the Lease's end, seen with its own clock, and tries every second.
    assert taken < LEASE_SECONDS + 2 * RETRY_SECONDS


def test_a_leader_that_is_told_to_end_hands_over_at_once(site, pair, capsys):
    first, second = pair
    story = Story(site, "handover", seconds=12)
    story.create()
    story.wait_applying()
    first.signal(signal.SIGTERM)
    taken = seconds_until(lambda: leads(second), "the takeover", 30)
    assert first.wait(25) == 0
    story.wait_settled()
    assert len(story.jobs(Op.APPLY)) == 1
    tell(capsys, f"takeover after SIGTERM of the leader: {taken:.1f} s")
    assert taken < 2.0


def test_a_leader_that_cannot_renew_ends_and_says_why(site, pair):
    first, second = pair
    first.signal(signal.SIGSTOP)
    eventually(lambda: leads(second), "the takeover", 2 * LEASE_SECONDS)
    first.signal(signal.SIGCONT)
    assert first.wait(20) != 0
    assert "leads no more" in first.output()
    assert LEADER_LEASE in first.output()
    lease = site.kubectl("get", "lease", LEADER_LEASE, "-n", NAMESPACE, "-o", "yaml")
    assert f"_{os.uname().nodename}" in lease or os.uname().nodename in lease
