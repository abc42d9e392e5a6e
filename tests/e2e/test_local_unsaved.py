"""States that could not be stored, with real Terraform on the embedded control plane."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from captfctl.model.ops import Op
from captfctl.model.resources import SECRETS
from tests.e2e import scenarios
from tests.e2e.counted import COUNTED, Counted
from tests.e2e.scenarios import Story
from tests.e2e.site import LocalSite, eventually
from tests.support.binaries import NEEDS_KUBECTL, NEEDS_TERRAFORM

pytestmark = [
    pytest.mark.terraform,
    pytest.mark.kubectl,
    NEEDS_TERRAFORM,
    NEEDS_KUBECTL,
]


@pytest.fixture
def counted(tmp_path: Path) -> Counted:
    return Counted(tmp_path)


@pytest.fixture
def site(tmp_path: Path, counted: Counted) -> Iterator[LocalSite]:
    site = LocalSite(tmp_path / "site")
    site.add_image(COUNTED, module=counted.module)
    site.start()
    try:
        yield site
    finally:
        site.stop()


def test_a_state_that_could_not_be_stored_is_stored_when_the_server_is_back(site, counted):
    story = Story(site, "away")
    scenarios.server_is_away_while_an_apply_ends(story, counted, site.up.kill, site.start)


@pytest.mark.parametrize("then", ["changed", "deleted"])
def test_a_state_that_its_dead_run_could_not_store_is_stored_by_the_next(site, counted, then):
    story = Story(site, "dead")
    scenarios.end_apply_without_a_server(story, counted, site.up.kill)
    (runner,) = [pid for pid, line in site.processes("--op=apply").items() if "/runner run" in line]
    os.kill(runner, signal.SIGKILL)
    site.start()

    def told() -> bool:
        found = story.condition("StateReadable")
        return found is not None and found.reason == "StateNotSaved"

    eventually(told, lambda: f"it is said: {story.explain()}", 60)
    if then == "deleted":
        site.kubectl("delete", "cluster", "quickstart", "-n", story.namespace, "--timeout=90s")
        assert story.gone()
        assert len(story.jobs(Op.APPLY)) == 0
    else:
        story.set_variables(subnets=3)
        story.wait_settled()
        assert story.state().resources == 3
    assert counted.times == 1
    secrets = [secret.metadata.name for secret in story.door.list(SECRETS, story.namespace).items]
    assert not [name for name in secrets if name.startswith("captf-unsaved-")]
