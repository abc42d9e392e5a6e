"""What the probes say, per watch and per queue (manager.md: Health)."""

import pytest

from captfctl.controller import WorkQueue
from captfctl.manager.health import SILENT_AFTER, STALLED_AFTER, STUCK_AFTER, Health, probes
from captfctl.serving.http import Request
from tests.support.clock import FakeClock

QUEUE = "terraformcluster"


class FakeCaches:
    """One watch, of Jobs."""

    def __init__(self) -> None:
        self.silent_for = self.idle_for = 0.0
        self.synced = True

    def silent(self, seconds: float) -> list[str]:
        return ["jobs.batch"] if self.silent_for > seconds else []

    def idle(self, seconds: float) -> list[str]:
        return ["jobs.batch"] if self.idle_for > seconds else []

    def waiting_for(self) -> list[str]:
        return [] if self.synced else ["jobs.batch"]


class Site:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.queue: WorkQueue[tuple[str, str]] = WorkQueue(self.clock)
        self.caches = FakeCaches()
        health = Health(self.caches)
        health.watch_over({QUEUE: self.queue})
        self._respond = probes(health)

    def answer(self, path: str) -> tuple[int, str]:
        answer = self._respond(Request("GET", path))
        return answer.status, answer.body.decode()

    @property
    def failing(self) -> list[str]:
        return [path for path in ("/livez", "/healthz", "/readyz") if self.answer(path)[0] != 200]


@pytest.fixture
def site() -> Site:
    return Site()


def test_all_is_well(site: Site):
    assert site.failing == []
    assert site.answer("/elsewhere")[0] == 404


def test_a_first_list_that_is_missing_is_no_fault_yet(site: Site):
    site.caches.synced = False
    assert site.failing == ["/readyz"]
    assert "the first list of jobs.batch" in site.answer("/readyz")[1]


def test_a_server_that_answers_nothing_shows_within_a_minute_and_is_no_reason_to_restart(
    site: Site,
):
    assert SILENT_AFTER <= 60
    site.caches.silent_for = SILENT_AFTER + 1
    assert site.failing == ["/healthz", "/readyz"]
    assert site.answer("/healthz") == (500, "nothing is heard of jobs.batch\n")
    site.caches.silent_for = STUCK_AFTER + 1
    assert "/livez" not in site.failing


def test_passes_that_do_not_end_show_within_a_minute(site: Site):
    site.queue.add(("team-a", "prod"))
    site.queue.try_get()
    site.clock.advance(STALLED_AFTER + 1)
    assert site.failing == ["/healthz", "/readyz"]
    assert site.answer("/readyz")[1] == f"no pass of {QUEUE} comes to an end\n"
    site.queue.done(("team-a", "prod"))
    assert site.failing == []


@pytest.mark.parametrize("what", ["a watch", "a queue"])
def test_what_only_a_new_process_can_mend_is_not_alive(site: Site, what: str):
    if what == "a watch":
        site.caches.silent_for = site.caches.idle_for = STUCK_AFTER + 1
    else:
        site.queue.add(("team-a", "prod"))
        site.clock.advance(STUCK_AFTER + 1)
    assert site.failing == ["/livez", "/healthz", "/readyz"]
