"""What conditions and events say, so that a person knows what is the case and what to do."""

import contextlib

import pytest

from captfctl.cluster.errors import Conflict, Forbidden, NamespaceTerminating, Unavailable
from captfctl.model import keys, names
from captfctl.model.reasons import Standing, WaitReason, table
from captfctl.model.resources import JOBS, TERRAFORM_CLUSTERS
from captfctl.terraform.state.records import mark_unpullable
from runner import wire
from tests.support.cluster_world import IMAGE, NAME, World, variables
from tests.support.fake_runner import OUTPUTS
from tests.support.faults import failing

LARGE = {**OUTPUTS, "exports": "y" * 65_537}


def notes(world: World, reason: str) -> list[str]:
    return [note.note for note in world.events.notes if note.reason == reason]


# Exports that are too large.


def test_exports_that_are_not_published_are_told_again_with_another_spec(world: World):
    world.apply(outputs=LARGE)
    world.settle(3)
    assert len(notes(world, "ExportsNotPublished")) == 1
    world.edit(variables('{"region":"eu-2"}'))
    world.settle(3)
    assert len(notes(world, "ExportsNotPublished")) == 2


def test_a_spec_that_changes_while_a_job_runs_is_told_about_afterwards(world: World):
    world.apply(outputs=LARGE)
    world.edit(variables('{"region":"eu-2"}'))
    world.run()
    told = len(notes(world, "ExportsNotPublished"))
    world.edit(variables('{"region":"eu-3"}'))
    world.settle(2)
    assert len(notes(world, "ExportsNotPublished")) == told
    world.runner.succeed(world.active_job(), outputs=LARGE)
    world.settle(2)
    assert len(notes(world, "ExportsNotPublished")) == told + 1


# What the server refuses.

QUOTA = 'jobs.batch "captf-c-web-apply-a1" is forbidden: exceeded quota: full'


def try_to_start(ready: World, error: Exception) -> None:
    """A pass that wants to apply, of a manager that may not create a Job."""
    ready.edit(variables('{"region":"eu-2"}'))
    env = ready.env(door=failing(ready.door, error, "create", JOBS))
    for _ in range(3):
        with contextlib.suppress(type(error)):
            ready.run(env)
    assert ready.running() == []


def test_what_the_server_refuses_is_told_once(ready: World):
    try_to_start(ready, Forbidden(QUOTA))
    told = [note for note in ready.events.notes if note.reason == "RequestRefused"]
    assert {note.note for note in told} == {f"{QUOTA}; it is tried again"}
    assert all(note.once for note in told)


@pytest.mark.parametrize("error", [Unavailable, Conflict, NamespaceTerminating])
def test_what_passes_by_itself_or_has_a_reason_of_its_own_is_not_told_so(ready: World, error):
    try_to_start(ready, error("no"))
    assert notes(ready, "RequestRefused") == []


# The image that runs.


def test_a_job_with_a_fallback_image_says_so(ready: World):
    """The digest that was applied cannot be pulled, so the tag runs."""
    ready.delete()
    record = ready.secret(names.applied_record("TerraformCluster", NAME))
    digest = record.metadata.annotations[keys.IMAGE_DIGEST]
    mark_unpullable(ready.door, ready.owner, digest, ready.clock.now())
    ready.run()
    (note,) = notes(ready, "JobCreated")
    assert f"with image {IMAGE}" in note
    assert note.endswith(f"a fallback: image {digest} cannot be pulled")


def test_a_job_with_the_wanted_image_says_nothing_of_it(ready: World):
    ready.delete()
    ready.run()
    assert "fallback" not in notes(ready, "JobCreated")[0]


# What a run failed with, for as long as its Job is there.


def failed_apply(ready: World) -> str:
    """A failed apply that was read."""
    ready.edit(variables('{"region":"eu-2"}'))
    ready.run()
    failed = ready.active_job()
    ready.runner.fail(failed, "plan")
    ready.settle(2)
    return failed.metadata.name


def test_the_error_of_a_failed_run_outlives_a_wait_for_something_else(ready: World):
    name = failed_apply(ready)
    obj = ready.obj
    wait = WaitReason.RUN_LEASE.says("another Job holds it")
    for condition in obj.status.conditions:
        if condition.type == "ApplyJobSucceeded":
            condition.status, condition.reason = wait.status, wait.reason
            condition.message = wait.message
    ready.door.update(TERRAFORM_CLUSTERS, obj, subresource="status")
    ready.run()
    message = ready.condition("ApplyJobSucceeded").message
    assert message == f"Job {name}: step plan failed: plan did not work"


def test_an_unusable_image_stays_one_after_a_wait(ready: World):
    ready.edit(variables('{"region":"eu-2"}'))
    ready.run()
    ready.runner.fail(ready.active_job(), "init", kind=wire.LAYOUT)
    ready.settle(2)
    obj = ready.obj
    obj.status.conditions = [c for c in obj.status.conditions if c.type != "ApplyJobSucceeded"]
    ready.door.update(TERRAFORM_CLUSTERS, obj, subresource="status")
    ready.run()
    assert ready.reason("ApplyJobSucceeded") == "False/ImageInvalid"
    assert "init did not work" in ready.condition("ApplyJobSucceeded").message


def test_a_blocked_plan_says_what_it_would_do_and_what_can_be_done(ready: World):
    ready.edit(variables('{"region":"eu-2"}'))
    ready.run()
    job = ready.active_job()
    plan = {"replace": 1, "resources": ["aws_instance.web"]}
    error = {"kind": "blocked", "step": "plan", "tail": ""}
    ready.runner.end(job, ok=False, result={"op": "apply", "error": error, "plan": plan})
    ready.settle(2)
    message = ready.condition("ApplyJobSucceeded").message
    assert "aws_instance.web" in message
    assert "no plan that could be approved" in message
    (note,) = [n.note for n in ready.events.notes if n.reason == "DestructivePlanBlocked"]
    assert "no plan that could be approved" in note


def test_every_reason_that_needs_somebody_has_a_remedy():
    for kind, reasons in table():
        for reason in reasons:
            if reason.standing in (Standing.PERSON, Standing.FAILING, Standing.BROKEN):
                assert reason.remedy, (kind, reason)
