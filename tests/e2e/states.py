"""States that are not those that were left: what scenarios do to them, and three of these."""

import gzip
import json
from typing import Any

from captfctl.model import keys, names
from captfctl.model.core import Secret
from captfctl.model.ops import Op
from captfctl.model.resources import SECRETS, TERRAFORM_CLUSTERS
from tests.e2e.scenarios import NAME, Story, leftovers, nothing_left
from tests.e2e.site import eventually


def state_secret(story: Story) -> Secret:
    suffix = names.state_suffix("TerraformCluster", story.namespace, NAME)
    return story.door.get(SECRETS, names.state_secret(suffix), story.namespace)


def rewrite(story: Story, changes: dict[str, Any]) -> bytes:
    """Put another state into the Secret; the payload that was there."""
    secret = state_secret(story)
    before = secret.data[keys.TFSTATE]
    document = json.loads(gzip.decompress(before)) | changes
    secret.data[keys.TFSTATE] = gzip.compress(json.dumps(document).encode())
    story.door.update(SECRETS, secret)
    return before


def put_back(story: Story, payload: bytes) -> None:
    secret = state_secret(story)
    secret.data[keys.TFSTATE] = payload
    story.door.update(SECRETS, secret)


def wait_for(story: Story, reason: str) -> str:
    """Until `StateReadable` has the reason; its message."""

    def told() -> bool:
        found = story.condition("StateReadable")
        return found is not None and found.reason == reason

    eventually(told, lambda: f"{reason}: {story.explain()}", 30)
    found = story.condition("StateReadable")
    assert found is not None
    return found.message


def emptied_state_is_held(story: Story) -> None:
    """Nothing is created twice, and no destroy is skipped."""
    story.create()
    story.wait_settled()
    serial = story.state().serial
    before = rewrite(story, {"resources": [], "outputs": {}, "serial": serial + 1})
    wait_for(story, "StateReplaced")
    story.set_variables(subnets=3)
    story.site.kubectl("delete", "cluster", NAME, "-n", story.namespace, "--wait=false")
    eventually(lambda: story.cluster().deleting, "the deletion reaches the object", 20)
    eventually(
        lambda: "deletion is held" in wait_for(story, "StateReplaced"),
        lambda: f"the deletion is held: {story.explain()}",
        20,
    )
    assert len(story.jobs(Op.APPLY)) == 1
    assert story.jobs(Op.DESTROY) == []
    put_back(story, before)
    eventually(story.gone, lambda: f"destroyed: {story.explain()}", 60)
    eventually(lambda: story.events("Destroyed"), "the destroy is told", 20)
    eventually(lambda: nothing_left(story), lambda: f"nothing left: {leftovers(story)}", 30)


def older_state_is_held(story: Story) -> None:
    """Also when the status is lost: the object remembers."""
    story.create()
    story.wait_settled()
    older = state_secret(story).data[keys.TFSTATE]
    story.set_variables(subnets=3)
    eventually(lambda: len(story.jobs(Op.APPLY)) == 2, "the second apply")
    story.wait_settled()
    newer = state_secret(story).data[keys.TFSTATE]
    put_back(story, older)
    wait_for(story, "StateReplaced")
    story.door.patch(
        TERRAFORM_CLUSTERS, NAME, story.namespace, {"status": None}, subresource="status"
    )
    story.set_variables(subnets=4)
    assert "serial" in wait_for(story, "StateReplaced")
    assert len(story.jobs(Op.APPLY)) == 2
    put_back(story, newer)
    eventually(lambda: len(story.jobs(Op.APPLY)) == 3, lambda: f"it goes on: {story.explain()}")
    story.wait_settled()
    assert story.state().resources == 2


def another_state_is_accepted_by_a_person(story: Story) -> None:
    """It is used then, and not before."""
    story.create()
    story.wait_settled()
    lineage = "ffff0000-0000-4000-8000-000000000000"
    rewrite(story, {"lineage": lineage})
    message = wait_for(story, "StateReplaced")
    accepted = f"{keys.ACCEPT_STATE}={lineage}/{story.state().serial}"
    assert accepted in message
    story.site.kubectl("annotate", "terraformcluster", NAME, "-n", story.namespace, accepted)
    wait_for(story, "StateRead")
    story.set_variables(subnets=3)
    eventually(lambda: len(story.jobs(Op.APPLY)) == 2, "the second apply")
    story.wait_settled()
    assert story.state().lineage == lineage
