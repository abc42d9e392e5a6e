"""OpenTofu in Terraform's place, and a real provider from the image's mirror."""

import os
import shutil
import signal

import pytest

from captfctl.model.ops import Op
from tests.e2e import scenarios
from tests.e2e.scenarios import NAME, Story
from tests.e2e.site import IMAGE, eventually
from tests.kubernetes.site import TIME_IMAGE, TIME_TOFU_IMAGE, TOFU_IMAGE

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(300)]

PROVIDER = "terraform-provider-time"


def of_time(site, namespace: str, image: str, seconds: int) -> Story:
    """The object of a module with resources of the `time` provider."""
    story = Story(site, namespace)
    story.replace(IMAGE, image)
    story.replace("    region: eu-north\n    subnets: 2\n", f"    seconds: {seconds}\n")
    return story


def test_the_quick_start_lives_and_dies_with_opentofu(site):
    story = Story(site, "tofu")
    story.replace(IMAGE, TOFU_IMAGE)
    scenarios.lives_and_dies(story)


@pytest.mark.parametrize(
    "image",
    [
        pytest.param(
            TIME_IMAGE,
            marks=pytest.mark.skipif(shutil.which("terraform") is None, reason="no terraform"),
        ),
        TIME_TOFU_IMAGE,
    ],
    ids=["terraform", "opentofu"],
)
def test_a_real_provider_comes_from_the_mirror_creates_and_destroys(site, image):
    story = of_time(site, f"time-{'tofu' if image == TIME_TOFU_IMAGE else 'tf'}", image, 1)
    story.create()
    story.wait_settled()
    assert story.state().resources == 2
    site.kubectl("delete", "cluster", NAME, "-n", story.namespace, "--timeout=90s")
    eventually(lambda: scenarios.nothing_left(story), "nothing left", 30)


def test_a_run_that_is_told_to_end_stops_its_provider_and_the_next_one_goes_on(site):
    story = of_time(site, "time-stopped", TIME_TOFU_IMAGE, 30)
    story.create()
    eventually(lambda: story.processes(PROVIDER), "the provider sleeps")
    (runner,) = story.processes("/bin/runner run", "--op=")
    os.kill(runner, signal.SIGTERM)
    story.wait_quiet()
    story.set_variables(seconds=1)
    story.wait_settled()
    assert len(story.jobs(Op.APPLY)) == 2
    assert story.no_lease_left()


def test_an_object_deleted_while_its_provider_creates_is_destroyed_after_the_run(site):
    story = of_time(site, "time-deleted", TIME_TOFU_IMAGE, 8)
    story.create()
    eventually(lambda: story.processes(PROVIDER), "the provider sleeps")
    site.kubectl("delete", "cluster", NAME, "-n", story.namespace, "--timeout=90s")
    assert story.gone()
    eventually(lambda: scenarios.nothing_left(story), "nothing left", 30)
    story.wait_quiet()
