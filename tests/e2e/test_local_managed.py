"""Scenarios on the embedded control plane in which its parts are processes of their own, with real
Terraform."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e import limits, scenarios, silence
from tests.e2e.gated import Gate
from tests.e2e.managed import EmbeddedSite
from tests.e2e.scenarios import Story
from tests.support.binaries import LOCAL_STORIES

pytestmark = LOCAL_STORIES


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedSite]:
    site = EmbeddedSite(tmp_path_factory.mktemp("managed"))
    site.start()
    try:
        yield site
    finally:
        site.stop()


def test_job_slots_are_handed_on_and_never_exceeded(site: EmbeddedSite, tmp_path: Path) -> None:
    limits.slots_are_handed_on_and_never_exceeded(site, Gate(site, tmp_path))


def test_a_server_that_answers_nothing_is_told_and_got_over(site: EmbeddedSite) -> None:
    silence.server_answers_nothing(site, "silence")


def test_a_run_of_a_frozen_node_is_not_taken_for_dead(site: EmbeddedSite) -> None:
    story = Story(site, "ice", seconds=20)
    scenarios.node_is_frozen_while_its_pod_is_deleted_by_force(story, site.node)
