"""Jobs that cannot start (runs.md: Jobs that cannot start)."""

from datetime import timedelta
from typing import Any

import pytest

from captfctl.cluster.errors import Conflict, Unavailable
from captfctl.model import core, keys, names
from captfctl.model.ops import Op
from captfctl.model.resources import SECRETS
from captfctl.runs.stuck import Starting, StuckKind, is_missing_image, remove_unstarted
from captfctl.terraform.job.pulling import image_instead, remaining_images
from captfctl.terraform.job.work import has_run_secret
from captfctl.terraform.state.records import (
    RunInputs,
    read_records,
    unpullable_images,
    write_attempt,
)
from tests.support.faults import failing
from tests.support.runs import FILES, IMAGE, NAMESPACE, World

PINNED = "registry.test/modules/cluster@sha256:" + "ab" * 32


def waiting(reason: str, message: str = "") -> core.ContainerState:
    return core.ContainerState(waiting=core.ContainerStateWaiting(reason=reason, message=message))


def check(world: World, job: core.Job, door: Any = None):
    door = door or world.door
    return Starting(door, world.clock.now(), job).stuck(provided=lambda: has_run_secret(door, job))


def instead(world: World, job: core.Job, spec_image: str = IMAGE) -> str:
    records = read_records(world.door, world.owner)
    return image_instead(world.door, world.owner, records, job, spec_image, world.clock.now())


def unready(world: World, run, age: float, **pod: Any) -> core.Job:
    """A Job with its Secret whose pod does not get on."""
    job = world.add_job(run, age=age)
    world.add_run_secret(run, job)
    world.add_pod(job, phase="Pending", age=age, **pod)
    return job


@pytest.mark.parametrize(
    ("age", "phases", "stuck"),
    [
        (59, ["Pending"], False),
        (61, ["Pending"], True),
        (61, [], True),
        (61, ["Pending", "Running"], False),
        (61, ["Failed"], False),
    ],
)
def test_job_without_its_secret_is_stuck_after_a_minute_unless_a_pod_ran(age, phases, stuck):
    world = World()
    job = world.add_job(world.run(), age=age)
    for index, phase in enumerate(phases):
        world.add_pod(job, phase=phase, name=f"pod-{index}")
    found = check(world, job)
    assert (found is not None) is stuck
    if found is not None:
        assert found.kind is StuckKind.MISSING_PROVISION


def test_job_with_its_secret_is_left_to_start():
    world = World()
    run = world.run()
    job = world.add_job(run, age=300)
    world.add_run_secret(run, job)
    assert check(world, job) is None


def test_secret_that_cannot_be_read_fails_the_pass_and_keeps_the_job():
    world = World()
    job = world.add_job(world.run(), age=300)
    with pytest.raises(Unavailable):
        check(world, job, door=failing(world.door, Unavailable("no answer"), "get", SECRETS))
    assert world.job_names() == [job.metadata.name]


def test_job_goes_only_after_it_was_taken_off_its_subject():
    world = World()
    job = world.add_job(world.run(), age=300)
    seen = []
    assert remove_unstarted(world.door, job, lambda: seen.append(world.job_names()))
    assert seen == [[job.metadata.name]]
    assert world.job_names() == []


def test_job_stays_when_its_subject_changed_meanwhile():
    world = World()
    job = world.add_job(world.run(), age=300)

    def outdated() -> None:
        raise Conflict("changed")

    with pytest.raises(Conflict):
        remove_unstarted(world.door, job, outdated)
    assert world.job_names() == [job.metadata.name]


def test_job_that_ended_meanwhile_is_not_removed():
    world = World()
    job = world.add_job(world.run(), age=300)
    world.finish(job)
    assert not remove_unstarted(world.door, job, lambda: pytest.fail("it was taken off"))
    assert world.job_names() == [job.metadata.name]


@pytest.mark.parametrize("place", ["init", "state"])
def test_container_that_cannot_be_configured_ends_the_job_after_two_minutes(place):
    world = World()
    problem = waiting("CreateContainerConfigError", "secret not found " + "x" * 400)
    young = unready(world, world.run(), 119, **{place: problem})
    assert check(world, young) is None
    world.clock.advance(1)
    stuck = check(world, young)
    assert stuck.kind is StuckKind.CONTAINER_CONFIG
    assert "CreateContainerConfigError: secret not found" in stuck.message
    assert len(stuck.message) < 400


def drift_with_record(world: World, message: str, **run: Any) -> core.Job:
    inputs = RunInputs(job="j0", files=FILES, inputs_hash="h2:abc", image=IMAGE)
    write_attempt(world.door, world.owner, inputs)
    spec = world.run(Op.DRIFT, image=PINNED, **run)
    return unready(world, spec, 121, state=waiting("ErrImagePull", message))


def test_missing_image_is_listed_and_the_next_one_is_tried():
    world = World()
    job = drift_with_record(world, "manifest unknown", fallback_images=(IMAGE,))
    stuck = check(world, job)
    assert stuck.kind is StuckKind.IMAGE_PULL
    assert stuck.absent
    assert stuck.problem == "ErrImagePull: manifest unknown"
    assert PINNED in stuck.message
    assert instead(world, job) == IMAGE
    assert unpullable_images(read_records(world.door, world.owner), world.clock.now()) == [PINNED]


def test_image_that_may_only_need_credentials_is_not_given_up():
    world = World()
    job = drift_with_record(
        world,
        "pull access denied, repository does not exist or may require authorization: not found",
        fallback_images=(IMAGE,),
    )
    stuck = check(world, job)
    assert not stuck.absent
    assert PINNED in stuck.message


def test_there_is_nothing_instead_of_the_last_image():
    world = World()
    job = drift_with_record(world, "not found")
    assert check(world, job).absent
    assert instead(world, job, "") == ""


def test_without_a_record_to_note_the_image_on_no_other_is_tried():
    world = World()
    run = world.run(Op.DRIFT, image=PINNED, fallback_images=(IMAGE,))
    job = unready(world, run, 121, state=waiting("ErrImagePull", "not found"))
    assert instead(world, job) == ""


def test_pull_has_two_minutes_from_when_the_module_image_is_pulled():
    world = World()
    job = drift_with_record(world, "not found", fallback_images=(IMAGE,))
    world.clock.advance(300)
    pod = next(iter(world.pods()))
    since = world.clock.now() - timedelta(seconds=119)
    ready = {"type": "Initialized", "status": "True", "lastTransitionTime": since.isoformat()}
    world.patch_pod(pod, {"status": {"conditions": [ready]}})
    assert check(world, job) is None
    world.clock.advance(1)
    assert check(world, job).absent


def test_pods_of_other_jobs_are_not_looked_at():
    world = World()
    job = drift_with_record(world, "not found", fallback_images=(IMAGE,))
    pod = next(iter(world.pods()))
    foreign = [
        {"apiVersion": "batch/v1", "kind": "Job", "name": "x", "uid": "y", "controller": True}
    ]
    world.patch_pod(pod, {"metadata": {"ownerReferences": foreign}}, subresource="")
    assert check(world, job) is None


NAMED_404 = "team/forbidden-404:404"
"""An image whose name says what registries say."""


@pytest.mark.parametrize(
    ("reason", "message", "missing"),
    [
        ("InvalidImageName", "", True),
        ("ErrImagePull", "rpc error: NOT FOUND", True),
        ("ErrImagePull", "name unknown: no such repository", True),
        ("ImagePullBackOff", "unexpected status 404", True),
        ("ErrImagePull", "401 Unauthorized, or not found", False),
        ("ErrImagePull", "not found: 429 Too Many Requests", False),
        ("ErrImagePull", "i/o timeout", False),
        ("ErrImagePull", f'"{NAMED_404}": i/o timeout', False),
        ("ErrImagePull", f"docker.io/{NAMED_404}: not found", True),
        ("ErrImagePull", "app@sha256:0a404b: i/o timeout", False),
        ("ErrImagePull", "app@sha256:0a401b: not found", True),
    ],
)
def test_only_a_registrys_clear_no_counts_as_missing(reason, message, missing):
    waiting = core.ContainerStateWaiting(reason=reason, message=message)
    assert is_missing_image(waiting, NAMED_404) is missing


def test_images_left_are_the_recorded_ones_then_the_specs_without_known_failures():
    world = World()
    job = world.add_job(world.run(Op.DRIFT, image="a", fallback_images=("b", "c", "a")))
    assert remaining_images(job, "d", ["c"]) == ["b", "d"]
    job.metadata.annotations[keys.IMAGE_FALLBACKS] = "{"
    assert remaining_images(job, "a", []) == []


def listed(world: World) -> list[str]:
    return unpullable_images(read_records(world.door, world.owner), world.clock.now())


def test_unpullable_images_expire_and_only_four_are_kept():
    from captfctl.terraform.state.records import mark_unpullable

    world = World()
    inputs = RunInputs(job="j0", files=FILES, inputs_hash="h2:abc", image=IMAGE)
    write_attempt(world.door, world.owner, inputs)
    for name in "abcde":
        mark_unpullable(world.door, world.owner, name, world.clock.now())
        world.clock.advance(60)
    assert listed(world) == ["e", "d", "c", "b"]
    world.clock.advance(3600 - 5 * 60)
    assert listed(world) == ["e", "d", "c", "b"]
    world.clock.advance(61)
    assert listed(world) == ["e", "d", "c"]


@pytest.mark.parametrize("text", ["nonsense", '["image"]', '[{"ref": "a"}]'])
def test_list_of_unpullable_images_that_cannot_be_read_is_empty(text):
    world = World()
    inputs = RunInputs(job="j0", files=FILES, inputs_hash="h2:abc", image=IMAGE)
    write_attempt(world.door, world.owner, inputs)
    patch = {"metadata": {"annotations": {keys.UNPULLABLE_IMAGES: text}}}
    world.door.patch(SECRETS, names.attempt_record("TerraformCluster", "prod"), NAMESPACE, patch)
    assert listed(world) == []
