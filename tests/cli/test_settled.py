"""When an object needs no more watching."""

from datetime import UTC, datetime, timedelta

import pytest

from captfctl.cli.settled import Standing, due_again, verdict
from captfctl.model import keys
from captfctl.model.conditions import find
from captfctl.model.core import (
    ContainerState,
    ContainerStateWaiting,
    ContainerStatus,
    Pod,
    PodStatus,
)
from captfctl.model.meta import Condition, ObjectMeta
from captfctl.model.status import ActiveJob, Answer
from captfctl.model.terraform import (
    Source,
    TerraformCluster,
    TerraformClusterSpec,
    TerraformClusterStatus,
)

READY = {
    "Ready": ("True", "Ready"),
    "InputsApplied": ("True", "InputsApplied"),
    "ApplyJobSucceeded": ("True", "ApplySucceeded"),
    "DependenciesReady": ("True", "DependenciesReady"),
    "InfrastructureHealthy": ("True", "Healthy"),
}


def cluster(changes=None, *, generation=1, observed=1, active=""):
    conditions = {**READY, **(changes or {})}
    return TerraformCluster(
        metadata=ObjectMeta(name="c", namespace="n", generation=generation),
        spec=TerraformClusterSpec(source=Source(image="i")),
        status=TerraformClusterStatus(
            observed_generation=observed,
            active_job=ActiveJob(name=active) if active else None,
            conditions=[
                Condition(type=kind, status=status, reason=reason, message="m")
                for kind, (status, reason) in conditions.items()
            ],
        ),
    )


def test_ready_with_everything_applied_is_settled():
    assert verdict(cluster()).standing is Standing.READY


def test_held_inputs_wait_for_a_person_while_what_was_applied_is_ready():
    found = verdict(cluster({"InputsApplied": ("False", "AwaitingApproval")}))
    assert (found.standing, found.why) == (Standing.WAITING, "AwaitingApproval: m")


def test_a_newer_spec_is_not_settled_yet():
    assert not verdict(cluster(generation=2)).settled


def pod(reason, message="", *, init=""):
    waiting = ContainerState(waiting=ContainerStateWaiting(reason=reason, message=message))
    first = ContainerState(waiting=ContainerStateWaiting(reason=init)) if init else None
    return Pod(
        status=PodStatus(
            init_container_statuses=[ContainerStatus(name="runner", state=first)],
            container_statuses=[ContainerStatus(name="source", state=waiting)],
        )
    )


@pytest.mark.parametrize("deleting", [False, True])
@pytest.mark.parametrize(
    ("reason", "standing"),
    [
        ("ErrImagePull", Standing.WAITING),
        ("ImagePullBackOff", Standing.WAITING),
        ("InvalidImageName", Standing.WAITING),
        ("CreateContainerConfigError", Standing.WAITING),
        ("CreateContainerError", Standing.LACKING),
        ("ContainerCreating", Standing.WORKING),
        ("PodInitializing", Standing.WORKING),
    ],
)
def test_a_job_that_cannot_start_is_told_by_what_its_node_says(reason, standing, deleting):
    waits = cluster(active="captf-c-c-apply-a1-000000")
    waits.metadata.deletion_timestamp = datetime.now(UTC) if deleting else None
    found = verdict(waits, [pod(reason, "because of this")])

    assert found.standing is standing
    assert ("because of this" in found.why) is (standing is not Standing.WORKING)
    assert found.patience is (standing is not Standing.WORKING)


@pytest.mark.parametrize(
    ("conditions", "standing"),
    [
        ({"Deleting": ("False", "NotDeleting")}, Standing.WORKING),
        ({"Deleting": ("True", "Deleting")}, Standing.WORKING),
        ({"Deleting": ("True", "DeletionProtected")}, Standing.WAITING),
        ({"Deleting": ("True", "DeletionPolicyUnresolved")}, Standing.WAITING),
        ({"StateReadable": ("False", "StateLost")}, Standing.WORKING),
        (
            {"Deleting": ("True", "Deleting"), "StateReadable": ("False", "StateLost")},
            Standing.WAITING,
        ),
        (
            {"Deleting": ("True", "Deleting"), "StateReadable": ("False", "StateTooLarge")},
            Standing.WORKING,
        ),
        (
            {"Deleting": ("True", "Deleting"), "StateReadable": ("False", "StateLocked")},
            Standing.WORKING,
        ),
    ],
)
def test_a_deletion_that_waits_for_a_person_is_settled(conditions, standing):
    goes = cluster(conditions)
    goes.metadata.deletion_timestamp = datetime.now(UTC)
    assert verdict(goes).standing is standing
    goes.status.active_job = ActiveJob(name="captf-c-c-destroy-a1-000000")
    assert verdict(goes).standing is Standing.WORKING


def test_a_cluster_that_waits_for_its_machines_may_still_go():
    goes = cluster(
        {"Deleting": ("True", "Deleting"), "DeletionBlocked": ("True", "DependentsExist")}
    )
    goes.metadata.deletion_timestamp = datetime.now(UTC)
    found = verdict(goes)
    assert (found.standing, found.patience) == (Standing.WAITING, True)


def test_an_init_container_that_cannot_start_counts_too():
    found = verdict(cluster(active="j"), [pod("PodInitializing", init="CreateContainerError")])

    assert found.standing is Standing.LACKING


def test_a_running_job_is_not_settled():
    found = verdict(cluster(active="captf-c-c-apply-a1-000000"))

    assert not found.settled
    assert "captf-c-c-apply-a1-000000" in found.why


@pytest.mark.parametrize(
    "reason", ["ApplyFailed", "JobDeadlineExceeded", "ImageInvalid", "ImagePullFailed"]
)
def test_a_failed_apply_is_settled_as_failed(reason):
    found = verdict(cluster({"ApplyJobSucceeded": ("False", reason)}))

    assert found.standing is Standing.FAILED
    assert reason in found.why


def test_a_failure_whose_correction_is_due_is_not_settled():
    conditions = {
        "ApplyJobSucceeded": ("False", "ApplyFailed"),
        "InputsApplied": ("False", "ApplyPending"),
    }

    assert not verdict(cluster(conditions)).settled


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        ("Unknown", "PlanAwaitingApproval"),
        ("False", "DestructivePlanBlocked"),
        ("False", "JobPolicyInvalid"),
        ("False", "InputsTooLarge"),
    ],
)
def test_what_only_a_person_ends_is_waiting(status, reason):
    found = verdict(cluster({"ApplyJobSucceeded": (status, reason)}))

    assert found.standing is Standing.WAITING


def test_a_lease_or_slot_wait_ends_by_itself():
    assert not verdict(cluster({"ApplyJobSucceeded": ("Unknown", "WaitingForRunLease")})).settled


def test_a_closed_gate_is_given_a_moment():
    found = verdict(cluster({"DependenciesReady": ("Unknown", "WaitingForOwner")}))

    assert found.standing is Standing.WAITING
    assert found.patience


def test_pending_infrastructure_is_on_its_way():
    conditions = {
        "Ready": ("False", "NotReady"),
        "InfrastructureHealthy": ("False", "InstancePending"),
    }

    assert not verdict(cluster(conditions)).settled


def test_degraded_infrastructure_is_a_failure():
    conditions = {
        "Ready": ("False", "NotReady"),
        "InfrastructureHealthy": ("False", "InstanceDegraded"),
    }

    assert verdict(cluster(conditions)).standing is Standing.FAILED


@pytest.mark.parametrize(
    "changes", [{}, {"ApplyJobSucceeded": ("False", "ApplyFailed")}, {"Paused": ("True", "Paused")}]
)
def test_what_was_said_before_the_request_does_not_count(changes):
    asked = cluster(changes)
    for answer in (None, Answer(request="an earlier one")):
        asked.status.answer = answer
        assert verdict(asked, request="r").standing is Standing.WORKING

    asked.status.answer = Answer(request="r")
    assert verdict(asked, request="r") == verdict(asked)
    assert verdict(asked).settled


def test_an_object_of_another_manager_is_not_waited_for():
    managed = cluster()
    managed.metadata.annotations[keys.MANAGED_BY] = "another"

    assert verdict(managed, request="r").standing is Standing.WAITING


def test_when_an_old_failure_is_tried_again_is_known_from_the_answer():
    asked, second = datetime(2026, 1, 1, tzinfo=UTC), timedelta(seconds=1)
    failed = cluster({"ApplyJobSucceeded": ("False", "ApplyFailed")})
    condition = find(failed.status.conditions, "ApplyJobSucceeded")
    until = asked + 40 * second

    failed.status.answer = Answer(request="r", until=until)
    condition.last_transition_time = asked - second
    assert due_again(failed, asked, asked + second) == until
    assert due_again(failed, asked, until) is None
    condition.last_transition_time = asked + second  # it failed again: the answer is older
    assert due_again(failed, asked, asked + second) is None
