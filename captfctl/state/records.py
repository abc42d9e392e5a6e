"""The two inputs records: what the last started and the last successful apply ran (30 §16)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from captfctl.cluster.door import Door
from captfctl.model.core import Secret
from captfctl.model.owner import Owner
from captfctl.model.terraform import IdentityKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One record. `files` are the rendered inputs; `digest` is `repo@sha256:…` or empty."""

    secret: Secret
    files: Mapping[str, bytes]
    job: str
    inputs_hash: str
    image: str
    digest: str
    identity: str
    identity_kind: IdentityKind | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptMarks:
    """The marks on the attempt record."""

    may_have_applied: bool = False
    applied: bool = False
    interrupted_apply: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """Both records as read at the beginning of a pass; either may be missing."""

    attempt: Record | None = None
    applied: Record | None = None
    marks: AttemptMarks = AttemptMarks()

    def for_run(self, state_hash: str) -> Record | None:
        """The record that a destroy renders for a state with that hash (50 §10.2)."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInputs:
    """What a run rendered, as its record keeps it."""

    job: str
    files: Mapping[str, bytes]
    inputs_hash: str
    image: str
    identity: str
    identity_kind: IdentityKind | None


def read_records(door: Door, owner: Owner) -> Records:
    raise NotImplementedError


def write_attempt(door: Door, owner: Owner, inputs: RunInputs) -> None:
    """Record a started apply (40 §8.1.1). Marks of earlier attempts stay."""
    raise NotImplementedError


def promote(door: Door, owner: Owner, inputs: RunInputs, digest: str) -> Record:
    """Write the applied record of a successful apply, unless it names the Job already."""
    raise NotImplementedError


def mark_may_have_applied(door: Door, owner: Owner, job: str) -> None:
    """Mark the attempt record when it is that Job's."""
    raise NotImplementedError


def record_interrupted(door: Door, owner: Owner, job: str) -> None:
    """Record an apply whose outcome is unconfirmed, unless one is recorded already."""
    raise NotImplementedError


def mark_applied(door: Door, owner: Owner) -> None:
    """Set `captf.io/applied`; a missing record is tolerated (40 §7.6)."""
    raise NotImplementedError


def unpullable_images(records: Records, now: datetime) -> list[str]:
    """Images that could not be pulled within the last hour (11 §7)."""
    raise NotImplementedError


def record_unpullable(
    door: Door, owner: Owner, records: Records, image: str, now: datetime
) -> bool:
    """Add an image to the list; False when there is no record to write it on."""
    raise NotImplementedError


def confirm_no_resources(door: Door, owner: Owner, job: str) -> None:
    """Clear the unconfirmed apply that an operator vouched for (40 §5.4)."""
    raise NotImplementedError
