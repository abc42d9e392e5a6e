"""The restore drill on a real control plane, also where a quota refuses what a restore needs."""

import json

from captfctl.model.resources import SECRETS
from tests.e2e import restoring
from tests.e2e.scenarios import Story
from tests.e2e.site import eventually
from tests.e2e.states import wait_for
from tests.support.binaries import CLUSTER_STORIES

pytestmark = CLUSTER_STORIES


def test_a_state_damaged_in_any_way_is_restored_and_nothing_is_created_again(site):
    restoring.damaged_states_are_restored(Story(site, "drill", seconds=0), server_stays=True)


def test_a_state_of_several_secrets_is_restored_and_a_held_deletion_goes_on(site):
    restoring.lost_chunk_is_restored(Story(site, "chunks", seconds=0))


def test_a_restore_that_a_full_quota_refuses_says_so_and_goes_on_when_there_is_room(site):
    story = Story(site, "full", seconds=0)
    serial = restoring.three_serials(story)
    before = restoring.ids(story)
    restoring.cut_in_half(story)
    wait_for(story, "StateCorrupt")
    limit_secrets(story, len(story.door.list(SECRETS, story.namespace).items))

    restoring.request(story, serial)
    eventually(lambda: story.events("RequestRefused"), lambda: f"it is told: {story.explain()}")
    assert "exceeded quota: full" in story.events("RequestRefused")[0].note
    wait_for(story, "StateCorrupt")

    story.site.kubectl("delete", "resourcequota", "full", "-n", story.namespace)
    restoring.wait_restored(story, 1)
    assert restoring.ids(story) == before


def limit_secrets(story: Story, count: int) -> None:
    """As many Secrets as that, and no more."""
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "full", "namespace": story.namespace},
        "spec": {"hard": {"count/secrets": str(count)}},
    }
    story.site.kubectl("apply", "-f", "-", text=json.dumps(quota))
    counted = ("get", "resourcequota", "full", "-n", story.namespace, "-o", "json")

    def full() -> bool:
        status = json.loads(story.site.kubectl(*counted)).get("status", {})
        return "used" in status and status["used"] == status["hard"]

    eventually(full, "the quota is full")
