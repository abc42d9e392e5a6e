"""States that are swapped, emptied or too large, with real Terraform on the embedded control
plane."""

from tests.e2e import states
from tests.e2e.scenarios import NAME, Story, leftovers, nothing_left
from tests.e2e.site import eventually
from tests.e2e.states import rewrite, wait_for
from tests.support.binaries import LOCAL_STORIES

pytestmark = LOCAL_STORIES


def test_an_emptied_state_creates_nothing_twice_and_skips_no_destroy(site):
    states.emptied_state_is_held(Story(site, "emptied"))


def test_an_older_state_is_held_also_when_the_status_is_lost(site):
    states.older_state_is_held(Story(site, "older"))


def test_another_state_is_used_once_a_person_accepts_it(site):
    states.another_state_is_accepted_by_a_person(Story(site, "swapped"))


def test_a_state_over_the_limit_is_told_before_and_destroyed(site):
    """Terraform ignores what it does not know in a state, and would take minutes over this much of
    what it knows."""
    story = Story(site, "large")
    story.create()
    story.wait_settled()
    rewrite(story, {"serial": 20, "filler": "0" * (13 * 2**20)})
    assert "13 MiB" in wait_for(story, "StateLarge")
    rewrite(story, {"serial": 21, "filler": "0" * (16 * 2**20)})
    wait_for(story, "StateTooLarge")
    story.site.kubectl("delete", "cluster", NAME, "-n", story.namespace, "--timeout=60s")
    assert story.events("Destroyed")
    eventually(lambda: nothing_left(story), lambda: f"nothing left: {leftovers(story)}", 30)
