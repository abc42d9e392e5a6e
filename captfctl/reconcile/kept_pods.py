"""Pods that stay until their result was read, and when they may go
(runs.md: Pods that are kept until they are read)."""

from datetime import datetime, timedelta

from captfctl.cluster.door import Door, find
from captfctl.controller import Result
from captfctl.model import keys
from captfctl.model.core import Job, Pod
from captfctl.model.resources import JOBS, PODS
from captfctl.reconcile.kinds import RULES
from captfctl.runs.jobs import is_bookkept, kept_unread, labelled_pods, let_pod_go, pod_over

LOOK_AGAIN = 5.0
UNREAD_FOR = timedelta(hours=1)
"""For how long a deleted pod that has ended waits for a pass to read it."""

Key = tuple[str, str]


def kept_pods(door: Door, namespace: str) -> set[Key]:
    """The Jobs, by namespace and name, that have pods of the kind."""
    found = door.list(PODS, namespace, labels=f"{keys.MANAGED}={keys.TRUE}").items
    return {
        (pod.metadata.namespace, pod.metadata.labels.get(keys.JOB_NAME, ""))
        for pod in found
        if kept_unread(pod)
    }


def release_pods(door: Door, key: Key, now: datetime) -> Result:
    """Let those pods of the Job `key` go that nobody will read any more.

    None goes before it has ended: whose pod is gone has no process left, and the state lock of one
    is stale (state.md: The state lock).
    """
    namespace, name = key
    kept = [pod for pod in labelled_pods(door, namespace, name) if kept_unread(pod)]
    if not kept:
        return Result()
    job = find(door, JOBS, namespace, name)
    waiting = False
    for pod in kept:
        awaited = _awaited(door, pod, job, name) and not _overdue(pod, now)
        if pod_over(pod) and not awaited:
            let_pod_go(door, pod)
        else:
            # A pod that nobody deleted yet is looked at when its Job was read, or goes.
            waiting = waiting or job is None or pod.deleting or not awaited
    return Result(LOOK_AGAIN if waiting else 0.0)


def _awaited(door: Door, pod: Pod, job: Job | None, name: str) -> bool:
    """Whether a pass is still to read it."""
    controller = pod.metadata.controller
    namespace = pod.metadata.namespace
    if job is None:
        rules = RULES.get(pod.metadata.labels.get(keys.OWNER_KIND, ""))
        objects = door.list(rules.resource, namespace).items if rules is not None else ()
        listed = (obj.status.active_job for obj in objects)
        return any(shown is not None and shown.name == name for shown in listed)
    if is_bookkept(job) or controller is None or controller.uid != job.metadata.uid:
        return False  # a later Job of the name is started only after the earlier one was read
    owner = job.metadata.controller
    if owner is None or owner.kind not in RULES:
        return False
    found = find(door, RULES[owner.kind].resource, namespace, owner.name)
    return found is not None and found.metadata.uid == owner.uid


def _overdue(pod: Pod, now: datetime) -> bool:
    since = pod.metadata.deletion_timestamp
    return since is not None and now - since > UNREAD_FOR
