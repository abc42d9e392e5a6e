"""Jobs whose pod cannot start (11 §7)."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from captfctl.clock import Clock
from captfctl.cluster.door import Door, Propagation
from captfctl.cluster.errors import NotFound
from captfctl.model import names
from captfctl.model.conditions import cut
from captfctl.model.core import ContainerStateWaiting, Job, Pod
from captfctl.model.events import EventReason, Note
from captfctl.model.ops import Op
from captfctl.model.owner import Owner
from captfctl.model.resources import JOBS, SECRETS
from captfctl.terraform.books.results import created_at, is_finished, op_of, pods_of
from captfctl.terraform.job.pulling import (
    is_missing_image,
    remaining_images,
    running_image,
    waiting_pull,
)
from captfctl.terraform.state.records import Records, mark_unpullable, unpullable_images

MISSING_SECRET_AFTER = timedelta(seconds=60)
PATIENCE = timedelta(minutes=2)
_MESSAGE_MAX = 256
_CONFIG_REASONS = frozenset({"CreateContainerConfigError", "CreateContainerError"})
_PULL_CHECKED = frozenset({Op.DESTROY, Op.REFRESH, Op.DRIFT, Op.RESTORE})


class StuckKind(StrEnum):
    """Why a Job cannot start."""

    MISSING_SECRET = "missing-secret"
    CONTAINER_CONFIG = "container-config"
    IMAGE_PULL = "image-pull"


@dataclass(frozen=True, slots=True)
class Stuck:
    """What was found. `deleted`: the Job is gone and `status.activeJob` was emptied before.

    Not deleted: its image cannot be pulled and no other is left; the condition of the operation
    becomes False/`ImagePullFailed` with `message`. Deleted without another image, as a paused
    object's is, `failed` is set too.
    """

    kind: StuckKind
    deleted: bool
    message: str
    notes: tuple[Note, ...] = ()
    failed: bool = False


@dataclass(frozen=True, slots=True)
class _Check:
    """The active Job of one object, seen at one moment; pods are read when first needed."""

    door: Door
    owner: Owner
    job: Job
    now: datetime
    resource_version: str
    pods: Callable[[], list[Pod]]

    @property
    def age(self) -> timedelta:
        return self.now - created_at(self.job)

    def remove(self) -> bool:
        """Take the Job off `status.activeJob` on the server, then delete it.

        In this order: a Job that is named there and gone counts as an apply that vanished. False,
        and nothing is done, when the Job has ended: the cache is behind, and its Secret is missing
        because it was read already.
        """
        current = self._unfinished()
        if current is None:
            return False
        owner = self.owner
        live = self.door.get(owner.resource, owner.name, owner.namespace)
        if live.status.active_job is not None:
            self.door.patch(
                owner.resource,
                owner.name,
                owner.namespace,
                {"status": {"activeJob": None}},
                resource_version=self.resource_version,
                subresource="status",
            )
        self._delete(current)
        return True

    def _unfinished(self) -> Job | None:
        meta = self.job.metadata
        try:
            live = self.door.get(JOBS, meta.name, meta.namespace)
        except NotFound:
            return None
        return live if live.metadata.uid == meta.uid and not is_finished(live) else None

    def _delete(self, job: Job) -> None:
        """Only in the version that was looked at: it must not have ended since."""
        meta = job.metadata
        with contextlib.suppress(NotFound):
            self.door.delete(
                JOBS,
                meta.name,
                meta.namespace,
                uid=meta.uid,
                resource_version=meta.resource_version,
                propagation=Propagation.BACKGROUND,
            )

    def note(self, reason: EventReason, text: str) -> Note:
        return reason.says(text, job=self.job.metadata.name)


def check_stuck(
    door: Door,
    clock: Clock,
    owner: Owner,
    job: Job,
    *,
    resource_version: str,
    records: Records,
    spec_image: str,
    paused: bool = False,
) -> Stuck | None:
    """Check the active Job and remove it when it can never start; None when it can.

    `resource_version` is the object's, as read by this pass: emptying `status.activeJob` on the
    server is refused when it is stale, and then nothing is deleted (`Conflict`). `spec_image` is
    the image to try last; `paused`: the Job goes even without another image, it would hold a move.
    """
    check = _Check(door, owner, job, clock.now(), resource_version, _once(door, job))
    return (
        _missing_secret(check)
        or _container_config(check)
        or _image_pull(check, records, spec_image, paused=paused)
    )


def _once(door: Door, job: Job) -> Callable[[], list[Pod]]:
    found: list[list[Pod]] = []

    def read() -> list[Pod]:
        if not found:
            found.append(pods_of(door, job))
        return found[0]

    return read


def _missing_secret(check: _Check) -> Stuck | None:
    """The start crashed before it made the Secret: no pod of the Job can ever run."""
    if check.age < MISSING_SECRET_AFTER or _secret_exists(check):
        return None
    if any(pod.status.phase != "Pending" for pod in check.pods()):
        return None
    if not check.remove():
        return None
    text = f"Job {check.job.metadata.name} had no Secret with its inputs and could not start"
    note = check.note(EventReason.STUCK_JOB_DELETED, text)
    return Stuck(StuckKind.MISSING_SECRET, deleted=True, message=text, notes=(note,))


def _secret_exists(check: _Check) -> bool:
    name = names.run_secret(check.job.metadata.name)
    try:
        check.door.get(SECRETS.metadata_only(), name, check.owner.namespace)
    except NotFound:
        return False
    return True


def _container_config(check: _Check) -> Stuck | None:
    """Something that the pod mounts or reads is missing or broken."""
    if check.age < PATIENCE:
        return None
    for pod in check.pods():
        created = pod.metadata.creation_timestamp
        if created is None or check.now - created < PATIENCE:
            continue
        waiting = next((w for w in _waiting(pod) if w.reason in _CONFIG_REASONS), None)
        if waiting is None:
            continue
        if not check.remove():
            return None
        text = (
            f"Job {check.job.metadata.name} could not start: {waiting.reason}: "
            f"{cut(waiting.message, _MESSAGE_MAX)}"
        )
        note = check.note(EventReason.STUCK_JOB_DELETED, text)
        return Stuck(StuckKind.CONTAINER_CONFIG, deleted=True, message=text, notes=(note,))
    return None


def _waiting(pod: Pod) -> Iterator[ContainerStateWaiting]:
    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        if status.state and status.state.waiting:
            yield status.state.waiting


def _image_pull(check: _Check, records: Records, spec_image: str, *, paused: bool) -> Stuck | None:
    """An apply or plan is never touched: it must run the image that the spec names."""
    if op_of(check.job) not in _PULL_CHECKED or check.age < PATIENCE:
        return None
    waiting = next((w for pod in check.pods() if (w := waiting_pull(pod, check.now))), None)
    if waiting is None:
        return None
    image = running_image(check.job)
    problem = cut(f"{waiting.reason}: {waiting.message}", _MESSAGE_MAX)
    listed = unpullable_images(records, check.now)
    left = remaining_images(check.job, spec_image, listed)
    if left and is_missing_image(waiting.reason, waiting.message) and _list(check, image):
        return _fall_back(check, image, problem, left[0])
    message = f"Job {check.job.metadata.name}: image {image} cannot be pulled: {problem}"
    removed = paused and check.remove()
    return Stuck(StuckKind.IMAGE_PULL, deleted=removed, message=message, failed=True)


def _list(check: _Check, image: str) -> bool:
    """Whether the image could be listed as one not to try again for a while."""
    return mark_unpullable(check.door, check.owner, image, check.now) is not None


def _fall_back(check: _Check, image: str, problem: str, next_image: str) -> Stuck | None:
    if not check.remove():
        return None
    text = (
        f"image {image} cannot be pulled ({problem}): Job {check.job.metadata.name} is deleted, "
        f"the next one runs {next_image}"
    )
    note = check.note(EventReason.IMAGE_PULL_FALLBACK, text)
    return Stuck(StuckKind.IMAGE_PULL, deleted=True, message=text, notes=(note,))
