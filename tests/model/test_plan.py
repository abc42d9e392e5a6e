"""What a plan is called, in which phase it is, and which one of an object's may be applied."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from captfctl.model import names
from captfctl.model.condition_types import FALSE, TRUE
from captfctl.model.meta import ObjectMeta, OwnerReference
from captfctl.model.plan import (
    RESOURCES_MAX,
    PlanPhase,
    PlanReason,
    PlanSummary,
    PlanTarget,
    TerraformPlan,
    TerraformPlanSpec,
    live_plan,
    plan_conditions,
    plan_labels,
    plans_of,
)
from captfctl.model.resources import TERRAFORM_PLANS
from runner import wire

CREATED = datetime(2026, 9, 25, 12, tzinfo=UTC)


def plan(name="prod-0", *, label="", approved_by="", uid="u", target="prod", age=0):
    spec = TerraformPlanSpec(
        target_ref=PlanTarget(kind="TerraformCluster", name=target),
        plan_hash="p2:abc",
        inputs_hash="i",
        reason=PlanReason.MANUAL,
        summary=PlanSummary(create=1, update=0, replace=0, delete=0),
        approved=bool(approved_by),
        approved_by=approved_by,
    )
    metadata = ObjectMeta(
        name=name,
        namespace="team-a",
        creation_timestamp=CREATED - timedelta(minutes=age),
        labels={"captf.io/plan-phase": label} if label else {},
        owner_references=[OwnerReference(uid="other"), OwnerReference(uid=uid, controller=True)],
    )
    return TerraformPlan(metadata=metadata, spec=spec)


@pytest.mark.parametrize(
    ("target", "job", "name"),
    [
        ("prod", "job-a", "prod-911bde90b1"),
        ("demo", "captf-c-demo-plan-a1-abc123", "demo-fd4af3ae3e"),
        ("x" * 242, "job-a", f"{'x' * 242}-911bde90b1"),
        ("x" * 250, "job-a", f"{'x' * 242}-911bde90b1"),
        ("x" * 241 + ".yyyyyyyy", "job-a", f"{'x' * 241}-911bde90b1"),
    ],
)
def test_a_plan_is_named_by_its_target_and_by_the_job_that_made_it(target, job, name):
    assert names.plan(target, job, "p2:abc") == name
    assert len(name) <= 253


@pytest.mark.parametrize(
    ("label", "approved_by", "phase"),
    [
        ("", "", "Pending"),
        ("", "alice", "Approved"),
        ("Pending", "alice", "Approved"),
        ("Approved", "", "Pending"),
        ("Applied", "alice", "Applied"),
        ("Failed", "alice", "Failed"),
        ("Superseded", "", "Superseded"),
        ("Superseded", "alice", "Superseded"),
        ("of another release", "", "Pending"),
    ],
)
def test_a_terminal_label_decides_the_phase_and_else_the_approval(label, approved_by, phase):
    found = plan(label=label, approved_by=approved_by)

    assert found.phase == phase
    assert found.live == (phase in ("Pending", "Approved"))


def test_plans_of_others_and_of_an_earlier_namesake_are_not_the_objects():
    own = plan("prod-1", age=1), plan("prod-3", age=5), plan("prod-2", age=1)
    others = plan(uid="earlier"), plan(target="test"), plan(uid="")

    found = plans_of([*others, *own], "TerraformCluster", "prod", "u")

    assert [one.metadata.name for one in found] == ["prod-2", "prod-1", "prod-3"]
    assert plans_of([*others, *own], "TerraformMachinePool", "prod", "u") == []
    assert plans_of(others, "TerraformCluster", "prod", "") == []


def test_the_live_plan_is_the_newest_that_may_be_applied():
    newest_first = [plan("a", label="Superseded"), plan("b", approved_by="alice"), plan("c")]

    assert live_plan(newest_first) is newest_first[1]
    assert live_plan(newest_first[:1]) is None


def test_an_object_keeps_counts_of_zero():
    found = msgspec.to_builtins(plan())["spec"]

    assert found["summary"] == {"create": 1, "update": 0, "replace": 0, "delete": 0}
    assert "approved" not in found
    assert TERRAFORM_PLANS.copy(plan()) == plan()


def test_a_summary_is_what_the_run_said_within_the_limits_of_the_kind():
    entries = [f"null_resource.{i:02} (update)" for i in range(60)]
    run = wire.Plan("p2:abc", 1, 2, 3, 4, 5, 6, 7, 8, (*reversed(entries), "", f"{'z' * 900} (x)"))

    found = PlanSummary.of(run)

    assert found.resources == entries[:RESOURCES_MAX]
    assert found.truncated
    assert (found.create, found.update, found.replace, found.delete) == (1, 2, 3, 4)
    assert (found.output_changes, found.imported, found.move, found.forget) == (5, 6, 7, 8)
    assert found.counts == run.counts
    assert msgspec.to_builtins(found)["import"] == 6
    assert not PlanSummary.of(run._replace(resources=("", "a (read)"))).truncated
    assert PlanSummary.of(run._replace(resources=("a", "b"), truncated=True)).truncated
    assert PlanSummary.of(run._replace(resources=("z" * 900,))).resources == ["z" * 600]


@pytest.mark.parametrize(
    ("counts", "destructive"),
    [((9, 9, 0, 0), "false"), ((0, 0, 1, 0), "true"), ((0, 0, 0, 1), "true")],
)
def test_a_plan_is_destructive_when_it_deletes_or_replaces(counts, destructive):
    summary = PlanSummary.of(wire.Plan("p2:abc", *counts))

    labels = plan_labels(PlanPhase.PENDING, PlanReason.DESTRUCTIVE, summary, "c" * 70)

    assert labels["captf.io/destructive"] == destructive
    assert labels["captf.io/plan-phase"] == "Pending"
    assert labels["captf.io/plan-reason"] == "Destructive"
    assert len(labels["cluster.x-k8s.io/cluster-name"]) == 16
    assert "cluster.x-k8s.io/cluster-name" not in plan_labels(
        PlanPhase.PENDING, PlanReason.DESTRUCTIVE, summary, ""
    )


@pytest.mark.parametrize(
    ("phase", "approved_by", "ready", "approved"),
    [
        ("Pending", "", (TRUE, "Pending"), (FALSE, "Pending")),
        ("Approved", "alice", (TRUE, "Approved"), (TRUE, "Approved")),
        ("Applied", "alice", (TRUE, "Applied"), (TRUE, "Approved")),
        ("Failed", "alice", (FALSE, "Failed"), (TRUE, "Approved")),
        ("Superseded", "", (FALSE, "Superseded"), (FALSE, "NotApproved")),
        ("Superseded", "alice", (FALSE, "Superseded"), (FALSE, "ApprovalIgnored")),
    ],
)
def test_conditions_follow_from_the_phase(phase, approved_by, ready, approved):
    found = plan_conditions(plan(approved_by=approved_by), PlanPhase(phase), "why")

    assert [(one.status, one.reason) for one in found] == [ready, approved]
    assert found[0].message == "why"
    assert ("alice" in found[1].message) == bool(approved_by)
    assert all(one.message for one in plan_conditions(plan(), PlanPhase(phase)))
