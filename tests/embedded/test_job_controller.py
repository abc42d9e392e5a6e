"""The Job controller: pods, counting, deadlines, suspension (local-mode.md: The Job controller)."""

from collections.abc import Iterator

import pytest

from captfctl.clock import SystemClock
from captfctl.cluster.door import Door
from captfctl.embedded.job_controller import JobController
from captfctl.embedded.job_status import TRACKING
from captfctl.model.core import Pod
from captfctl.model.resources import EVENTS, JOBS, PODS
from tests.embedded.support import NAMESPACE, conditions, create, job, new_store, running, until


@pytest.fixture
def door() -> Iterator[Door]:
    store = new_store()
    door = store.door()
    with running(JobController(door, SystemClock())):
        yield door
    store.close()


def pods(door: Door) -> list[Pod]:
    return door.list(PODS, NAMESPACE).items


def one_pod(door: Door) -> Pod:
    return until(lambda: pods(door))[0]


def end_pod(door: Door, pod: Pod, phase: str) -> None:
    door.patch(
        PODS, pod.metadata.name, NAMESPACE, {"status": {"phase": phase}}, subresource="status"
    )


def let_go(door: Door, pod: Pod) -> None:
    """What a node does when a deleted pod has ended."""
    door.delete(PODS, pod.metadata.name, NAMESPACE, grace_period_seconds=0)


def reasons(door: Door) -> list[str]:
    return [event.reason for event in door.list(EVENTS, NAMESPACE).items]


def test_a_job_gets_one_pod_named_labelled_and_owned_like_kubernetes_does(door: Door) -> None:
    made = create(door, JOBS, job("run"))
    pod = one_pod(door)
    name, _, suffix = pod.metadata.name.rpartition("-")
    assert (name, len(suffix)) == ("run", 5)
    uid = made["metadata"]["uid"]
    assert pod.metadata.labels["batch.kubernetes.io/job-name"] == "run"
    assert pod.metadata.labels["batch.kubernetes.io/controller-uid"] == uid
    owner = pod.metadata.controller
    assert owner is not None
    assert (owner.kind, owner.uid, owner.block_owner_deletion) == ("Job", uid, True)
    assert pod.metadata.finalizers == [TRACKING]
    assert pod.spec.containers[0].command == ["/bin/sh", "-c", "true"]
    until(lambda: door.get(JOBS, "run", NAMESPACE).status.active == 1)
    assert door.get(JOBS, "run", NAMESPACE).status.start_time is not None
    assert "SuccessfulCreate" in reasons(door)


def test_success_completes_the_job_and_frees_the_pod(door: Door) -> None:
    create(door, JOBS, job("run"))
    end_pod(door, one_pod(door), "Succeeded")
    until(lambda: "Complete" in conditions(door, "run"))
    assert conditions(door, "run") == {
        "SuccessCriteriaMet": "CompletionsReached",
        "Complete": "CompletionsReached",
    }
    status = door.get(JOBS, "run", NAMESPACE).status
    assert (status.succeeded, status.failed, status.active) == (1, 0, 0)
    assert status.completion_time is not None
    assert status.uncounted_terminated_pods is None
    until(lambda: one_pod(door).metadata.finalizers == [])
    assert len(pods(door)) == 1


def test_failure_fails_the_job_once_and_starts_no_second_pod(door: Door) -> None:
    create(door, JOBS, job("run"))
    end_pod(door, one_pod(door), "Failed")
    until(lambda: "Failed" in conditions(door, "run"))
    assert conditions(door, "run") == {
        "FailureTarget": "BackoffLimitExceeded",
        "Failed": "BackoffLimitExceeded",
    }
    status = door.get(JOBS, "run", NAMESPACE).status
    assert (status.succeeded, status.failed) == (0, 1)
    assert status.completion_time is None
    assert len(pods(door)) == 1
    until(lambda: "BackoffLimitExceeded" in reasons(door))


def test_the_deadline_deletes_the_pod_and_the_job_fails_when_it_is_gone(door: Door) -> None:
    create(door, JOBS, job("run", activeDeadlineSeconds=1))
    one_pod(door)
    until(lambda: "FailureTarget" in conditions(door, "run"))
    until(lambda: "Failed" in conditions(door, "run"))
    assert conditions(door, "run")["Failed"] == "DeadlineExceeded"
    assert door.get(JOBS, "run", NAMESPACE).status.failed <= 1


def test_a_job_is_not_failed_while_its_deleted_pod_still_runs(door: Door) -> None:
    create(door, JOBS, job("run"))
    pod = one_pod(door)
    bind(door, pod)
    door.delete(PODS, pod.metadata.name, NAMESPACE)
    until(lambda: "FailureTarget" in conditions(door, "run"))
    until(lambda: door.get(JOBS, "run", NAMESPACE).status.terminating == 1)
    assert "Failed" not in conditions(door, "run")
    let_go(door, pod)
    until(lambda: "Failed" in conditions(door, "run"))
    assert pods(door) == []


def bind(door: Door, pod: Pod) -> None:
    from captfctl.embedded.scheduler import Binding
    from captfctl.model.core import ObjectReference
    from captfctl.model.meta import ApiObject, ObjectMeta

    binding = Binding(
        api_version="v1",
        kind="Binding",
        metadata=ObjectMeta(name=pod.metadata.name),
        target=ObjectReference(kind="Node", name="node"),
    )
    door.create_subresource(PODS, pod.metadata.name, NAMESPACE, "binding", binding, ApiObject)


def test_suspending_stops_the_pod_without_a_failure_and_resuming_starts_another(door: Door) -> None:
    create(door, JOBS, job("run"))
    first = one_pod(door)
    door.patch(JOBS, "run", NAMESPACE, {"spec": {"suspend": True}})
    until(lambda: not pods(door))
    until(lambda: "Suspended" in conditions(door, "run"))
    assert door.get(JOBS, "run", NAMESPACE).status.start_time is None
    door.patch(JOBS, "run", NAMESPACE, {"spec": {"suspend": False}})
    second = one_pod(door)
    assert second.metadata.uid != first.metadata.uid
    until(lambda: door.get(JOBS, "run", NAMESPACE).status.active == 1)
    assert door.get(JOBS, "run", NAMESPACE).status.failed == 0


@pytest.mark.parametrize("field", ["completions", "parallelism"])
def test_a_job_of_several_pods_is_refused_clearly(door: Door, field: str) -> None:
    create(door, JOBS, job("run", **{field: 2}))
    until(lambda: "Unsupported" in conditions(door, "run"))
    message = door.get(JOBS, "run", NAMESPACE).status.conditions[0].message
    assert f"spec.{field} is 2" in message
    assert pods(door) == []
    assert reasons(door) == ["Unsupported"]


def test_pods_of_a_job_that_is_gone_are_freed(door: Door) -> None:
    create(door, JOBS, job("run"))
    pod = one_pod(door)
    from captfctl.cluster.door import Propagation

    door.delete(JOBS, "run", NAMESPACE, propagation=Propagation.BACKGROUND)
    until(lambda: one_pod(door).metadata.finalizers == [])
    assert one_pod(door).metadata.uid == pod.metadata.uid


def test_a_finished_job_goes_after_its_time_to_live(door: Door) -> None:
    create(door, JOBS, job("run", ttlSecondsAfterFinished=0))
    end_pod(door, one_pod(door), "Succeeded")
    until(lambda: door.list(JOBS, NAMESPACE).items == [] or job_is_deleting(door))


def job_is_deleting(door: Door) -> bool:
    return all(found.deleting for found in door.list(JOBS, NAMESPACE).items)


def test_an_outcome_written_down_before_a_crash_is_counted_once(door: Door) -> None:
    """The finalizer is off, the numbers are not written yet."""
    create(door, JOBS, job("run", suspend=True))
    until(lambda: "Suspended" in conditions(door, "run"))
    uncounted = {"failed": ["11111111-1111-1111-1111-111111111111"]}
    door.patch(
        JOBS,
        "run",
        NAMESPACE,
        {"status": {"uncountedTerminatedPods": uncounted}},
        subresource="status",
    )
    until(lambda: "Failed" in conditions(door, "run"))
    status = door.get(JOBS, "run", NAMESPACE).status
    assert (status.failed, status.uncounted_terminated_pods) == (1, None)
