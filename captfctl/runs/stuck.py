"""Jobs whose pod cannot start (runs.md: Jobs that cannot start)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cached_property

from captfctl.cluster.door import Door, find
from captfctl.model.conditions import cut
from captfctl.model.core import ContainerStateWaiting, ContainerStatus, Job, Pod
from captfctl.model.resources import JOBS
from captfctl.runs.jobs import created_at, delete_job, is_finished, pods_of

MISSING_PROVISION_AFTER = timedelta(seconds=60)
PATIENCE = timedelta(minutes=2)
PULL_REASONS = frozenset({"ErrImagePull", "ImagePullBackOff", "InvalidImageName"})
_MESSAGE_MAX = 256
_CONFIG_REASONS = frozenset({"CreateContainerConfigError", "CreateContainerError"})

_MISSING = ("not found", "manifest unknown", "name unknown", "404")
_NOT_ALLOWED = (
    "unauthorized",
    "denied",
    "forbidden",
    "401",
    "403",
    "429",
    "too many requests",
    "authorization",
)


class StuckKind(StrEnum):
    """Why the pod of a Job does not start."""

    MISSING_PROVISION = "missing-provision"
    CONTAINER_CONFIG = "container-config"
    IMAGE_PULL = "image-pull"


@dataclass(frozen=True, slots=True)
class Stuck:
    """A Job that does not start. `message` says why, in words.

    Of an image that cannot be pulled, `problem` is what the node says about it, and `absent` tells
    whether the image does not exist, rather than may not be read now.
    """

    kind: StuckKind
    message: str
    problem: str = ""
    absent: bool = False


def find_stuck(
    door: Door, now: datetime, job: Job, *, provided: Callable[[], bool]
) -> Stuck | None:
    """What keeps the running `job` from starting, None when nothing is known to.

    `provided` tells whether what the pod waits for exists; its pods are read live, when needed.
    """
    check = _Check(door, now, job)
    return _missing_provision(check, provided) or _container_config(check) or _image_pull(check)


def why_waiting(door: Door, job: Job) -> str:
    """What the node says it cannot do for a pod of the Job, as soon as it says so; empty when it
    says nothing. Pods are read live."""
    for pod in pods_of(door, job):
        for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
            waiting = status.state.waiting if status.state else None
            if waiting and waiting.reason in PULL_REASONS | _CONFIG_REASONS:
                return f"container {status.name}: {cut(told_by_node(waiting), _MESSAGE_MAX)}"
    return ""


def told_by_node(waiting: ContainerStateWaiting) -> str:
    """Why a container does not start. A node that backs off repeats the cause, which stays."""
    return waiting.message.rpartition("ErrImagePull: ")[2] or waiting.reason


def remove_unstarted(door: Door, job: Job, unlist: Callable[[], None]) -> bool:
    """Delete a Job that never started. False, and nothing is done, when it has ended: the cache is
    behind, and what it lacks is missing because it was read already.

    `unlist` takes the Job off its subject on the server first: a Job that is named there and gone
    would count as a run that vanished.
    """
    live = find(door, JOBS, job.metadata.namespace, job.metadata.name)
    if live is None or live.metadata.uid != job.metadata.uid or is_finished(live):
        return False
    unlist()
    delete_job(door, live, resource_version=live.metadata.resource_version)
    return True


@dataclass(frozen=True)
class _Check:
    """The running Job, seen at one moment; pods are read when first needed."""

    door: Door
    now: datetime
    job: Job

    @property
    def name(self) -> str:
        return self.job.metadata.name

    @property
    def age(self) -> timedelta:
        return self.now - created_at(self.job)

    @cached_property
    def pods(self) -> list[Pod]:
        return pods_of(self.door, self.job)


def _missing_provision(check: _Check, provided: Callable[[], bool]) -> Stuck | None:
    """The start crashed before it made what the pod waits for: no pod of the Job can ever run."""
    if check.age < MISSING_PROVISION_AFTER or provided():
        return None
    if any(pod.status.phase != "Pending" for pod in check.pods):
        return None
    text = f"Job {check.name} had no Secret with its inputs and could not start"
    return Stuck(StuckKind.MISSING_PROVISION, text)


def _container_config(check: _Check) -> Stuck | None:
    """Something that the pod mounts or reads is missing or broken."""
    if check.age < PATIENCE:
        return None
    for pod in check.pods:
        created = pod.metadata.creation_timestamp
        if created is None or check.now - created < PATIENCE:
            continue
        waiting = next((w for w in _waiting(pod) if w.reason in _CONFIG_REASONS), None)
        if waiting is not None:
            problem = f"{waiting.reason}: {cut(waiting.message, _MESSAGE_MAX)}"
            text = f"Job {check.name} could not start: {problem}"
            return Stuck(StuckKind.CONTAINER_CONFIG, text)
    return None


def _waiting(pod: Pod) -> Iterator[ContainerStateWaiting]:
    statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    return _states(statuses)


def _states(statuses: tuple[ContainerStatus, ...]) -> Iterator[ContainerStateWaiting]:
    for status in statuses:
        if status.state and status.state.waiting:
            yield status.state.waiting


def _image_pull(check: _Check) -> Stuck | None:
    if check.age < PATIENCE:
        return None
    waiting = next((w for pod in check.pods if (w := _pulling(pod, check.now))), None)
    if waiting is None:
        return None
    problem = cut(f"{waiting.reason}: {waiting.message}", _MESSAGE_MAX)
    return Stuck(
        StuckKind.IMAGE_PULL,
        f"Job {check.name}: image {main_image(check.job)} cannot be pulled: {problem}",
        problem=problem,
        absent=is_missing_image(waiting.reason, waiting.message),
    )


def _pulling(pod: Pod, now: datetime) -> ContainerStateWaiting | None:
    """What a container waits with, when its image was not to be had for two minutes."""
    states = _states(tuple(pod.status.container_statuses))
    waiting = next((state for state in states if state.reason in PULL_REASONS), None)
    if waiting is None or _ready(pod):
        return None
    return waiting if now - _pulling_since(pod, now) >= PATIENCE else None


def _ready(pod: Pod) -> bool:
    return any(c.type == "Ready" and c.status == "True" for c in pod.status.conditions)


def _pulling_since(pod: Pod, now: datetime) -> datetime:
    """The images of the containers are pulled once the pod is initialized."""
    initialized = (
        c.last_transition_time
        for c in pod.status.conditions
        if c.type == "Initialized" and c.status == "True"
    )
    return next(initialized, None) or pod.metadata.creation_timestamp or now


def is_missing_image(reason: str, message: str) -> bool:
    """Whether the image does not exist, and not merely may not be read now.

    Registries say "does not exist or may require authorization": that is no proof.
    """
    if reason == "InvalidImageName":
        return True
    text = message.lower()
    missing = any(mark in text for mark in _MISSING)
    return missing and not any(mark in text for mark in _NOT_ALLOWED)


def main_image(job: Job) -> str:
    """The image of the Job's first container."""
    return next((container.image for container in job.spec.template.spec.containers), "")
