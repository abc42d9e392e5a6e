"""What a Job and its pods say of a run: is it over, how did it end, when."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from enum import StrEnum

from captfctl.cluster.door import Door, Propagation, find
from captfctl.cluster.errors import Conflict, NotFound
from captfctl.model import keys
from captfctl.model.core import Job, JobCondition, Pod
from captfctl.model.resources import JOBS, PODS
from captfctl.model.subject import Subject

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ATTEMPT = re.compile(r"[0-9]{1,10}")
_DEADLINE = "DeadlineExceeded"
_ENDED = ("Succeeded", "Failed")


class Outcome(StrEnum):
    """How a Job stands."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


def outcome(job: Job) -> Outcome:
    if _condition(job, "Complete"):
        return Outcome.SUCCEEDED
    return Outcome.FAILED if _condition(job, "Failed") else Outcome.RUNNING


def is_finished(job: Job) -> bool:
    return outcome(job) is not Outcome.RUNNING


def is_bookkept(job: Job) -> bool:
    """Whether a pass has read it and has written what it did to the object."""
    return job.metadata.annotations.get(keys.BOOKKEPT) == keys.TRUE


def deadline_exceeded(job: Job) -> bool:
    """Whether Kubernetes ended the Job at its own deadline."""
    failed = _condition(job, "Failed")
    return failed is not None and failed.reason == _DEADLINE and not _condition(job, "Complete")


def operation_of(job: Job) -> str:
    """The operation in the Job's label; empty when it has none."""
    return job.metadata.labels.get(keys.OP, "")


def attempt_of(job: Job) -> int:
    """The attempt in the Job's label; 0 when it does not parse."""
    text = job.metadata.labels.get(keys.ATTEMPT, "")
    return int(text) if _ATTEMPT.fullmatch(text) else 0


def next_attempt(jobs: Iterable[Job], operation: str) -> int:
    """One more than the highest attempt among the subject's Jobs of the operation
    (runs.md: Names of Jobs).

    Give the list from before pruning: the name of a Job that existed must not be used again.
    """
    attempts = (attempt_of(job) for job in jobs if operation_of(job) == operation)
    return 1 + max(attempts, default=0)


def created_at(job: Job) -> datetime:
    return job.metadata.creation_timestamp or _EPOCH


def finish_time(job: Job) -> datetime:
    """When it completed or failed; for a Job without that time, when it was created."""
    condition = _condition(job, "Complete") or _condition(job, "Failed")
    at = condition.last_transition_time if condition else None
    return at or job.status.completion_time or created_at(job)


def newest_pod(door: Door, job: Job) -> Pod | None:
    """The Job's newest pod, read live."""
    return max(pods_of(door, job), key=_pod_age, default=None)


def newest_labelled_pod(door: Door, subject: Subject, job: str) -> Pod | None:
    """The newest pod of the subject's Job of that name, which is gone itself; read live."""
    pods = labelled_pods(door, subject.namespace, job)
    return max((pod for pod in pods if _made_by(pod, subject, job)), key=_pod_age, default=None)


def pods_of(door: Door, job: Job) -> list[Pod]:
    """The Job's own pods, read live: a pod that only carries the label is not one."""
    return [
        pod
        for pod in labelled_pods(door, job.metadata.namespace, job.metadata.name)
        if _controlled(pod, job)
    ]


def labelled_pods(door: Door, namespace: str, job: str) -> list[Pod]:
    """Every pod with the label of the Job of that name, read live."""
    return door.list(PODS, namespace, labels=f"{keys.JOB_NAME}={job}").items


def pod_ended(pod: Pod) -> bool:
    return pod.status.phase in _ENDED


def pod_over(pod: Pod) -> bool:
    """Whether nothing of it runs, or ever will: it ended, or was deleted before it had a node."""
    return pod_ended(pod) or (pod.deleting and not pod.spec.node_name)


def all_pods_over(door: Door, namespace: str, job: str) -> bool:
    """Whether nothing of the Job of that name runs, or ever will, also if the Job is gone."""
    return all(pod_over(pod) for pod in labelled_pods(door, namespace, job))


def kept_unread(pod: Pod) -> bool:
    """Whether it stays until its result was read, also when it is deleted
    (runs.md: Pods that are kept until they are read)."""
    return keys.UNREAD_RESULT in pod.metadata.finalizers


def let_pod_go(door: Door, pod: Pod) -> None:
    """Take our finalizer off. A pod that is gone, or free already, is no error."""
    meta = pod.metadata
    while kept_unread(pod):
        rest = [name for name in pod.metadata.finalizers if name != keys.UNREAD_RESULT]
        try:
            door.patch(
                PODS,
                meta.name,
                meta.namespace,
                {"metadata": {"finalizers": rest or None}},
                resource_version=pod.metadata.resource_version,
            )
        except NotFound:
            return
        except Conflict:
            live = find(door, PODS, meta.namespace, meta.name)
            if live is None or live.metadata.uid != meta.uid:
                return
            pod = live
        else:
            return


def delete_job(door: Door, job: Job, *, resource_version: str = "") -> None:
    """Delete exactly this Job, not a later one of the name; its pods go in the background.

    With `resource_version`, only as it was when it was looked at. A Job that is gone is no error.
    """
    meta = job.metadata
    try:
        door.delete(
            JOBS,
            meta.name,
            meta.namespace,
            uid=meta.uid,
            resource_version=resource_version,
            propagation=Propagation.BACKGROUND,
        )
    except NotFound:
        return


def _condition(job: Job, kind: str) -> JobCondition | None:
    return next((c for c in job.status.conditions if c.type == kind and c.status == "True"), None)


def _controlled(pod: Pod, job: Job) -> bool:
    controller = pod.metadata.controller
    return controller is not None and controller.uid == job.metadata.uid


def _made_by(pod: Pod, subject: Subject, job: str) -> bool:
    controller = pod.metadata.controller
    ours = all(pod.metadata.labels.get(key) == value for key, value in subject.labels.items())
    return ours and controller is not None and controller.name == job


def _pod_age(pod: Pod) -> tuple[datetime, str]:
    return pod.metadata.creation_timestamp or _EPOCH, pod.metadata.name
