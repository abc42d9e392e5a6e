"""Jobs that cannot start (11 §7)."""

from datetime import timedelta
from typing import Any

import pytest

from captfctl.cluster.errors import Conflict, Unavailable
from captfctl.model import core, keys, names
from captfctl.model.ops import Op
from captfctl.model.resources import SECRETS, TERRAFORM_CLUSTERS
from captfctl.runs.stuck import StuckKind, check_stuck
from captfctl.terraform.job.pulling import is_missing_image, remaining_images
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


def check(world: World, job: core.Job, **more: Any):
    given = {
        "resource_version": world.object().metadata.resource_version,
        "records": read_records(world.door, world.owner),
        "spec_image": IMAGE,
        **more,
    }
    door = given.pop("door", world.door)
    return check_stuck(door, world.clock, world.owner, job, **given)


def active(world: World, job: core.Job) -> None:
    shown = {"name": job.metadata.name, "operation": "apply", "attempt": 1}
    status = {"status": {"activeJob": shown, "stateSecretSuffix": world.owner.suffix}}
    world.door.patch(TERRAFORM_CLUSTERS, "prod", NAMESPACE, status, subresource="status")


def unready(world: World, run, age: float, **pod: Any) -> core.Job:
    """A Job with its Secret whose pod does not get on."""
    job = world.add_job(run, age=age)
    world.add_run_secret(run, job)
    world.add_pod(job, phase="Pending", age=age, **pod)
    active(world, job)
    return job


@pytest.mark.parametrize(
    ("age", "phases", "deleted"),
    [
        (59, ["Pending"], False),
        (61, ["Pending"], True),
        (61, [], True),
        (61, ["Pending", "Running"], False),
        (61, ["Failed"], False),
    ],
)
def test_job_without_its_secret_goes_after_a_minute_unless_a_pod_ran(age, phases, deleted):
    world = World()
    job = world.add_job(world.run(), age=age)
    for index, phase in enumerate(phases):
        world.add_pod(job, phase=phase, name=f"pod-{index}")
    active(world, job)
    stuck = check(world, job)
    assert (stuck is not None) is deleted
    assert (world.job_names() == []) is deleted
    if stuck is not None:
        assert stuck.kind is StuckKind.MISSING_SECRET
        assert [(n.reason, n.warning) for n in stuck.notes] == [("StuckJobDeleted", True)]
        assert world.object().status.active_job is None


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


def test_job_stays_when_the_object_changed_meanwhile():
    world = World()
    job = world.add_job(world.run(), age=300)
    before = world.object().metadata.resource_version
    active(world, job)
    with pytest.raises(Conflict):
        check(world, job, resource_version=before)
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
    assert stuck.deleted
    assert "CreateContainerConfigError: secret not found" in stuck.message
    assert len(stuck.message) < 400
    assert world.job_names() == []


def drift_with_record(world: World, message: str, **run: Any) -> core.Job:
    inputs = RunInputs(job="j0", files=FILES, inputs_hash="h2:abc", image=IMAGE)
    write_attempt(world.door, world.owner, inputs)
    spec = world.run(Op.DRIFT, image=PINNED, **run)
    return unready(world, spec, 121, state=waiting("ErrImagePull", message))


def test_missing_image_is_listed_and_the_next_one_is_tried():
    world = World()
    job = drift_with_record(world, "manifest unknown", fallback_images=(IMAGE,))
    stuck = check(world, job)
    assert stuck.deleted
    (note,) = stuck.notes
    assert note.reason == "ImagePullFallback"
    assert PINNED in note.note
    assert note.note.endswith(IMAGE)
    assert world.job_names() == []
    assert unpullable_images(read_records(world.door, world.owner), world.clock.now()) == [PINNED]


def test_image_that_may_only_need_credentials_is_not_given_up():
    world = World()
    job = drift_with_record(
        world,
        "pull access denied, repository does not exist or may require authorization: not found",
        fallback_images=(IMAGE,),
    )
    stuck = check(world, job)
    assert not stuck.deleted
    assert stuck.failed
    assert PINNED in stuck.message
    assert world.job_names() == [job.metadata.name]


def test_last_image_is_left_to_the_deadline_unless_the_object_is_paused():
    world = World()
    job = drift_with_record(world, "not found")
    assert not check(world, job, spec_image="").deleted
    assert world.job_names() == [job.metadata.name]
    stuck = check(world, job, spec_image="", paused=True)
    assert stuck.deleted
    assert stuck.failed
    assert world.job_names() == []


def test_without_a_record_to_note_the_image_on_no_other_is_tried():
    world = World()
    run = world.run(Op.DRIFT, image=PINNED, fallback_images=(IMAGE,))
    job = unready(world, run, 121, state=waiting("ErrImagePull", "not found"))
    assert not check(world, job).deleted


@pytest.mark.parametrize("op", [Op.APPLY, Op.PLAN])
def test_job_that_must_run_the_specs_image_is_never_deleted_for_a_pull(op):
    world = World()
    job = unready(world, world.run(op), 600, state=waiting("ErrImagePull", "not found"))
    assert check(world, job) is None


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
    assert check(world, job).deleted


def test_pods_of_other_jobs_are_not_looked_at():
    world = World()
    job = drift_with_record(world, "not found", fallback_images=(IMAGE,))
    pod = next(iter(world.pods()))
    foreign = [
        {"apiVersion": "batch/v1", "kind": "Job", "name": "x", "uid": "y", "controller": True}
    ]
    world.patch_pod(pod, {"metadata": {"ownerReferences": foreign}}, subresource="")
    assert check(world, job) is None


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
    ],
)
def test_only_a_registrys_clear_no_counts_as_missing(reason, message, missing):
    assert is_missing_image(reason, message) is missing


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
