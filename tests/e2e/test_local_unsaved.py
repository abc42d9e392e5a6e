"""States that could not be stored, with real Terraform on the embedded control plane."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e import scenarios
from tests.e2e.counted import Counted
from tests.e2e.scenarios import Story
from tests.e2e.site import LocalSite
from tests.support.binaries import LOCAL_STORIES

pytestmark = LOCAL_STORIES


@pytest.fixture
def site(tmp_path: Path) -> Iterator[LocalSite]:
    """Each outage has one for itself."""
    site = LocalSite(tmp_path / "site")
    site.start()
    try:
        yield site
    finally:
        site.stop()


@pytest.fixture
def counted(site: LocalSite, tmp_path: Path) -> Counted:
    return Counted(site, tmp_path)


def test_a_state_that_could_not_be_stored_is_stored_when_the_server_is_back(site, counted):
    story = Story(site, "away")
    scenarios.server_is_away_while_an_apply_ends(story, counted, site.up.kill, site.start)


@pytest.mark.parametrize("then", ["changed", "deleted"])
def test_a_state_that_its_dead_run_could_not_store_is_stored_by_the_next(site, counted, then):
    story = Story(site, "dead")
    scenarios.run_dies_with_a_state_that_it_could_not_store(
        story, counted, site.up.kill, site.start
    )
    if then == "deleted":
        scenarios.deletion_stores_what_was_left(story)
    else:
        scenarios.change_stores_what_was_left(story)
    assert counted.times == 1
