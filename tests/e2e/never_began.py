"""First applies that end before they can have changed anything: nobody is asked, and nothing is
destroyed (state.md: Applies that ended without telling)."""

import json
import os
import signal
from collections.abc import Callable

import pytest

from captfctl.cluster.door import Propagation
from captfctl.model import keys, names
from captfctl.model.core import Job, Lease, LeaseSpec
from captfctl.model.meta import ObjectMeta
from captfctl.model.ops import Op
from captfctl.model.resources import JOBS, LEASES
from tests.e2e.gated import Gate
from tests.e2e.scenarios import NAME, Story, failed_apply, has_reason
from tests.e2e.site import IMAGE, eventually
from tests.e2e.states import wait_for


def kill_runner(story: Story) -> None:
    (runner,) = story.processes("/bin/runner run", "--op=")
    os.kill(runner, signal.SIGKILL)


def lock_as_init_and_kill_runner(story: Story) -> None:
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
    kill_runner(story)


def remove_pod(story: Story) -> None:
    """By force, and without our finalizer: nothing of it can be read any more."""
    (pod,) = story.pods()
    named = ("pod", pod.metadata.name, "-n", story.namespace)
    finalizer = {"$deleteFromPrimitiveList/finalizers": [keys.UNREAD_RESULT]}
    story.site.kubectl("patch", *named, "-p", json.dumps({"metadata": finalizer}))
    story.site.kubectl("delete", *named, "--force", "--grace-period=0", "--wait=false")


def dies_in_init(story: Story, gate: Gate, die: Callable[[Story], None]) -> None:
    """Other inputs are tried at once."""
    _come_to_the_gate(story, gate)
    die(story)
    eventually(lambda: failed_apply(story), lambda: f"it failed: {story.explain()}", 30)
    wait_for(story, "StateNotFound")
    gate.open()
    story.set_variables(subnets=3)
    story.wait_settled()
    assert len(story.jobs(Op.APPLY)) == 2
    assert not story.events("StateLost")


def dies_in_init_with_the_lock(story: Story, gate: Gate) -> None:
    """The lock is in nobody's way."""
    dies_in_init(story, gate, lock_as_init_and_kill_runner)
    assert story.events("ForceUnlocked")


def dies_in_init_while_it_is_deleted(story: Story, gate: Gate) -> None:
    """The deletion needs no destroy."""
    _come_to_the_gate(story, gate)
    story.site.kubectl("delete", "cluster", NAME, "-n", story.namespace, "--wait=false")
    eventually(lambda: story.cluster().deleting, "the deletion reaches the object", 20)
    kill_runner(story)
    eventually(story.gone, lambda: f"released: {story.explain()}", 30)
    assert story.jobs(Op.DESTROY) == []


def _come_to_the_gate(story: Story, gate: Gate) -> None:
    story.replace(IMAGE, gate.image)
    story.create()
    eventually(lambda: gate.came == 1, "the run is in init", 60)


def job_of_a_missing_image_is_deleted(story: Story) -> None:
    """The next one comes by itself, and the deletion of the object needs no destroy."""
    story.replace(IMAGE, "registry.example.com/missing/cluster:v1")
    story.create()
    eventually(lambda: has_reason(story, "ImagePullFailed"), lambda: f"told: {story.explain()}", 60)
    (first,) = story.jobs(Op.APPLY)
    delete(story, first)

    def again() -> list[Job]:
        return [job for job in story.jobs(Op.APPLY) if job.metadata.uid != first.metadata.uid]

    eventually(again, lambda: f"the next Job: {story.explain()}", 30)
    wait_for(story, "StateNotFound")
    (second,) = again()
    delete(story, second)
    story.site.kubectl("delete", "cluster", NAME, "-n", story.namespace, "--wait=false")
    eventually(story.gone, lambda: f"released: {story.explain()}", 30)
    assert story.jobs(Op.DESTROY) == []


def delete(story: Story, job: Job) -> None:
    name = job.metadata.name
    story.door.delete(JOBS, name, story.namespace, propagation=Propagation.BACKGROUND)


class FirstAppliesThatNeverBegan:
    """The stories, for the sites that have a `gate` and a `site`."""

    @pytest.fixture
    def gate(self, site, tmp_path):
        return Gate(site, tmp_path)

    def test_a_first_apply_whose_runner_dies_in_init_asks_nobody(self, site, gate):
        dies_in_init(Story(site, "init"), gate, kill_runner)

    def test_a_first_apply_whose_pod_vanishes_in_init_asks_nobody(self, site, gate):
        dies_in_init(Story(site, "podless"), gate, remove_pod)

    def test_the_lock_of_an_init_that_died_is_in_nobodys_way(self, site, gate):
        dies_in_init_with_the_lock(Story(site, "locked"), gate)

    def test_an_object_whose_first_apply_dies_in_init_is_deleted(self, site, gate):
        dies_in_init_while_it_is_deleted(Story(site, "init-deleted"), gate)

    def test_a_deleted_job_of_an_image_that_does_not_exist_asks_nobody(self, site):
        job_of_a_missing_image_is_deleted(Story(site, "jobless"))
