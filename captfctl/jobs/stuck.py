"""Jobs whose pod cannot start (11 §7)."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from captfctl.clock import Clock
from captfctl.cluster.door import Door
from captfctl.model.core import Job
from captfctl.model.events import Note
from captfctl.model.owner import Owner
from captfctl.state.records import Records


class StuckKind(StrEnum):
    MISSING_SECRET = "missing-secret"
    CONTAINER_CONFIG = "container-config"
    IMAGE_PULL = "image-pull"


@dataclass(frozen=True, slots=True)
class Stuck:
    """What was found. `deleted`: the Job is gone and `status.activeJob` was emptied before.

    Not deleted: its image cannot be pulled and no other is left; the condition of the operation
    becomes False/`ImagePullFailed` with `message`.
    """

    kind: StuckKind
    deleted: bool
    message: str
    notes: tuple[Note, ...] = ()


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
    server is refused when it is stale, and then nothing is deleted (`Conflict`).
    `spec_image` is the image that the current spec names.
    """
    raise NotImplementedError


def is_missing_image(reason: str, message: str) -> bool:
    """Whether the registry says that the image does not exist, not that it may not be read."""
    raise NotImplementedError


def remaining_images(
    job: Job, failing: str, spec_image: str, unpullable: Sequence[str]
) -> list[str]:
    """The images still to try after `failing`, in order."""
    raise NotImplementedError
