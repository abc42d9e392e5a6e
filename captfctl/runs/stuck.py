"""A Job whose pod does not run yet: what it waits for, and whether it ever can start
(runs.md: Jobs that cannot start)."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cached_property

from captfctl.cluster.door import Door, find
from captfctl.model.conditions import TRUE, cut
from captfctl.model.core import ContainerStateWaiting, ContainerStatus, Job, Pod
from captfctl.model.resources import JOBS
from captfctl.runs.jobs import created_at, delete_job, is_finished, pods_of

MISSING_PROVISION_AFTER = timedelta(seconds=60)
PATIENCE = timedelta(minutes=2)
PULL_REASONS = frozenset({"ErrImagePull", "ImagePullBackOff", "InvalidImageName"})
_CONFIG_REASONS = frozenset({"CreateContainerConfigError", "CreateContainerError"})
_MESSAGE_MAX = 256
_BEGINNING = datetime.min.replace(tzinfo=UTC)

_MISSING = re.compile(r"not found|manifest unknown|name unknown|\b404\b")
_NOT_ALLOWED = re.compile(
    r"unauthorized|denied|forbidden|authorization|too many requests|\b(?:401|403|429)\b"
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


class Starting:
    """A running Job that may not have begun, seen at one moment. Its pods are read live, once, when
    they are first needed."""

    def __init__(self, door: Door, now: datetime, job: Job) -> None:
        self._door, self._now, self._job = door, now, job

    @property
    def age(self) -> timedelta:
        """Since the Job was created."""
        return self._now - created_at(self._job)

    def lacks(self) -> str:
        """What keeps the newest pod from running, in words; empty when nothing does."""
        pod = max(self._pods, key=_created, default=None)
        if pod is None:
            return "has no pod yet"
        if pod.status.phase not in ("", "Pending"):
            return ""
        if unscheduled := _unscheduled(pod):
            return f"has no node: {unscheduled}"
        if problem := pull_problem(pod):
            return f"cannot pull {problem}"
        waiting = next((w for _, w in _waiting(pod) if w.message), None)
        if waiting is not None:
            return f"waits: {waiting.reason}: {cut(waiting.message, _MESSAGE_MAX)}"
        return "waits until its pod is set up"

    def reported_problem(self) -> str:
        """What the node says it cannot do for a pod, as soon as it says so; else empty."""
        for pod in self._pods:
            for status, waiting in _waiting(pod):
                if waiting.reason in PULL_REASONS | _CONFIG_REASONS:
                    return f"container {status.name}: {cut(told_by_node(waiting), _MESSAGE_MAX)}"
        return ""

    def unpullable(self) -> str:
        """That the image cannot be pulled and why, as soon as the node says so; else empty."""
        waiting = next((w for pod in self._pods if (w := _pulling(pod))), None)
        return self._unpullable(waiting) if waiting is not None else ""

    def cannot_begin(self) -> bool:
        """Whether no main container ever ran, and something has to change before one does."""
        if any(_began(pod) for pod in self._pods):
            return False
        hindered = bool(self.reported_problem()) or any(_unscheduled(pod) for pod in self._pods)
        return hindered or self.age >= MISSING_PROVISION_AFTER

    def stuck(self, provided: Callable[[], bool]) -> Stuck | None:
        """What keeps it from starting for longer than one waits, None when nothing is known to.

        `provided` tells whether what the pod waits for exists.
        """
        return self._missing_provision(provided) or self._container_config() or self._image_pull()

    @cached_property
    def _pods(self) -> list[Pod]:
        return pods_of(self._door, self._job)

    @property
    def _name(self) -> str:
        return self._job.metadata.name

    def _missing_provision(self, provided: Callable[[], bool]) -> Stuck | None:
        """The start crashed before it made what the pod waits for: no pod can ever run."""
        if self.age < MISSING_PROVISION_AFTER or provided():
            return None
        if any(pod.status.phase != "Pending" for pod in self._pods):
            return None
        text = f"Job {self._name} had no Secret with its inputs and could not start"
        return Stuck(StuckKind.MISSING_PROVISION, text)

    def _container_config(self) -> Stuck | None:
        """Something that the pod mounts or reads is missing or broken."""
        if self.age < PATIENCE:
            return None
        for pod in self._pods:
            created = pod.metadata.creation_timestamp
            if created is None or self._now - created < PATIENCE:
                continue
            waiting = next((w for _, w in _waiting(pod) if w.reason in _CONFIG_REASONS), None)
            if waiting is not None:
                problem = f"{waiting.reason}: {cut(waiting.message, _MESSAGE_MAX)}"
                text = f"Job {self._name} could not start: {problem}"
                return Stuck(StuckKind.CONTAINER_CONFIG, text)
        return None

    def _image_pull(self) -> Stuck | None:
        if self.age < PATIENCE:
            return None
        waiting = next((w for pod in self._pods if (w := self._pulls_long(pod))), None)
        if waiting is None:
            return None
        return Stuck(
            StuckKind.IMAGE_PULL,
            self._unpullable(waiting),
            problem=cut(f"{waiting.reason}: {waiting.message}", _MESSAGE_MAX),
            absent=is_missing_image(waiting, main_image(self._job)),
        )

    def _pulls_long(self, pod: Pod) -> ContainerStateWaiting | None:
        long = self._now - _pulling_since(pod, self._now) >= PATIENCE
        return _pulling(pod) if long else None

    def _unpullable(self, waiting: ContainerStateWaiting) -> str:
        """The same text while the node backs off: what a condition says is written when it
        changes."""
        why = cut(told_by_node(waiting), _MESSAGE_MAX)
        return f"Job {self._name}: image {main_image(self._job)} cannot be pulled: {why}"


def remove_unstarted(door: Door, job: Job, unlist: Callable[[], None]) -> bool:
    """Delete a Job that never began. False, and nothing is done, when it began or has ended: what
    was seen of it is outdated.

    `unlist` takes the Job off its subject on the server first: a Job that is named there and gone
    would count as a run that vanished.
    """
    live = find(door, JOBS, job.metadata.namespace, job.metadata.name)
    if live is None or live.metadata.uid != job.metadata.uid or is_finished(live):
        return False
    if any(_began(pod) for pod in pods_of(door, live)):
        return False
    unlist()
    delete_job(door, live, resource_version=live.metadata.resource_version)
    return True


def told_by_node(waiting: ContainerStateWaiting) -> str:
    """Why a container does not start. A node that backs off repeats the cause, which stays."""
    return waiting.message.rpartition("ErrImagePull: ")[2] or waiting.reason


def pull_problem(pod: Pod | None) -> str:
    """What the node says about an image that it could not get; empty when it did."""
    for status, waiting in _waiting(pod) if pod is not None else ():
        if waiting.reason in PULL_REASONS:
            return f"image {status.image}: {cut(f'{waiting.reason}: {waiting.message}', 512)}"
    return ""


def is_missing_image(waiting: ContainerStateWaiting, image: str) -> bool:
    """Whether the image does not exist, and not merely may not be read now.

    Registries say "does not exist or may require authorization": that is no proof. Neither is what
    the name of the image says, which messages repeat.
    """
    if waiting.reason == "InvalidImageName":
        return True
    text = waiting.message.replace(image, "").lower() if image else waiting.message.lower()
    return bool(_MISSING.search(text)) and not _NOT_ALLOWED.search(text)


def main_image(job: Job) -> str:
    """The image of the Job's first container."""
    return next((container.image for container in job.spec.template.spec.containers), "")


def _waiting(pod: Pod) -> Iterator[tuple[ContainerStatus, ContainerStateWaiting]]:
    """The containers that do not run yet, and what each waits with."""
    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        if status.state and status.state.waiting:
            yield status, status.state.waiting


def _began(pod: Pod) -> bool:
    """Whether a main container runs or ran: what comes before it changes nothing outside."""
    for status in pod.status.container_statuses:
        states = (status.state, status.last_state)
        if status.restart_count or any(s and (s.running or s.terminated) for s in states):
            return True
    return pod.status.phase not in ("", "Pending")


def _unscheduled(pod: Pod) -> str:
    """Why the pod has no node; empty when it has one, or nothing is known yet."""
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status != TRUE:
            return cut(condition.message or condition.reason, _MESSAGE_MAX)
    return ""


def _pulling(pod: Pod) -> ContainerStateWaiting | None:
    """What a main container waits with whose image cannot be had."""
    if any(c.type == "Ready" and c.status == TRUE for c in pod.status.conditions):
        return None
    for status in pod.status.container_statuses:
        waiting = status.state.waiting if status.state else None
        if waiting and waiting.reason in PULL_REASONS:
            return waiting
    return None


def _pulling_since(pod: Pod, now: datetime) -> datetime:
    """The images of the containers are pulled once the pod is initialized."""
    initialized = (
        c.last_transition_time
        for c in pod.status.conditions
        if c.type == "Initialized" and c.status == TRUE
    )
    return next(initialized, None) or pod.metadata.creation_timestamp or now


def _created(pod: Pod) -> datetime:
    return pod.metadata.creation_timestamp or _BEGINNING
