"""States that could not be stored, with real Terraform on the embedded control plane."""

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from captfctl.model.ops import Op
from captfctl.model.resources import SECRETS
from runner import wire
from tests.e2e.scenarios import Story
from tests.e2e.site import QUICKSTART, LocalSite, eventually

pytestmark = [
    pytest.mark.terraform,
    pytest.mark.kubectl,
    pytest.mark.skipif(shutil.which("terraform") is None, reason="terraform is not on PATH"),
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not on PATH"),
]

COUNTED = "registry.example.com/counted/cluster:v1"


class Counted:
    """A module that writes down each thing that it creates, and waits for a gate meanwhile."""

    def __init__(self, folder: Path) -> None:
        self.created = folder / "created"
        self.gate = folder / "gate"
        self.module = folder / "module"
        shutil.copytree(QUICKSTART, self.module)
        waits = f"until test -e {self.gate}; do sleep 0.05; done"
        (self.module / "counted.tf").write_text(
            'resource "terraform_data" "counted" {\n'
            '  provisioner "local-exec" {\n'
            f'    command = "echo >> {self.created}; {waits}"\n'
            "  }\n}\n"
        )

    @property
    def times(self) -> int:
        return len(self.created.read_text().splitlines()) if self.created.exists() else 0


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


def end_apply_without_a_server(site: LocalSite, story: Story, counted: Counted) -> Path:
    """The control plane dies, and then the apply ends; the state that it left."""
    story.create()
    eventually(lambda: counted.times == 1, "the creation", 60)
    site.up.kill()
    counted.gate.write_text("")
    left = f"*/root/captf/work/{wire.ERRORED_STATE}"
    pods = site.node_data / "pods"
    eventually(lambda: list(pods.glob(left)), lambda: f"a state in {list(pods.iterdir())}", 30)
    (file,) = pods.glob(left)
    return file


def test_a_state_that_could_not_be_stored_is_stored_when_the_server_is_back(site, counted):
    story = Story(site, "away")
    story.replace("registry.example.com/quickstart/cluster:v1", COUNTED)
    file = end_apply_without_a_server(site, story, counted)
    site.start()
    eventually(lambda: not file.exists(), "the push", 60)
    story.set_variables(subnets=3)  # at once, instead of after the backoff
    story.wait_settled()
    assert counted.times == 1
    assert story.state().resources == 3


@pytest.mark.parametrize("then", ["changed", "deleted"])
def test_a_state_that_its_dead_run_could_not_store_is_stored_by_the_next(site, counted, then):
    story = Story(site, "dead")
    story.replace("registry.example.com/quickstart/cluster:v1", COUNTED)
    end_apply_without_a_server(site, story, counted)
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
