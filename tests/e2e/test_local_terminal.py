"""What a person does at the terminal about states, with real Terraform: look at backups, put one
back, see what a deletion destroys, and delete."""

import json
import subprocess
from typing import Any

from captfctl.model.ops import Op
from captfctl.model.resources import SECRETS
from captfctl.terraform.state.protected import delete_protected
from tests.e2e.scenarios import NAME, Story
from tests.e2e.site import CAPTFCTL, eventually
from tests.e2e.states import state_secret, wait_for
from tests.support.binaries import LOCAL_STORIES

pytestmark = LOCAL_STORIES


def captfctl(story: Story, command: str, *arguments: str) -> Any:
    """The command about the story's cluster, through the API of the running control plane."""
    place = (f"--data={story.site.data}", "-n", story.namespace, "-o", "json")
    line = [CAPTFCTL, command, f"terraformcluster/{NAME}", *arguments, *place]
    ran = subprocess.run(line, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_a_lost_state_comes_back_with_one_command_and_a_deletion_is_told_beforehand(site):
    story = Story(site, "terminal", seconds=0)
    story.create()
    story.wait_settled()
    serial = story.state().serial
    eventually(lambda: serial in serials(story), "the first state is backed up", 30)
    story.set_variables(subnets=3)
    eventually(lambda: len(story.jobs(Op.APPLY)) == 2, "the second apply", 60)
    story.wait_settled()
    eventually(lambda: listed(story)[0]["current"], "the second state is backed up", 30)
    newest, first = listed(story)[0], next(b for b in listed(story) if b["serial"] == serial)
    assert (newest["forgets"], first["current"]) == (0, False)
    assert first["forgets"] == newest["resources"] - first["resources"]

    proposal = captfctl(story, "restore", "--serial", str(serial), "--dry-run")
    doomed = captfctl(story, "delete", "--dry-run")
    (one,) = doomed["objects"]
    assert doomed["destroyed"] == len(one["resources"]) == newest["resources"]
    assert len(proposal["forgets"]) == first["forgets"]
    assert one["resources"]

    delete_protected(story.door, state_secret(story).metadata)
    wait_for(story, "StateLost")
    (one,) = captfctl(story, "delete", "--dry-run")["objects"]
    assert one["fate"] == "held"
    asked = captfctl(story, "restore", "--latest", "--yes")
    assert (asked["result"], asked["serial"]) == ("requested", str(newest["serial"]))
    eventually(story.settled, lambda: f"it is restored: {story.explain()}", 60)
    assert next(iter(listed(story)))["current"]
    assert len(story.events("StateRestored")) == 1
    assert story.door.list(SECRETS, story.namespace, labels="tfstate=true").items


def serials(story: Story) -> list[int]:
    return [backup["serial"] for backup in listed(story)]


def listed(story: Story) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = captfctl(story, "restore", "--list")["backups"]
    return found
