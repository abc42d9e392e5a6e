"""The inputs records with their marks, each mark with the rule that sets and clears it
(state.md: Marks of the attempt record).

Marks are on the attempt record. What changes one writes only when something differs, and gives the
record as it is then, or None when the object has none.
"""

from datetime import UTC, datetime, timedelta

import msgspec

from captfctl.cluster.door import Door
from captfctl.model import keys
from captfctl.model.meta import whole_seconds
from captfctl.model.owner import Owner
from captfctl.terraform.state.record_store import (
    AttemptMarks,
    Record,
    Records,
    RunInputs,
    applied_name,
    attempt_name,
    change_marks,
    read_records,
    record_of,
    write_applied,
    write_attempt,
)

__all__ = [
    "AttemptMarks",
    "Record",
    "Records",
    "RunInputs",
    "applied_name",
    "attempt_name",
    "confirm_no_resources",
    "mark_adopted",
    "mark_applied",
    "mark_may_have_applied",
    "mark_not_saved",
    "mark_promoted",
    "mark_restored",
    "mark_saved",
    "mark_unpullable",
    "read_records",
    "record_interrupted",
    "record_of",
    "unpullable_images",
    "write_applied",
    "write_attempt",
]

UNPULLABLE_FOR = timedelta(hours=1)
UNPULLABLE_MAX = 4

_CONFIRMED: dict[str, str | None] = {keys.INTERRUPTED_APPLY: None, keys.UNCONFIRMED_APPLY: None}


def _interrupted(record: Record) -> str:
    return AttemptMarks.of(record).interrupted_apply


def _partial(record: Record) -> str:
    return AttemptMarks.of(record).partial_exports


def mark_may_have_applied(door: Door, owner: Owner, job: str) -> Record | None:
    """The failed or vanished apply may have changed resources; marked when the record is its. With
    changed exports of the cluster, a part of those may be applied."""

    def change(record: Record) -> dict[str, str | None]:
        if record.job != job:
            return {}
        wanted: dict[str, str | None] = {keys.MAY_HAVE_APPLIED: keys.TRUE}
        if record.annotation(keys.CLUSTER_OUTPUTS_HASH) and not _partial(record):
            wanted[keys.PARTIAL_CLUSTER_OUTPUTS] = job
        return wanted

    return change_marks(door, owner, change)


def record_interrupted(door: Door, owner: Owner, job: str) -> Record | None:
    """Record an apply that ended without telling (state.md: Applies that ended without telling).
    The first such Job stays recorded."""
    return change_marks(
        door, owner, lambda record: {} if _interrupted(record) else {keys.INTERRUPTED_APPLY: job}
    )


def mark_not_saved(door: Door, owner: Owner, job: str) -> Record | None:
    """The last state of this Job was neither stored nor kept
    (state.md: A state that a run could not store)."""
    return change_marks(door, owner, lambda _: {keys.STATE_NOT_SAVED: job})


def mark_saved(door: Door, owner: Owner) -> Record | None:
    """A person says that what is stored is right."""
    return change_marks(door, owner, lambda _: {keys.STATE_NOT_SAVED: None})


def mark_promoted(
    door: Door, owner: Owner, *, newest: bool, answers_interrupted: str
) -> Record | None:
    """An apply succeeded (runs.md: Records of finished applies).

    `newest`: no apply ended after it, so nothing may have been applied since.
    `answers_interrupted` is the unconfirmed Job that it was started to answer.
    """

    def change(record: Record) -> dict[str, str | None]:
        wanted: dict[str, str | None] = {
            keys.APPLIED: keys.TRUE,
            keys.FIRST_APPLY: None,
            keys.UNPULLABLE_IMAGES: None,
        }
        if newest:
            wanted[keys.MAY_HAVE_APPLIED] = None
            wanted[keys.PARTIAL_CLUSTER_OUTPUTS] = None
        if answers_interrupted and _interrupted(record) == answers_interrupted:
            wanted |= _CONFIRMED
        return wanted

    return change_marks(door, owner, change)


def mark_restored(door: Door, owner: Owner) -> Record | None:
    """A restore succeeded after the newest apply: what that left behind is settled."""
    wanted = {
        keys.APPLIED: keys.TRUE,
        keys.FIRST_APPLY: None,
        keys.MAY_HAVE_APPLIED: None,
        keys.STATE_NOT_SAVED: None,
        **_CONFIRMED,
    }
    return change_marks(door, owner, lambda _: wanted)


def mark_applied(door: Door, owner: Owner) -> Record | None:
    """A state with an inputs hash was read. Only deleting the record removes the mark."""
    return change_marks(door, owner, lambda _: {keys.APPLIED: keys.TRUE})


def mark_adopted(door: Door, owner: Owner) -> Record | None:
    """The state of an earlier object is taken over: its resources are not what a first apply left,
    to be replaced unasked."""
    return change_marks(door, owner, lambda _: {keys.FIRST_APPLY: None})


def confirm_no_resources(door: Door, owner: Owner, job: str) -> Record | None:
    """An operator vouches that this unconfirmed apply created nothing."""
    return change_marks(
        door, owner, lambda record: dict(_CONFIRMED) if _interrupted(record) == job else {}
    )


class _Unpullable(msgspec.Struct, frozen=True):
    ref: str
    at: datetime


def _decode_unpullable(text: str) -> list[_Unpullable]:
    """The list as written; an unparsable one, and one of plain names, is empty."""
    try:
        entries = msgspec.json.decode(text, type=list[_Unpullable])
    except msgspec.MsgspecError:
        return []
    return [entry for entry in entries if entry.at.tzinfo is not None]


def _listed(record: Record) -> list[_Unpullable]:
    return _decode_unpullable(record.annotation(keys.UNPULLABLE_IMAGES))


def unpullable_images(records: Records, now: datetime) -> list[str]:
    """The images that could not be pulled within the last hour
    (runs.md: Images that cannot be pulled)."""
    if records.attempt is None:
        return []
    return [entry.ref for entry in _listed(records.attempt) if now - entry.at < UNPULLABLE_FOR]


def mark_unpullable(door: Door, owner: Owner, image: str, now: datetime) -> Record | None:
    """Add an image to the list: the newest four stay, each counts for an hour."""

    def change(record: Record) -> dict[str, str | None]:
        others = [entry for entry in _listed(record) if entry.ref != image]
        entry = _Unpullable(image, whole_seconds(now.astimezone(UTC)))
        newest = sorted([*others, entry], key=lambda one: one.at, reverse=True)[:UNPULLABLE_MAX]
        return {keys.UNPULLABLE_IMAGES: msgspec.json.encode(newest).decode()}

    return change_marks(door, owner, change)
