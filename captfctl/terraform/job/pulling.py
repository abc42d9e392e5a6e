"""Images that cannot be pulled, and what to run instead (11 §7)."""

from collections.abc import Iterable
from datetime import datetime, timedelta

import msgspec

from captfctl.model import keys
from captfctl.model.core import ContainerStateWaiting, Job, Pod
from captfctl.terraform.books.apply_condition import PULL_REASONS
from captfctl.terraform.books.result_document import source_state
from captfctl.terraform.job.build import SOURCE_CONTAINER

PATIENCE = timedelta(minutes=2)

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


def waiting_pull(pod: Pod, now: datetime) -> ContainerStateWaiting | None:
    """What the module's container waits with, when its image was not to be had for two minutes."""
    state = source_state(pod)
    waiting = state.waiting if state else None
    if waiting is None or waiting.reason not in PULL_REASONS or _ready(pod):
        return None
    return waiting if now - _pulling_since(pod, now) >= PATIENCE else None


def _ready(pod: Pod) -> bool:
    return any(c.type == "Ready" and c.status == "True" for c in pod.status.conditions)


def _pulling_since(pod: Pod, now: datetime) -> datetime:
    """The module's image is pulled once the pod is initialized."""
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


def running_image(job: Job) -> str:
    """The module's image of a Job."""
    containers = job.spec.template.spec.containers
    return next((c.image for c in containers if c.name == SOURCE_CONTAINER), "")


def remaining_images(job: Job, spec_image: str, unpullable: Iterable[str]) -> list[str]:
    """The images still to try when the Job's own does not pull, in order.

    `spec_image` is what the current spec names, or the operator's own for a destroy; may be empty.
    """
    refused = {running_image(job), *unpullable, ""}
    wanted = dict.fromkeys([*_fallbacks(job), spec_image])
    return [image for image in wanted if image not in refused]


def _fallbacks(job: Job) -> list[str]:
    text = job.metadata.annotations.get(keys.IMAGE_FALLBACKS, "")
    try:
        return msgspec.json.decode(text, type=list[str])
    except msgspec.MsgspecError:
        return []
