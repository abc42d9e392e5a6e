"""Plans of clusters, from the run that made them to their end (plans.md: The life of a plan)."""

from typing import Any

import msgspec
import pytest

from captfctl.cluster.errors import Conflict, Unavailable
from captfctl.model import keys, names
from captfctl.model.kinds import CLUSTER
from captfctl.model.meta import ObjectMeta
from captfctl.model.owner import Owner
from captfctl.model.plan import PlanPhase, PlanReason, TerraformPlan, TerraformPlanStatus
from captfctl.model.resources import JOBS, TERRAFORM_PLANS
from captfctl.model.terraform import ApplyPolicy, ClusterDrift, DriftAction
from captfctl.reconcile.cache import DoorCache
from runner import wire
from tests.support.cluster_world import NAME, NAMESPACE, World, annotated
from tests.support.faults import failing
from tests.support.plan_admission import allow_any_reason
from tests.support.planning import (
    APPROVER,
    NOTHING,
    approve,
    block,
    change,
    find_changed,
    fingerprint,
    live,
    phases,
    planned,
    plans,
    shown,
    the_plan,
)


def set_policy(world: World, policy: ApplyPolicy) -> None:
    world.edit(lambda obj: setattr(obj.spec, "apply_policy", policy))


@pytest.fixture
def manual(ready: World) -> World:
    """An applied cluster whose every change has to be approved."""
    set_policy(ready, ApplyPolicy.MANUAL)
    ready.settle(1)
    ready.events.clear()
    return ready


def pause(world: World, paused: bool) -> None:
    world.edit(annotated({keys.PAUSED: "true" if paused else None}))


def operation(world: World) -> str:
    return world.active_job().metadata.labels[keys.OP]


def arguments(world: World) -> list[str]:
    (container,) = world.active_job().spec.template.spec.containers
    return container.args


def notes(world: World, reason: str) -> list[str]:
    return [note.note for note in world.events.notes if note.reason == reason]


def plan_it(world: World, what: str = "update", text: str = '{"region":"eu-2"}') -> TerraformPlan:
    """The inputs change, and the plan Job of it ends."""
    change(world, text)
    world.settle(1)
    world.runner.succeed(world.active_job(), plan=planned(what))
    world.settle(2)
    return live(world)


def block_it(world: World, **plan: Any) -> TerraformPlan:
    """The inputs change, and their apply stops before it replaces something."""
    change(world)
    world.settle(1)
    block(world, world.active_job(), planned(**plan))
    world.settle(2)
    return live(world)


# Every change is approved.


def test_the_first_apply_is_not_asked_for(world: World):
    set_policy(world, ApplyPolicy.MANUAL)
    world.apply()
    assert world.job_ops() == ["apply"]
    assert plans(world) == []


def test_changed_inputs_are_planned_and_wait(manual: World):
    plan = plan_it(manual)
    assert sorted(manual.job_ops()) == ["apply", "plan"]
    assert (plan.spec.reason, plan.spec.summary.update) == (PlanReason.MANUAL, 1)
    assert plan.spec.plan_hash == fingerprint("update")
    job = next(j for j in manual.jobs() if j.metadata.labels[keys.OP] == "plan")
    assert plan.metadata.name == names.plan(NAME, job.metadata.name, plan.spec.plan_hash)
    assert plan.spec.inputs_hash == job.metadata.annotations[keys.INPUTS_HASH]
    assert plan.metadata.labels[keys.DESTRUCTIVE] == "false"
    assert (plan.metadata.controller.uid, plan.status.phase) == (manual.owner.uid, "Pending")
    assert shown(plan) == {"Ready": "True/Pending", "Approved": "False/Pending"}
    assert manual.obj.status.pending_plan_ref.name == plan.metadata.name
    assert manual.reason("ApplyJobSucceeded") == "Unknown/PlanAwaitingApproval"
    message = manual.condition("ApplyJobSucceeded").message
    assert f"TerraformPlan {plan.metadata.name} " in message
    assert plan.spec.inputs_hash in message
    assert "0 to create, 1 to update, 0 to replace, 0 to delete" in message
    assert message.endswith(f"captfctl approve {plan.metadata.name} -n {NAMESPACE}")
    assert manual.reason("InputsApplied") == "False/AwaitingApproval"
    assert manual.reason("Reconciling") == "True/InputsNotApplied"
    assert manual.reason("Ready") == "True/Ready"
    (note,) = notes(manual, "PlanReady")
    assert note.endswith(f"captfctl approve {plan.metadata.name} -n {NAMESPACE}")
    assert manual.run().requeue_after == 600


def test_a_job_that_is_read_twice_has_one_plan_and_one_event(manual: World):
    plan_it(manual)
    job = next(j for j in manual.jobs() if j.metadata.labels[keys.OP] == "plan")
    unread = {"metadata": {"annotations": {keys.BOOKKEPT: None, keys.PLAN_HASH: None}}}
    manual.door.patch(JOBS, job.metadata.name, NAMESPACE, unread)
    manual.settle(2)
    assert len(plans(manual)) == 1
    assert len(notes(manual, "PlanReady")) == 1


def test_a_plan_that_changes_nothing_is_applied_unasked(manual: World):
    change(manual)
    manual.settle(1)
    manual.runner.succeed(manual.active_job(), plan=NOTHING)
    manual.settle(2)
    assert plans(manual) == []
    assert operation(manual) == "apply"
    assert f"--expect-plan={wire.EMPTY_PLAN}" in arguments(manual)
    assert "found nothing to change" in notes(manual, "PlanReady")[0]
    assert notes(manual, "PlanApproved") == []
    assert len(notes(manual, "InputsChanged")) == 1


def test_what_the_unasked_apply_finds_after_all_has_to_be_approved(manual: World):
    change(manual)
    manual.settle(1)
    manual.runner.succeed(manual.active_job(), plan=NOTHING)
    manual.settle(2)
    manual.advance(seconds=5)
    find_changed(manual, manual.active_job(), planned("delete"))
    manual.settle(2)
    plan = live(manual)
    assert (plan.spec.reason, plan.spec.summary.delete) == (PlanReason.MANUAL, 1)
    assert manual.reason("ApplyJobSucceeded") == "Unknown/PlanChanged"
    assert len(notes(manual, "PlanChanged")) == 1
    assert manual.running() == []


def test_an_approved_plan_is_applied_and_nothing_else(manual: World):
    plan = plan_it(manual)
    approve(manual)
    manual.settle(1)
    notes_of_job = manual.active_job().metadata.annotations
    assert f"--expect-plan={plan.spec.plan_hash}" in arguments(manual)
    assert notes_of_job[keys.PLAN] == plan.metadata.name
    assert notes_of_job[keys.APPROVED_PLAN] == plan.spec.plan_hash
    assert APPROVER in notes(manual, "PlanApproved")[0]
    assert shown(live(manual)) == {"Ready": "True/Approved", "Approved": "True/Approved"}
    manual.runner.succeed(manual.active_job())
    manual.settle(2)
    plan = the_plan(manual)
    assert plan.metadata.labels[keys.PLAN_PHASE] == plan.status.phase == "Applied"
    assert shown(plan) == {"Ready": "True/Applied", "Approved": "True/Approved"}
    assert len(notes(manual, "PlanApplied")) == len(notes(manual, "PlanApproved")) == 1
    assert manual.obj.status.pending_plan_ref is None
    assert manual.reason("ApplyJobSucceeded") == "True/ApplySucceeded"
    assert manual.reason("InputsApplied") == "True/InputsApplied"
    assert manual.metrics.plans == ["created", "approved", "applied"]


def test_a_plan_that_changed_since_it_was_approved_is_not_applied(manual: World):
    old = plan_it(manual)
    approve(manual)
    manual.settle(1)
    find_changed(manual, manual.active_job(), planned("replace"))
    manual.settle(2)
    new = live(manual)
    assert phases(manual) == ["Failed", "Pending"] or phases(manual) == ["Pending", "Failed"]
    failed = manual.door.get(TERRAFORM_PLANS, old.metadata.name, NAMESPACE)
    assert shown(failed) == {"Ready": "False/Failed", "Approved": "True/Approved"}
    assert manual.reason("ApplyJobSucceeded") == "Unknown/PlanChanged"
    message = manual.condition("ApplyJobSucceeded").message
    assert message.startswith("Job captf-c-prod-apply-")
    assert old.metadata.name in message
    assert f"TerraformPlan {new.metadata.name} " in message
    (note,) = notes(manual, "PlanChanged")
    assert old.metadata.name in note
    assert new.metadata.name in note
    approve(manual)
    manual.settle(1)
    assert operation(manual) == "apply"  # at once: what was found is no failure


def test_an_approved_plan_whose_apply_fails_is_tried_again_as_it_is(manual: World):
    plan = plan_it(manual)
    approve(manual)
    manual.settle(1)
    manual.runner.fail(manual.active_job())
    manual.settle(2)
    assert the_plan(manual).status.phase == "Approved"
    assert manual.running() == []
    manual.advance(seconds=61)
    manual.settle(1)
    assert f"--expect-plan={plan.spec.plan_hash}" in arguments(manual)


def test_inputs_that_change_again_are_planned_again(manual: World):
    old = plan_it(manual)
    change(manual, '{"region":"eu-3"}')
    manual.settle(1)
    assert operation(manual) == "plan"
    ended = manual.door.get(TERRAFORM_PLANS, old.metadata.name, NAMESPACE)
    assert shown(ended) == {"Ready": "False/Superseded", "Approved": "False/NotApproved"}
    (note,) = [n for n in manual.events.notes if n.reason == "PlanSuperseded"]
    assert not note.warning
    assert manual.obj.status.pending_plan_ref is None


def test_an_approval_that_comes_to_nothing_is_told(manual: World):
    old = plan_it(manual)
    approve(manual)
    change(manual, '{"region":"eu-3"}')
    manual.settle(1)
    assert operation(manual) == "plan"
    ended = manual.door.get(TERRAFORM_PLANS, old.metadata.name, NAMESPACE)
    assert shown(ended) == {"Ready": "False/Superseded", "Approved": "False/ApprovalIgnored"}
    (note,) = [n for n in manual.events.notes if n.reason == "PlanSuperseded"]
    assert note.warning
    assert APPROVER in note.note


@pytest.mark.parametrize("what", ["imported", "output_changes", "move", "forget"])
def test_changes_that_are_no_changes_of_resources_have_to_be_approved_too(manual: World, what: str):
    name = {"imported": "import", "output_changes": "outputChanges"}.get(what, what)
    change(manual)
    manual.settle(1)
    manual.runner.succeed(manual.active_job(), plan=planned("update", update=0) | {name: 1})
    manual.settle(2)
    assert getattr(live(manual).spec.summary, what) == 1
    assert manual.reason("ApplyJobSucceeded") == "Unknown/PlanAwaitingApproval"


def test_a_plan_that_waits_is_dropped_when_nothing_has_to_be_approved(manual: World):
    plan_it(manual)
    set_policy(manual, ApplyPolicy.AUTOMATIC)
    manual.settle(1)
    assert phases(manual) == ["Superseded"]
    assert operation(manual) == "apply"
    assert "--guard-deletes" in arguments(manual)
    assert not any(argument.startswith("--expect-plan") for argument in arguments(manual))


def test_a_plan_without_a_hash_is_no_plan_and_is_made_again_after_a_pause(manual: World):
    change(manual)
    manual.settle(1)
    manual.runner.succeed(manual.active_job(), plan=planned("update", hash=""))
    manual.settle(3)
    assert (plans(manual), manual.running()) == ([], [])
    manual.advance(seconds=61)
    manual.settle(1)
    assert operation(manual) == "plan"


def test_a_reverted_change_leaves_what_the_last_apply_said(manual: World):
    plan_it(manual)
    change(manual, '{"region":"eu-1"}')
    manual.settle(1)
    assert phases(manual) == ["Superseded"]
    assert manual.reason("ApplyJobSucceeded") == "True/ApplySucceeded"
    assert manual.reason("InputsApplied") == "True/InputsApplied"


# Only what is destroyed is approved.


def test_an_update_is_applied_unasked(ready: World):
    change(ready)
    ready.settle(1)
    ready.runner.succeed(ready.active_job(), plan=planned("update"))
    ready.settle(2)
    assert plans(ready) == []
    assert ready.reason("InputsApplied") == "True/InputsApplied"


def test_a_replacement_stops_and_waits(ready: World):
    plan = block_it(ready)
    assert plan.spec.reason is PlanReason.DESTRUCTIVE
    assert plan.metadata.labels[keys.DESTRUCTIVE] == "true"
    assert ready.reason("ApplyJobSucceeded") == "False/DestructivePlanBlocked"
    message = ready.condition("ApplyJobSucceeded").message
    assert "t.replace (replace)" in message
    assert "nothing was applied" in message
    assert message.endswith(f"captfctl approve {plan.metadata.name} -n {NAMESPACE}")
    assert ready.reason("InputsApplied") == "False/AwaitingApproval"
    (note,) = notes(ready, "DestructivePlanBlocked")
    assert note.endswith(f"captfctl approve {plan.metadata.name} -n {NAMESPACE}")
    ready.advance(minutes=11)
    ready.settle(1)
    assert ready.running() == []  # neither tried again, nor checked for drift


def test_an_approved_replacement_is_applied(ready: World):
    plan = block_it(ready)
    approve(ready)
    ready.settle(1)
    assert f"--expect-plan={plan.spec.plan_hash}" in arguments(ready)
    ready.runner.succeed(ready.active_job())
    ready.settle(2)
    assert phases(ready) == ["Applied"]
    assert ready.reason("ApplyJobSucceeded") == "True/ApplySucceeded"


def test_a_replacement_that_changed_since_is_looked_for_again(ready: World):
    block_it(ready)
    approve(ready)
    ready.settle(1)
    find_changed(ready, ready.active_job(), planned("delete"))
    ready.settle(1)
    assert phases(ready) == ["Failed"]
    assert "it is planned again" in notes(ready, "PlanChanged")[0]
    assert operation(ready) == "apply"
    assert not any(argument.startswith("--expect-plan") for argument in arguments(ready))
    block(ready, ready.active_job(), planned("delete"))
    ready.settle(2)
    assert live(ready).spec.summary.delete == 1


def test_a_plan_waits_also_when_its_jobs_are_gone(ready: World):
    plan = block_it(ready)
    for job in ready.jobs():
        ready.door.delete(JOBS, job.metadata.name, NAMESPACE)
    ready.door.patch(
        ready.resource, NAME, NAMESPACE, {"status": {"conditions": None}}, subresource="status"
    )
    ready.events.clear()
    ready.settle(2)
    assert ready.running() == []
    assert ready.reason("ApplyJobSucceeded") == "False/DestructivePlanBlocked"
    message = ready.condition("ApplyJobSucceeded").message
    assert f"TerraformPlan {plan.metadata.name} " in message
    assert "Job" not in message
    assert notes(ready, "PlanReady") == notes(ready, "JobFailed") == []


def test_a_stop_without_a_plan_is_tried_again_after_a_while(ready: World):
    change(ready)
    ready.settle(1)
    block(ready, ready.active_job(), planned(hash=""))
    ready.settle(2)
    assert (plans(ready), ready.running()) == ([], [])
    assert "no plan that could be approved" in ready.condition("ApplyJobSucceeded").message
    ready.advance(minutes=10)
    ready.settle(1)
    assert operation(ready) == "apply"


def test_a_waiting_replacement_is_planned_when_every_change_has_to_be_approved(ready: World):
    block_it(ready)
    set_policy(ready, ApplyPolicy.MANUAL)
    ready.settle(1)
    assert phases(ready) == ["Superseded"]
    assert operation(ready) == "plan"


def test_a_retry_that_replaces_what_a_failed_apply_left_can_be_approved_at_once(ready: World):
    change(ready)
    ready.settle(1)
    ready.runner.fail(ready.active_job(), applied=True)
    ready.settle(1)
    ready.advance(seconds=61)
    ready.settle(1)
    assert ready.active_job().metadata.annotations[keys.AFTER_FAILED_APPLY] == "true"
    block(ready, ready.active_job(), planned())
    ready.settle(2)
    approve(ready)
    ready.settle(1)
    assert f"--expect-plan={fingerprint('replace')}" in arguments(ready)
    ready.runner.succeed(ready.active_job())
    ready.settle(2)
    assert ready.reason("ApplyJobSucceeded") == "True/ApplySucceeded"


def test_a_reverted_replacement_leaves_what_the_last_apply_said(ready: World):
    block_it(ready)
    change(ready, '{"region":"eu-1"}')
    ready.settle(1)
    assert phases(ready) == ["Superseded"]
    assert ready.reason("ApplyJobSucceeded") == "True/ApplySucceeded"
    ready.settle(2)
    ready.advance(minutes=40)
    ready.settle(1)
    assert operation(ready) == "drift"
    assert ready.reason("ApplyJobSucceeded") == "True/ApplySucceeded"


# Drift that is corrected.


def remediate(obj: Any) -> None:
    obj.spec.drift = ClusterDrift(interval_seconds=1800, action=DriftAction.REMEDIATE)


DRIFT = {"detected": True, "create": 0, "update": 1, "replace": 0, "delete": 0, "resources": ["a"]}


def drift(world: World) -> None:
    world.edit(remediate)
    world.advance(minutes=34)
    world.settle(1)
    world.runner.succeed(world.active_job(), drift=DRIFT)
    world.settle(1)


def test_checks_go_on_while_a_correction_waits(ready: World):
    drift(ready)
    block(ready, ready.active_job())
    ready.settle(2)
    assert ready.run().requeue_after <= 600
    plan = live(ready)
    ready.advance(minutes=34)
    ready.settle(2)
    assert operation(ready) == "drift"
    assert ready.reason("ApplyJobSucceeded") == "False/DestructivePlanBlocked"
    ready.runner.succeed(ready.active_job(), drift=DRIFT)
    ready.settle(2)
    assert live(ready).metadata.name == plan.metadata.name
    assert ready.running() == []


def test_a_correction_that_is_not_needed_any_more_is_dropped(ready: World):
    drift(ready)
    block(ready, ready.active_job())
    ready.settle(2)
    ready.advance(minutes=34)
    ready.settle(1)
    ready.runner.succeed(ready.active_job(), drift={"detected": False})
    ready.settle(2)
    assert phases(ready) == ["Superseded"]
    assert ready.reason("ApplyJobSucceeded") == "True/ApplySucceeded"


def test_every_correction_is_planned_and_approved(manual: World):
    drift(manual)
    assert operation(manual) == "plan"
    manual.runner.succeed(manual.active_job(), plan=planned("update"))
    manual.settle(2)
    approve(manual)
    manual.advance(minutes=34)
    manual.settle(1)
    assert manual.active_job().metadata.annotations[keys.DRIFT_REMEDIATION] == "true"
    manual.runner.succeed(manual.active_job())
    manual.settle(2)
    assert phases(manual) == ["Applied"]
    assert manual.reason("DriftDetected") == "False/NoDrift"


# Bookkeeping of plans.


def old_plan(world: World, number: int, phase: PlanPhase, **spec: Any) -> TerraformPlan:
    """One of the object's, made at another time."""
    plan = msgspec.structs.replace(
        the_plan(world) if number == 0 else plans(world)[0],
        metadata=ObjectMeta(
            name=f"{NAME}-{number:010d}",
            namespace=NAMESPACE,
            labels={keys.PLAN_PHASE: phase.value},
            owner_references=[world.owner.owner_reference(controller=True)],
        ),
        status=TerraformPlanStatus(),
    )
    for field, value in spec.items():
        setattr(plan.spec, field, value)
    return world.create(TERRAFORM_PLANS, plan)


def test_a_plan_of_a_pool_reason_does_not_lift_the_guard_of_a_cluster(ready: World):
    """Made by hand, with the inputs hash that is wanted, it would allow every deletion."""
    allow_any_reason(ready.door)
    plan = block_it(ready)
    ready.advance(seconds=1)
    forged = old_plan(
        ready, 0, PlanPhase.PENDING, reason=PlanReason.EXPORTS_CHANGE, plan_hash=fingerprint("all")
    )
    approve(ready, forged.metadata.name)
    ready.settle(3)
    assert ready.running() == []
    assert live(ready).metadata.name == plan.metadata.name
    assert ready.obj.status.pending_plan_ref.name == plan.metadata.name
    assert ready.reason("ApplyJobSucceeded") == "False/DestructivePlanBlocked"


def test_the_ten_newest_that_ended_are_kept(manual: World):
    plan_it(manual)
    for number in range(12):
        manual.advance(seconds=1)
        old_plan(manual, number, PlanPhase.SUPERSEDED)
    waiting = next(plan for plan in plans(manual) if plan.live).metadata.name
    pause(manual, True)
    manual.settle(2)
    assert len(plans(manual)) == 13
    pause(manual, False)
    manual.settle(2)
    left = [plan.metadata.name for plan in plans(manual)]
    assert left == [*(f"{NAME}-{number:010d}" for number in range(11, 1, -1)), waiting]


def test_of_two_live_plans_the_newest_stays(manual: World):
    first = plan_it(manual)
    manual.advance(seconds=1)
    second = old_plan(manual, 0, PlanPhase.PENDING)
    manual.settle(1)
    assert live(manual).metadata.name == second.metadata.name
    ended = manual.door.get(TERRAFORM_PLANS, first.metadata.name, NAMESPACE)
    assert ended.status.phase == "Superseded"
    assert manual.obj.status.pending_plan_ref.name == second.metadata.name


def test_a_plan_of_an_earlier_object_of_the_name_is_not_ours(manual: World):
    change(manual)
    manual.settle(1)
    job = manual.active_job().metadata.name
    stranger = Owner(CLUSTER.name, NAMESPACE, NAME, "another-uid", NAME)
    name = names.plan(NAME, job, fingerprint("update"))
    plan_of_stranger(manual, stranger, name)
    manual.runner.succeed(manual.active_job(), plan=planned("update"))
    with pytest.raises(Conflict, match="earlier object"):
        manual.run()
    assert manual.obj.status.pending_plan_ref is None
    manual.door.delete(TERRAFORM_PLANS, name, NAMESPACE)
    manual.settle(2)
    assert live(manual).metadata.name == name


def moved_along(world: World, what: str) -> TerraformPlan:
    """An ended plan that a move brought: the Job that made it had the name of the one that runs."""
    name = names.plan(NAME, world.active_job().metadata.name, fingerprint(what))
    plan_of_stranger(world, world.owner, name)
    ended = {"metadata": {"labels": {keys.PLAN_PHASE: PlanPhase.FAILED.value}}}
    world.door.patch(TERRAFORM_PLANS, name, NAMESPACE, ended)
    return the_plan(world)


def test_a_plan_of_a_job_whose_name_came_up_again_is_made_again(manual: World):
    change(manual)
    manual.settle(1)
    ended = moved_along(manual, "update").metadata.name
    manual.runner.succeed(manual.active_job(), plan=planned("update"))
    manual.settle(1)
    assert not any(ended in note for note in notes(manual, "PlanReady"))
    assert operation(manual) == "plan"
    manual.runner.succeed(manual.active_job(), plan=planned("update"))
    manual.settle(2)
    assert live(manual).metadata.name != ended
    assert manual.reason("ApplyJobSucceeded") == "Unknown/PlanAwaitingApproval"


def test_a_replacement_of_a_job_whose_name_came_up_again_is_looked_for_again(ready: World):
    change(ready)
    ready.settle(1)
    ended = moved_along(ready, "replace").metadata.name
    block(ready, ready.active_job(), planned())
    ready.settle(1)
    assert not any(ended in note for note in notes(ready, "DestructivePlanBlocked"))
    assert ended not in ready.condition("ApplyJobSucceeded").message
    ready.advance(minutes=11)
    ready.settle(1)
    block(ready, ready.active_job(), planned())
    ready.settle(2)
    assert ready.condition("ApplyJobSucceeded").message.endswith(
        f"captfctl approve {live(ready).metadata.name} -n {NAMESPACE}"
    )


def plan_of_stranger(world: World, owner: Owner, name: str) -> None:
    document = {
        "apiVersion": TERRAFORM_PLANS.api_version,
        "kind": "TerraformPlan",
        "metadata": {
            "name": name,
            "ownerReferences": [msgspec.to_builtins(owner.owner_reference(controller=True))],
        },
        "spec": {
            "targetRef": {"kind": owner.kind, "name": owner.name},
            "planHash": "p2:x",
            "inputsHash": "h2:x",
            "reason": "Manual",
            "summary": {"create": 0, "update": 0, "replace": 0, "delete": 0},
            "approved": True,
            "approvedBy": "somebody",
        },
    }
    world.door.create(TERRAFORM_PLANS.untyped(), document, NAMESPACE)


def test_a_deleting_object_makes_no_plan_and_its_job_is_read(manual: World):
    change(manual)
    manual.settle(1)
    job = manual.active_job()
    manual.delete()
    manual.runner.succeed(job, plan=planned("update"))
    manual.settle(1)
    assert plans(manual) == []
    read = manual.door.get(JOBS, job.metadata.name, NAMESPACE)
    assert read.metadata.annotations[keys.BOOKKEPT] == "true"


def test_a_lost_status_is_rebuilt_from_the_label(manual: World):
    plan = plan_it(manual)
    approve(manual)
    manual.settle(1)
    manual.runner.succeed(manual.active_job())
    manual.settle(2)
    manual.events.clear()
    lost = {"status": None}
    manual.door.patch(TERRAFORM_PLANS, plan.metadata.name, NAMESPACE, lost, subresource="status")
    manual.settle(1)
    assert shown(the_plan(manual)) == {"Ready": "True/Applied", "Approved": "True/Approved"}
    assert manual.events.notes == []


def test_an_approval_after_the_end_is_told_once(manual: World):
    plan = plan_it(manual)
    change(manual, '{"region":"eu-1"}')
    manual.settle(2)
    manual.events.clear()
    approve(manual, plan.metadata.name)
    manual.settle(3)
    (note,) = [n for n in manual.events.notes if n.reason == "PlanSuperseded"]
    assert note.warning
    assert shown(the_plan(manual))["Approved"] == "False/ApprovalIgnored"


def test_a_resting_object_notices_its_plans(ready: World):
    block_it(ready)
    change(ready, '{"region":"eu-1"}')
    ready.look_at_credentials()
    ready.settle(3)
    ready.writes.forget()
    ready.settle(1)
    assert ready.writes.seen == []
    approve(ready, the_plan(ready).metadata.name)
    ready.settle(1)
    assert shown(the_plan(ready))["Approved"] == "False/ApprovalIgnored"


def test_a_plan_that_the_cache_does_not_show_yet_is_read_live(manual: World):
    """Else the pass would plan again, and take the place of what is being approved."""
    plan = plan_it(manual)

    class Behind(DoorCache):
        def plans(self, owner: Owner) -> list[TerraformPlan]:
            return []

    manual.cache = Behind(manual.door)
    manual.settle(2)
    assert manual.running() == []
    assert live(manual).metadata.name == plan.metadata.name


def test_an_approval_is_confirmed_before_its_plan_is_applied(manual: World):
    """A cache may show a plan that has ended."""
    approved = plan_it(manual)
    approve(manual)
    pause(manual, True)
    manual.settle(2)
    pause(manual, False)
    manual.settle(1)
    seen = live(manual)
    assert seen.status.phase == "Approved"

    class Behind(DoorCache):
        def plans(self, owner: Owner) -> list[TerraformPlan]:
            return [TERRAFORM_PLANS.copy(seen)]

    ended = {"metadata": {"labels": {keys.PLAN_PHASE: "Superseded"}}}
    manual.door.patch(TERRAFORM_PLANS, approved.metadata.name, NAMESPACE, ended)
    manual.cache = Behind(manual.door)
    manual.run()
    assert manual.running() == []


def test_an_outdated_object_ends_no_plan(manual: World):
    before = manual.obj
    plan_it(manual)

    class Behind(DoorCache):
        def own(self, resource: Any, namespace: str, name: str) -> Any:
            return resource.copy(before)

    with pytest.raises(Conflict):
        manual.run(manual.env(cache=Behind(manual.door)))
    assert phases(manual) == ["Pending"]


@pytest.mark.parametrize("method", ["create", "patch"])
def test_a_plan_that_cannot_be_written_leaves_its_job_to_be_read_again(manual: World, method: str):
    change(manual)
    manual.settle(1)
    job = manual.active_job().metadata.name
    manual.runner.succeed(manual.active_job(), plan=planned("update"))
    away = failing(manual.door, Unavailable("away"), method, TERRAFORM_PLANS)
    with pytest.raises(Unavailable):
        manual.run(manual.env(door=away))
    read = manual.door.get(JOBS, job, NAMESPACE).metadata.annotations
    assert keys.BOOKKEPT not in read
    manual.settle(2)
    assert live(manual).status.phase == "Pending"
    assert manual.reason("ApplyJobSucceeded") == "Unknown/PlanAwaitingApproval"


def test_a_name_that_is_too_long_is_cut():
    assert names.plan("prod", "job-a", "p2:abc") == "prod-911bde90b1"
    long = names.plan("n" * 250, "job-a", "p2:abc")
    assert len(long) == 253
    assert long.endswith("-911bde90b1")
