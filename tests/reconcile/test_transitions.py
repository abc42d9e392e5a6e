"""Which condition changes are worth an event
(conditions-and-events.md: Which changes become events)."""

import pytest

from captfctl.clock import SystemClock
from captfctl.cluster.errors import Forbidden
from captfctl.model.conditions import NEGATIVE, Conditions, Type
from captfctl.model.core import ObjectReference
from captfctl.model.events import Action, Note
from captfctl.model.meta import Condition, ObjectMeta
from captfctl.model.reasons import Reason, WaitReason, table
from captfctl.model.terraform import Source, TerraformCluster, TerraformClusterSpec
from captfctl.reconcile.events import DoorRecorder
from captfctl.reconcile.patch import merge_patch
from captfctl.reconcile.transitions import notes
from tests.support.clock import START

JOB_TYPES = (Type.APPLY_JOB_SUCCEEDED, Type.DRIFT_JOB_SUCCEEDED, Type.RESTORE_JOB_SUCCEEDED)


def condition(kind: str, status: str, reason: str, message: str = "") -> Condition:
    return Condition(type=kind, status=status, reason=reason, message=message)


def events(before: Condition | None, after: Condition) -> list[tuple[str, bool]]:
    found = notes([before] if before else [], [after])
    return [(note.reason, note.warning) for note in found]


def test_a_condition_that_first_appears_good_is_silent():
    assert events(None, condition("DependenciesReady", "True", "DependenciesReady")) == []


def test_a_condition_that_first_appears_bad_warns():
    after = condition("DependenciesReady", "False", "OwnerMismatch")
    assert events(None, after) == [("ConditionChanged", True)]


def test_the_note_names_type_status_reason_and_message():
    after = condition("RunnerRBACReady", "False", "RBACFailed", "no right")
    (note,) = notes([], [after])
    assert note.note == "RunnerRBACReady: False/RBACFailed: no right"
    assert note.action is Action.RECONCILE


OWN_RULES = (
    Type.PAUSED,
    Type.INPUTS_APPLIED,
    Type.RECONCILING,
    Type.DELETING,
    Type.INFRASTRUCTURE_HEALTHY,
)
ONCE_GOOD = [
    (kind, reason) for kind, reasons in table() for reason in reasons if kind not in OWN_RULES
]


@pytest.mark.parametrize(("kind", "reason"), ONCE_GOOD)
def test_a_transition_warns_as_the_table_says(kind: Type, reason: Reason):
    """Of Jobs only problems and waits: a success is told by the Job itself."""
    other = "False" if kind in NEGATIVE else "True"
    before = condition(kind, other, "Before")
    warnings = [warning for _, warning in events(before, condition(kind, reason.status, reason))]
    silent = kind in JOB_TYPES and not reason.warning and not isinstance(reason, WaitReason)
    assert warnings == ([] if silent else [reason.warning])


def test_unknown_health_warns_although_it_is_unknown():
    before = condition("InfrastructureHealthy", "True", "Healthy")
    after = condition("InfrastructureHealthy", "Unknown", "HealthUnknown")
    assert events(before, after) == [("InstanceUnhealthy", True)]


def test_recovered_health_has_its_own_event():
    before = condition("InfrastructureHealthy", "False", "InstanceDegraded")
    after = condition("InfrastructureHealthy", "True", "Healthy")
    assert events(before, after) == [("InstanceHealthy", False)]


def test_ready_warns_only_when_it_leaves_true():
    ready = condition("Ready", "True", "Ready")
    not_ready = condition("Ready", "False", "NotReady")
    unknown = condition("Ready", "Unknown", "ReadyUnknown")
    assert events(ready, not_ready) == [("ConditionChanged", True)]
    assert events(unknown, not_ready) == [("ConditionChanged", False)]
    assert events(None, not_ready) == []


@pytest.mark.parametrize(
    ("kind", "reason", "event"),
    [
        ("StateReadable", "StateLost", "StateLost"),
        ("StateReadable", "ApplyOutcomeUnknown", "StateLost"),
        ("StateReadable", "StateCorrupt", "StateUnreadable"),
        ("StateReadable", "StateLocked", "StateLocked"),
        ("StateReadable", "RetainedStateFound", "RetainedStateFound"),
        ("OutputsValid", "OutputsMissing", "OutputsInvalid"),
        ("IdentityAllowed", "NamespaceNotAllowed", "IdentityNotAllowed"),
    ],
)
def test_these_types_have_names_of_their_own_and_repeat_for_another_message(kind, reason, event):
    first = condition(kind, "False", reason, "one")
    other = condition(kind, "False", reason, "two")
    assert events(None, first) == [(event, True)]
    assert events(first, other) == [(event, True)]
    assert events(first, first) == []


def test_a_state_that_reads_again_is_a_normal_change():
    before = condition("StateReadable", "False", "StateLost")
    assert events(before, condition("StateReadable", "True", "StateRead")) == [
        ("ConditionChanged", False)
    ]


def test_another_message_of_another_type_is_no_event():
    before = condition("DependenciesReady", "False", "VariablesInvalid", "one")
    assert events(before, condition("DependenciesReady", "False", "VariablesInvalid", "two")) == []


def test_a_finished_jobs_condition_leaves_the_event_to_the_job():
    before = condition("ApplyJobSucceeded", "Unknown", "NoApplyYet")
    after = condition("ApplyJobSucceeded", "False", "ApplyFailed", "Job captf-c-a: step x failed")
    assert events(before, after) == []
    other = condition("ApplyJobSucceeded", "False", "ApplyFailed", "Job captf-c-a: other words")
    assert events(after, other) == []


def test_a_start_that_failed_without_a_job_is_said_once_per_message():
    first = condition("ApplyJobSucceeded", "False", "InputsTooLarge", "2 of 1 bytes")
    assert events(None, first) == [("JobFailed", True)]
    assert events(first, first) == []
    other = condition("ApplyJobSucceeded", "False", "InputsTooLarge", "3 of 1 bytes")
    assert events(first, other) == [("JobFailed", True)]


def test_missing_inputs_of_a_check_are_a_warning_once():
    checked = condition("DriftJobSucceeded", "True", "DriftChecked", "Job captf-c-a")
    missing = condition("DriftJobSucceeded", "Unknown", "DurableInputsMissing", "no inputs")
    assert events(checked, missing) == [("ConditionChanged", True)]
    assert events(missing, missing) == []


@pytest.mark.parametrize(
    "reason",
    [
        "WaitingForRunLease",
        "WaitingForClusterOperation",
        "WaitingForMachineOperations",
        "WaitingForJobSlot",
    ],
)
def test_a_wait_is_said_once(reason: str):
    before = condition("DriftJobSucceeded", "True", "DriftChecked")
    wait = condition("DriftJobSucceeded", "Unknown", reason, "for a")
    assert events(before, wait) == [(reason, False)]
    assert events(wait, condition("DriftJobSucceeded", "Unknown", reason, "for b")) == []


def test_drift_is_said_again_for_another_summary_only():
    found = condition("DriftDetected", "True", "DriftPending", "Job a: 1 to update")
    noted = condition(
        "DriftDetected", "True", "DriftPending", "Job a: 1 to update; remediation Job b failed"
    )
    other = condition("DriftDetected", "True", "DriftPending", "Job c: 2 to update")
    assert events(condition("DriftDetected", "False", "NoDrift"), found) == [
        ("DriftDetected", True)
    ]
    assert events(found, noted) == []
    assert events(found, other) == [("DriftDetected", True)]
    assert events(found, condition("DriftDetected", "False", "NoDrift", "Job b")) == [
        ("DriftResolved", False)
    ]


def test_a_deletion_starts_once():
    before = condition("Deleting", "False", "NotDeleting")
    deleting = condition("Deleting", "True", "Deleting", "one")
    assert events(before, deleting) == [("DeletionStarted", False)]
    assert events(deleting, condition("Deleting", "True", "DeletionPolicyUnresolved")) == []


def test_a_deletion_that_is_held_by_protection_says_so_each_time_it_begins():
    before = condition("Deleting", "False", "NotDeleting")
    deleting = condition("Deleting", "True", "Deleting")
    held = condition("Deleting", "True", "DeletionProtected", "m")
    warning = ("DeletionProtected", True)
    assert events(before, held) == [("DeletionStarted", False), warning]
    assert events(held, condition("Deleting", "True", "DeletionProtected", "n")) == []
    assert events(held, deleting) == []
    assert events(deleting, held) == [warning]


@pytest.mark.parametrize("kind", ["InputsApplied", "Reconciling", "Paused"])
def test_these_types_never_say_anything(kind: str):
    assert events(condition(kind, "True", "A"), condition(kind, "False", "B")) == []


def test_a_status_that_is_set_back_within_a_pass_did_not_change():
    old = Condition(
        type="StateReadable", status="False", reason="StateLocked", last_transition_time=START
    )
    conditions = Conditions([old], SystemClock().now(), 1)
    conditions.set(Type.STATE_READABLE, "True", "StateRead")
    assert conditions.set(Type.STATE_READABLE, "False", "StateLocked").last_transition_time == START


def test_a_long_message_is_cut_on_a_character_boundary():
    conditions = Conditions([], START, 1)
    text = "a" * 32_767 + "é" * 4_000
    message = conditions.set(Type.READY, "False", "NotReady", text).message
    assert len(message.encode()) == 32_767


class Refusing:
    def create(self, *_, **__):
        raise Forbidden("events is forbidden")


def test_an_event_is_cut_and_its_refusal_is_nobodys_problem():
    recorder = DoorRecorder(Refusing(), SystemClock(), "captf")
    obj = TerraformCluster(
        api_version="infrastructure.cluster.x-k8s.io/v1alpha1",
        kind="TerraformCluster",
        metadata=ObjectMeta(name="prod", namespace="team-a", uid="u-1"),
        spec=TerraformClusterSpec(source=Source(image="a")),
    )
    note = Note("JobFailed", "x" * 511 + "é", Action.RUN, warning=True, job="captf-c-prod")
    recorder.record(obj, note)
    event = recorder.event(obj, note)
    assert len(event.note.encode()) == 511
    assert event.type == "Warning"
    assert event.metadata.generate_name == "prod-"
    assert event.related == ObjectReference(
        api_version="batch/v1", kind="Job", namespace="team-a", name="captf-c-prod"
    )


def test_a_merge_patch_is_the_smallest_one():
    before = {"a": 1, "b": {"c": 1, "d": 2}, "list": [1, 2], "gone": 1}
    after = {"a": 1, "b": {"c": 1, "d": 3}, "list": [1], "new": {"x": 1}}
    assert merge_patch(before, after) == {
        "b": {"d": 3},
        "list": [1],
        "gone": None,
        "new": {"x": 1},
    }
    assert merge_patch(before, before) == {}
