"""The records written for finished applies and restores (runs.md: Records of finished applies)."""

from typing import Any

import pytest

from captfctl.cluster.errors import Forbidden
from captfctl.model import core, keys, names
from captfctl.model.ops import Op
from captfctl.model.resources import JOBS, SECRETS
from captfctl.terraform.books.promotion import Recorder, pinned_image
from captfctl.terraform.books.results import op_of, read_finished
from captfctl.terraform.books.runs import Runs
from captfctl.terraform.state.records import (
    RunInputs,
    read_records,
    record_interrupted,
    write_applied,
    write_attempt,
)
from tests.support.faults import failing
from tests.support.runs import DIGEST, FILES, IMAGE, NAMESPACE, World, run_result

IMAGE_ID = f"docker-pullable://mirror.test/x@{DIGEST}"


def attempt(world: World, job: str, **facts: Any) -> None:
    inputs = RunInputs(
        **{"job": job, "files": FILES, "inputs_hash": "h2:abc", "image": IMAGE, **facts}
    )
    write_attempt(world.door, world.owner, inputs)


def record(world: World, door: Any = None) -> Recorder:
    """Record everything that finished and is not marked yet."""
    jobs = world.door.list(JOBS, NAMESPACE).items
    runs = Runs.of(read_finished(world.door, job, op_of(job), lock=lambda: None) for job in jobs)
    recorder = Recorder(door or world.door, world.owner, read_records(world.door, world.owner))
    recorder.record(runs)
    assert recorder.records == read_records(world.door, world.owner)
    return recorder


def reasons(recorder: Recorder) -> list[str]:
    return [note.reason for note in recorder.notes]


def test_success_is_promoted_from_its_own_secret_with_the_pulled_digest():
    world = World()
    job = world.finished(image_id=IMAGE_ID, identity="main")
    attempt(world, job.metadata.name)
    recorder = record(world)
    applied = recorder.records.applied
    assert applied.job == job.metadata.name
    assert applied.files == FILES
    assert applied.identity == "main"
    assert applied.inputs_hash == "h2:abc"
    assert applied.digest == f"registry.test/modules/cluster@{DIGEST}"
    assert applied.metadata.finalizers == [keys.STATE_PROTECTION]
    assert [ref.uid for ref in applied.metadata.owner_references] == [world.owner.uid]
    assert reasons(recorder) == ["DigestPinned"]
    assert recorder.records.marks.applied


def test_promotion_repeated_after_a_crash_writes_nothing():
    world = World()
    attempt(world, world.finished(image_id=IMAGE_ID).metadata.name)
    before = record(world).records
    again = record(world)
    assert again.records == before
    assert again.notes == []


def test_attempt_record_stands_in_for_a_secret_that_is_gone():
    world = World()
    job = world.finished(secret=False)
    attempt(world, job.metadata.name, files={"main.tf.json": b"attempt"})
    assert record(world).records.applied.files == {"main.tf.json": b"attempt"}


def test_inputs_that_nobody_kept_leave_the_old_applied_record_and_warn():
    world = World()
    old = RunInputs(job="j0", files=FILES, inputs_hash="h2:old", image=IMAGE)
    write_applied(world.door, world.owner, old, "")
    world.finished(secret=False)
    attempt(world, "another-job")
    recorder = record(world)
    assert recorder.records.applied.job == "j0"
    assert reasons(recorder) == ["AppliedInputsUnknown"]
    assert recorder.notes[0].warning


def test_secret_of_an_earlier_job_of_the_name_is_not_promoted():
    world = World()
    job = world.finished()
    secret = world.door.get(SECRETS, names.run_secret(job.metadata.name), NAMESPACE)
    secret.metadata.owner_references[0].uid = "another"
    world.door.update(SECRETS, secret)
    assert reasons(record(world)) == ["AppliedInputsUnknown"]


def test_digest_is_kept_for_the_same_image_and_unknown_for_another():
    world = World()
    digest = f"registry.test/modules/cluster@{DIGEST}"
    old = RunInputs(job="j0", files=FILES, inputs_hash="h2:old", image=IMAGE)
    write_applied(world.door, world.owner, old, digest)
    world.finished(attempt=1, at=-10)
    assert record(world).records.applied.digest == digest
    world.finished(attempt=2, image="registry.test/other:v2")
    recorder = record(world)
    assert recorder.records.applied.digest == ""
    assert reasons(recorder) == ["DigestUnknown"]


def test_refused_record_does_not_stop_the_object(caplog):
    world = World()
    attempt(world, world.finished().metadata.name)
    jobs = world.door.list(JOBS, NAMESPACE).items
    runs = Runs.of(read_finished(world.door, j, op_of(j), lock=lambda: None) for j in jobs)
    door = failing(world.door, Forbidden("quota"), "create", SECRETS)
    recorder = Recorder(door, world.owner, read_records(world.door, world.owner))
    recorder.record(runs)
    assert "were not recorded" in caplog.text
    assert recorder.records.applied is None
    assert recorder.records.marks.applied


def test_failed_apply_that_reached_its_step_is_marked():
    world = World()
    attempt(world, world.finished(ok=False).metadata.name)
    marks = record(world).records.marks
    assert marks.may_have_applied
    assert marks.interrupted_apply == ""


@pytest.mark.parametrize(
    "result",
    [
        run_result(Op.APPLY, ok=False, steps=("init",)),
        run_result(Op.APPLY, ok=False, kind="blocked"),
        run_result(Op.APPLY, ok=False, kind="plan-changed"),
    ],
)
def test_apply_that_changed_nothing_leaves_no_mark(result):
    world = World()
    attempt(world, world.finished(ok=False, result=result).metadata.name)
    marks = record(world).records.marks
    assert not marks.may_have_applied


def test_mark_goes_only_on_the_record_of_the_failed_job():
    world = World()
    attempt(world, "another-job")
    world.finished(ok=False)
    assert not record(world).records.marks.may_have_applied


def test_crashed_apply_is_recorded_once_and_the_first_stays():
    world = World()
    first = world.finished(ok=False, pod=False, state_lock_version="17").metadata.name
    attempt(world, first)
    assert record(world).records.marks.interrupted_apply == first
    world.clock.advance(60)
    second = world.finished(attempt=2, ok=False, pod=False, tick="t").metadata.name
    attempt(world, second)
    assert record(world).records.marks.interrupted_apply == first


def test_a_crashed_apply_that_a_later_one_followed_is_not_recorded_by_a_lagging_manager():
    world = World()
    world.finished(ok=False, pod=False, state_lock_version="17")
    attempt(world, "a-later-job")
    assert record(world).records.marks.interrupted_apply == ""


def test_nothing_is_recorded_without_an_attempt_record():
    world = World()
    world.finished(ok=False, pod=False)
    assert record(world).records.attempt is None


def test_older_name_of_the_unconfirmed_mark_is_read():
    world = World()
    attempt(world, "j")
    name = names.attempt_record("TerraformCluster", "prod")
    patch = {"metadata": {"annotations": {keys.UNCONFIRMED_APPLY: "j1"}}}
    world.door.patch(SECRETS, name, NAMESPACE, patch)
    assert read_records(world.door, world.owner).marks.interrupted_apply == "j1"


@pytest.mark.parametrize(("answers", "left"), [("j1", ""), ("", "j1"), ("j2", "j1")])
def test_only_the_apply_that_answers_an_unconfirmed_one_clears_it(answers, left):
    world = World()
    attempt(world, "j1")
    record_interrupted(world.door, world.owner, "j1")
    world.finished(after_interrupted_apply=answers)
    assert record(world).records.marks.interrupted_apply == left


def test_success_clears_what_may_have_been_applied_and_the_unpullable_images():
    world = World()
    attempt(world, world.finished().metadata.name)
    name = names.attempt_record("TerraformCluster", "prod")
    marks = {keys.MAY_HAVE_APPLIED: "true", keys.UNPULLABLE_IMAGES: "[]"}
    world.door.patch(SECRETS, name, NAMESPACE, {"metadata": {"annotations": marks}})
    records = record(world).records
    assert not records.marks.may_have_applied
    assert keys.UNPULLABLE_IMAGES not in records.attempt.metadata.annotations


def test_failure_after_a_success_that_is_read_with_it_keeps_its_mark():
    world = World()
    world.finished(attempt=1, at=-10)
    attempt(world, world.finished(attempt=2, ok=False).metadata.name)
    records = record(world).records
    assert records.applied is not None
    assert records.marks.may_have_applied


def test_restore_settles_what_the_applies_before_it_left_open():
    world = World()
    job = world.finished(ok=False, pod=False, at=-10, state_lock_version="17")
    attempt(world, job.metadata.name)
    assert record(world).records.marks.interrupted_apply
    world.finished(Op.RESTORE, inputs_hash="", secret=False)
    world.door.patch(
        JOBS, job.metadata.name, NAMESPACE, {"metadata": {"annotations": {keys.BOOKKEPT: "true"}}}
    )
    marks = record(world).records.marks
    assert marks.interrupted_apply == ""
    assert not marks.may_have_applied
    assert marks.applied


@pytest.mark.parametrize(
    ("image_id", "image", "pinned"),
    [
        (f"docker-pullable://mirror/x@{DIGEST}", "reg:5000/a/b:v1", f"reg:5000/a/b@{DIGEST}"),
        (f"mirror/x@{DIGEST}", "a/b@sha256:" + "cd" * 32, f"a/b@{DIGEST}"),
        (f"mirror/x@{DIGEST}", "reg:5000/b", f"reg:5000/b@{DIGEST}"),
        (DIGEST, "a/b:v1", ""),
        ("", "a/b:v1", ""),
        ("mirror/x@sha256:abc", "a/b:v1", ""),
    ],
)
def test_digest_is_the_kubelets_and_the_repository_the_specs(image_id, image, pinned):
    pod = core.Pod(
        spec=core.PodSpec(containers=[core.Container(name="source", image=image)]),
        status=core.PodStatus(
            container_statuses=[core.ContainerStatus(name="source", image_id=image_id)]
        ),
    )
    assert pinned_image(pod) == pinned
    assert pinned_image(None) == ""
