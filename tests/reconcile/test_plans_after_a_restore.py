"""A plan was made against a state: another state that is put back ends it
(plans.md: When a plan is superseded)."""

import pytest

from captfctl.model import keys
from captfctl.model.resources import JOBS
from captfctl.model.terraform import ApplyPolicy
from captfctl.reconcile.context import DecideAgain
from tests.reconcile.test_backups import new_serials
from tests.reconcile.test_plans import block_it, notes, operation, plan_it, set_policy
from tests.reconcile.test_restore import ask, asked, restore, withdraw
from tests.support.cluster_world import NAMESPACE, World
from tests.support.faults import Crash, crashing_after
from tests.support.planning import APPROVER, approve, live, phases, planned, plans


@pytest.fixture
def backed(ready: World) -> World:
    new_serials(ready, 3)
    ready.events.clear()
    return ready


@pytest.fixture
def manual(backed: World) -> World:
    set_policy(backed, ApplyPolicy.MANUAL)
    backed.settle(1)
    return backed


def approved_before_the_restore(world: World) -> str:
    """Approved, and a restore is asked for before a pass sees the approval."""
    name = plan_it(world).metadata.name
    approve(world)
    return name


def test_an_approval_does_not_outlive_a_restore(manual: World):
    name = approved_before_the_restore(manual)
    job = restore(manual, 2)
    manual.settle(1)

    assert phases(manual) == ["Superseded"]
    assert operation(manual) == "plan"
    (note,) = notes(manual, "PlanSuperseded")
    assert name in note
    assert job.metadata.name in note
    assert f"its approval by {APPROVER} applies nothing" in note
    assert "PlanSuperseded" in manual.events.warnings()

    # Exactly the same would be done, and it is another plan all the same.
    manual.runner.succeed(manual.active_job(), plan=planned("update"))
    manual.settle(2)
    assert phases(manual) == ["Superseded", "Pending"]
    assert live(manual).metadata.name != name
    assert manual.running() == []


def test_a_plan_that_nobody_approved_goes_without_a_warning(manual: World):
    plan_it(manual)
    restore(manual, 2)
    manual.settle(1)
    assert phases(manual) == ["Superseded"]
    assert "PlanSuperseded" not in manual.events.warnings()


def test_an_approved_replacement_is_looked_for_again_at_once(backed: World):
    block_it(backed)
    approve(backed)
    restore(backed, 2)
    backed.settle(1)

    assert phases(backed) == ["Superseded"]
    assert operation(backed) == "apply"
    (container,) = backed.active_job().spec.template.spec.containers
    assert "--guard-deletes" in container.args
    assert not any(arg.startswith("--expect-plan") for arg in container.args)


@pytest.mark.parametrize(
    ("step", "left"),
    [("state-push", ["Superseded"]), ("state-list", ["Superseded"]), ("init", ["Pending"])],
)
def test_a_failed_restore_ends_a_plan_if_it_may_have_pushed(
    manual: World, step: str, left: list[str]
):
    plan_it(manual)
    ask(manual, 2)
    manual.run()
    steps = ("init", "state-push", "state-list")
    began = [
        {"name": name, "exit": int(name == step), "seconds": 0.1}
        for name in steps[: steps.index(step) + 1]
    ]
    result = {"op": "restore", "steps": began, "error": {"kind": "step", "step": step, "tail": "x"}}
    manual.runner.end(manual.active_job(), ok=False, result=result)
    manual.run()
    assert phases(manual)[:1] == left


def test_a_restore_whose_job_was_deleted_while_it_ran_ends_a_plan(manual: World):
    approved_before_the_restore(manual)
    ask(manual, 2)
    manual.run()
    job = manual.active_job()
    manual.runner.start(job)
    manual.run()
    withdraw(manual)
    manual.runner.forget_pod(job)
    manual.door.delete(JOBS, job.metadata.name, NAMESPACE)
    manual.advance(minutes=2)
    manual.settle(2)
    assert phases(manual) == ["Superseded"]
    assert operation(manual) == "plan"


def test_a_plan_of_the_restored_state_outlives_a_restore_that_is_read_twice(manual: World):
    plan_it(manual)
    job = restore(manual, 2)
    manual.settle(1)
    manual.advance(seconds=5)
    manual.runner.succeed(manual.active_job(), plan=planned("update"))
    unread = {"metadata": {"annotations": {keys.BOOKKEPT: None}}}
    manual.door.patch(JOBS, job.metadata.name, NAMESPACE, unread)
    manual.settle(2)
    assert phases(manual) == ["Superseded", "Pending"]


@pytest.mark.parametrize("writes", range(1, 13))
def test_a_manager_killed_after_any_write_applies_no_plan_of_before(manual: World, writes: int):
    approved_before_the_restore(manual)
    restore(manual, 2)
    budget = writes
    for _ in range(6):
        try:
            manual.run(manual.env(door=crashing_after(manual.door, budget)))
        except Crash:
            budget = 10_000
        except DecideAgain:
            continue
    assert phases(manual) == ["Superseded"]
    assert not asked(manual)
    assert operation(manual) == "plan"
    assert len(plans(manual)) == 1
