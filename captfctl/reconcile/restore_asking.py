"""Asking for a restore from the first read to the write, and taking a request back
(state.md: Asking for a restore)."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from captfctl.cluster.door import Door, patch_as_read
from captfctl.cluster.errors import ApiError, Conflict, NotFound, Unavailable
from captfctl.model.kinds import Kind
from captfctl.reconcile.kinds import RULES
from captfctl.reconcile.restore_request import (
    AlreadyRequested,
    Proposal,
    Refused,
    Rule,
    Wish,
    check,
    patch_of,
)
from captfctl.reconcile.restore_situation import Situation


class Result(StrEnum):
    """What became of a request that was not refused."""

    REQUESTED = "requested"
    ALREADY_REQUESTED = "already-requested"
    DRY_RUN = "dry-run"
    CANCELED = "canceled"
    NOTHING_TO_CANCEL = "nothing-to-cancel"


class Talk(Protocol):
    """What a person sees and answers."""

    def show(self, now: Situation, proposal: Proposal) -> None:
        """Show what would be restored, before it is confirmed and before anything is written."""
        ...

    def confirm(self, now: Situation) -> bool | None:
        """Whether the object's name was typed. None: there is nobody to ask."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """`serial` is the one that is asked for, or was. `patch` is what was, or would be, written;
    empty when there was nothing to write. `job` is a restore that runs on after its request was
    taken back."""

    result: Result
    serial: str
    patch: dict[str, Any]
    job: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """The object, and where it is."""

    door: Door
    kind: Kind
    namespace: str
    name: str

    def look(self) -> Situation:
        """Raises `Refused` when there is no such object."""
        try:
            return Situation(self.door, self.kind, (self.namespace, self.name))
        except NotFound as problem:
            raise Refused(Rule.NOT_FOUND, problem.what, why=problem.why, do=problem.do) from None


def ask(place: Place, wish: Wish, talk: Talk, *, yes: bool, dry_run: bool) -> Outcome:
    """Raises `Refused`; nothing was written then."""
    now = place.look()
    found = check(now, wish)
    if isinstance(found, AlreadyRequested):
        return _already(found)
    talk.show(now, found)
    serial, patch = str(found.loaded.backup.serial), found.patch
    if dry_run:
        return Outcome(result=Result.DRY_RUN, serial=serial, patch=patch)
    if not yes:
        _confirm(now, talk)
    try:
        _write(place, now, patch)
    except Conflict:
        return _once_more(place, wish, found)
    return Outcome(result=Result.REQUESTED, serial=serial, patch=patch)


def _already(found: AlreadyRequested) -> Outcome:
    return Outcome(result=Result.ALREADY_REQUESTED, serial=str(found.serial), patch={})


def _confirm(now: Situation, talk: Talk) -> None:
    answer = talk.confirm(now)
    if answer is None:
        raise Refused(
            Rule.UNCONFIRMED,
            "a restore has to be confirmed, and there is no terminal to ask at",
            do="add --yes once you have read what it does; --dry-run only shows it",
        )
    if not answer:
        raise Refused(Rule.UNCONFIRMED, "not confirmed: nothing was changed")


def _once_more(place: Place, wish: Wish, before: Proposal) -> Outcome:
    """The object changed under our hands: everything is checked again, and what was confirmed is
    written if it still is the same."""
    now = place.look()
    found = check(now, wish)
    if isinstance(found, AlreadyRequested):
        return _already(found)
    serial, patch = str(found.loaded.backup.serial), found.patch
    try:
        if found.loaded == before.loaded and found.forgets == before.forgets:
            _write(place, now, patch)
            return Outcome(result=Result.REQUESTED, serial=serial, patch=patch)
    except Conflict:
        pass
    raise _changed_meanwhile(place)


def cancel(place: Place, *, dry_run: bool) -> Outcome:
    """Take back what is asked for. A restore that runs goes on. Raises `Refused`."""
    for _ in range(2):
        now = place.look()
        if not now.pending:
            return Outcome(result=Result.NOTHING_TO_CANCEL, serial="", patch={})
        patch = patch_of(None)
        if dry_run:
            return Outcome(result=Result.DRY_RUN, serial=now.pending, patch=patch)
        try:
            _write(place, now, patch)
        except Conflict:
            continue
        job = now.running_restore
        return Outcome(result=Result.CANCELED, serial=now.pending, patch=patch, job=job)
    raise _changed_meanwhile(place)


def _changed_meanwhile(place: Place) -> Refused:
    return Refused(
        Rule.NOT_WRITTEN,
        f"{place.kind.name} {place.name} was changed by somebody else at the same time",
        do="look at it again, then try again",
    )


def _write(place: Place, now: Situation, patch: dict[str, Any]) -> None:
    """Raises `Conflict` when the object is another version by now."""
    meta = now.obj.metadata
    resource = RULES[place.kind.name].resource.metadata_only()
    again = "run the same command again: it tells whether the restore is asked for"
    try:
        patch_as_read(place.door, resource, meta, patch, again=again)
    except (Conflict, Unavailable):
        raise
    except ApiError as refused:
        text = f"the server refuses the change of {place.kind.name} {meta.name}"
        raise Refused(Rule.NOT_WRITTEN, text, why=str(refused), do=refused.do) from None
