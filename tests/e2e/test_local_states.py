"""States that are swapped, emptied, too large or were never written, with real Terraform on the
embedded control plane."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from captfctl.model import keys, names
from captfctl.model.core import Lease, LeaseSpec
from captfctl.model.meta import ObjectMeta
from captfctl.model.ops import Op
from captfctl.model.resources import LEASES
from tests.e2e import states
from tests.e2e.scenarios import NAME, Story, failed_apply, leftovers, nothing_left
from tests.e2e.site import IMAGE, ROOT, LocalSite, eventually
from tests.e2e.states import rewrite, wait_for
from tests.support.binaries import NEEDS_KUBECTL, NEEDS_TERRAFORM

pytestmark = [
    pytest.mark.terraform,
    pytest.mark.kubectl,
    NEEDS_TERRAFORM,
    NEEDS_KUBECTL,
]


def test_an_emptied_state_creates_nothing_twice_and_skips_no_destroy(site):
    states.emptied_state_is_held(Story(site, "emptied"))


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


HANGING_INIT = """#!/bin/sh
if [ "$1" = init ] && ! [ -e {folder}/open ]
then mktemp {folder}/hangs.XXXXXX && exec sleep 300
fi
exec terraform "$@"
"""


class HangingInit:
    """A site with an image whose `init` hangs until it is opened."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.site = LocalSite(folder / "site")
        runtime = folder / "terraform"
        runtime.write_text(HANGING_INIT.format(folder=folder))
        runtime.chmod(0o755)
        module = ROOT / "examples" / "quickstart" / "module"
        self.image = "registry.example.com/hanging/cluster:v1"
        self.site.add_image(self.image, module=module, runtime=runtime)

    def open(self) -> None:
        (self.folder / "open").touch()

    def wait_hanging(self, times: int) -> None:
        def hangs() -> bool:
            return len(list(self.folder.glob("hangs.*"))) == times

        eventually(hangs, f"init hangs for the {times}. time", 60)

    def kill_runner(self, story: Story) -> None:
        (runner,) = story.processes("/bin/runner run", "--op=")
        os.kill(runner, signal.SIGKILL)

    def killed_once(self, namespace: str, *, locked: bool) -> Story:
        """An object whose first runner was killed in `init`, with the lock that `init` takes or
        without."""
        story = Story(self.site, namespace)
        story.replace(IMAGE, self.image)
        story.create()
        self.wait_hanging(1)
        if locked:
            lock_as_init(story)
        self.kill_runner(story)
        eventually(lambda: failed_apply(story), lambda: f"it failed: {story.explain()}", 30)
        return story


@pytest.fixture
def hanging(tmp_path: Path) -> Iterator[HangingInit]:
    hanging = HangingInit(tmp_path)
    hanging.site.start()
    try:
        yield hanging
    finally:
        hanging.site.stop()


def lock_as_init(story: Story) -> None:
    """The lock as Terraform takes it to write the first, empty state."""
    suffix = names.state_suffix("TerraformCluster", story.namespace, NAME)
    (pod,) = story.pods()
    info = {"ID": "f00d", "Operation": "init", "Who": f"captf@{pod.metadata.name}"}
    meta = ObjectMeta(
        name=names.state_lock(suffix),
        namespace=story.namespace,
        labels={keys.TFSTATE: "true"},
        annotations={keys.LOCK_INFO: json.dumps(info)},
    )
    lease = Lease(
        api_version=LEASES.api_version,
        kind=LEASES.kind,
        metadata=meta,
        spec=LeaseSpec(holder_identity="f00d"),
    )
    story.door.create(LEASES, lease, story.namespace)


def test_a_first_apply_that_dies_in_init_asks_nobody(hanging):
    story = hanging.killed_once("init", locked=False)
    wait_for(story, "StateNotFound")
    story.set_variables(subnets=3)  # other inputs are tried at once
    hanging.wait_hanging(2)
    story.site.kubectl("delete", "cluster", NAME, "-n", story.namespace, "--wait=false")
    hanging.kill_runner(story)
    eventually(story.gone, lambda: f"released: {story.explain()}", 30)
    assert story.jobs(Op.DESTROY) == []


def test_the_lock_of_an_init_that_died_is_in_nobodys_way(hanging):
    story = hanging.killed_once("lock", locked=True)
    wait_for(story, "StateNotFound")
    hanging.open()
    story.set_variables(subnets=3)
    story.wait_settled()
    assert len(story.jobs(Op.APPLY)) == 2
    assert story.events("ForceUnlocked")
