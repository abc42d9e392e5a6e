"""Asking for a restore: what there is to restore, and whether it may be asked for
(state.md: Asking for a restore).

A restore itself is made by the controller, which the annotation on the object tells of it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from captfctl.errors import RefusedByRule
from captfctl.model import keys
from captfctl.model.conditions import FALSE, Type, find
from captfctl.reconcile.restore_situation import Loaded, Situation
from captfctl.terraform.state.backups import BackupSet, newest_complete, requested_serial
from captfctl.terraform.state.contents import Contents
from captfctl.terraform.state.lock import LockHolder
from captfctl.terraform.state.reader import StateProblem, Unreadable

_SHOWN = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """Which backup; `serial` None: the newest complete one."""

    serial: int | None
    allow_lineage_change: bool = False
    replace: bool = False


class Rule(IntEnum):
    """What a restore is checked for, in the order of the checks; the numbers stay the same from
    release to release (state.md: Asking for a restore)."""

    NOT_FOUND = 2
    NO_BACKUP = 3
    DAMAGED = 4
    KEPT_BY_ANOTHER = 5
    RETAINS = 6
    DELETING = 7
    TRIED = 8
    ANOTHER_REQUEST = 9
    PAUSED = 10
    OTHER_LINEAGE = 11
    NOTHING_TO_RESTORE = 12
    UNCONFIRMED = 13
    NOT_WRITTEN = 14


class Refused(RefusedByRule):
    """The restore is not asked for, and nothing was written."""


@dataclass(frozen=True, slots=True)
class AlreadyRequested:
    """The very backup is asked for already."""

    serial: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What may be asked for. `forgets` are the resources that nothing manages any more afterwards,
    `returns` those that only the backup has; both None where there is no state to compare with."""

    loaded: Loaded
    forgets: tuple[str, ...] | None
    returns: tuple[str, ...] | None
    warnings: tuple[str, ...]

    @property
    def patch(self) -> dict[str, Any]:
        """What asking for it writes."""
        return patch_of(str(self.loaded.backup.serial))


def patch_of(value: str | None) -> dict[str, Any]:
    """The merge patch that asks for a serial; None takes the request back."""
    return {"metadata": {"annotations": {keys.RESTORE_STATE: value}}}


def check(now: Situation, wish: Wish) -> AlreadyRequested | Proposal:
    """What may be asked for. Raises `Refused` for the first check that fails."""
    backup = _chosen(now.backups, wish.serial)
    loaded = now.load(backup)
    if loaded.damage:
        raise Refused(
            Rule.DAMAGED,
            f"the backup {backup.name} is damaged",
            why=loaded.damage,
            do="choose another one of --list, or put its Secrets back from a copy of yours",
        )
    _check_object(now, backup)
    if requested_serial(now.obj.metadata) == backup.serial:
        return AlreadyRequested(backup.serial)
    _check_request(now, backup, wish)
    return Proposal(
        loaded=loaded,
        forgets=now.forgotten(loaded),
        returns=now.returned(loaded),
        warnings=tuple(_warnings(now, loaded)),
    )


def _chosen(backups: tuple[BackupSet, ...], serial: int | None) -> BackupSet:
    found = newest_complete(backups, serial)
    if found is not None:
        return found
    which = f" of serial {serial}" if serial is not None else ""
    broken = [one for one in backups if serial in (None, one.serial)]
    if broken:
        raise Refused(
            Rule.NO_BACKUP,
            f"no backup{which} is complete",
            why="; ".join(f"{one.name}: {one.defect}" for one in broken),
            do="--list shows what there is",
        )
    there = dict.fromkeys(str(one.serial) for one in backups if one.complete)
    raise Refused(
        Rule.NO_BACKUP,
        f"there is no backup{which}",
        why=f"there are complete ones of serial {', '.join(there)}" if there else "",
        do="--list shows what there is" if backups else "",
    )


def _check_object(now: Situation, backup: BackupSet) -> None:
    if now.kept_by:
        raise Refused(
            Rule.KEPT_BY_ANOTHER,
            "Secrets of this object's names were kept by an earlier object",
            why=f"they carry its UID {now.kept_by}",
            do="set spec.adoptRetainedState to take them over, or delete them; then ask again",
        )
    if now.obj.deleting and now.retains:
        raise Refused(
            Rule.RETAINS,
            "the object is being deleted with deletionPolicy Retain: its state is kept as it is",
            do="set spec.deletionPolicy to Destroy if the infrastructure is to be destroyed",
        )
    if now.obj.deleting and not now.held:
        raise Refused(
            Rule.DELETING,
            "the object is being deleted, and its state does not hold that up",
            why="the controller would ignore the request",
        )
    if now.obj.status.last_restored_serial == backup.serial:
        raise Refused(
            Rule.TRIED,
            f"serial {backup.serial} was restored or tried already, and is not tried twice",
            do="take the request back with --cancel, wait until status.lastRestoredSerial is gone, "
            "and ask again; or choose another serial",
        )


def _check_request(now: Situation, backup: BackupSet, wish: Wish) -> None:
    if now.pending and not wish.replace:
        raise Refused(
            Rule.ANOTHER_REQUEST,
            f"a restore of serial {now.pending[:_SHOWN]} is asked for already",
            do="--replace asks for this one instead, --cancel takes the other back",
        )
    if now.paused:
        why = f"no restore starts while {now.paused}"
        raise Refused(Rule.PAUSED, "the object is paused", why=why, do="end the pause first")
    if isinstance(now.live, Unreadable):
        return
    state = now.live.state
    if state.lineage != backup.lineage and not wish.allow_lineage_change:
        raise Refused(
            Rule.OTHER_LINEAGE,
            "the backup and the state are not of one history",
            why=f"the lineage of the backup is {backup.lineage}, that of the state {state.lineage}",
            do="add --allow-lineage-change if the backup is the right one all the same",
        )
    if state.digest == backup.digest:
        raise Refused(
            Rule.NOTHING_TO_RESTORE,
            "the state is this very backup: there is nothing to restore",
            do="--list shows the earlier ones",
        )


def _warnings(now: Situation, loaded: Loaded) -> Iterator[str]:
    """What a person should know, and what does not stand in the way."""
    backup, obj = loaded.backup, now.obj
    same = [one for one in now.backups if one.complete and one.serial == backup.serial]
    if len(same) > 1:
        yield f"{len(same)} complete backups have serial {backup.serial}; this is the newest"
    if obj.status.active_job is not None:
        yield f"Job {obj.status.active_job.name} runs: the restore waits for it"
    elif now.lock.holder is LockHolder.FOREIGN:
        yield now.lock.message
    for kind in _NEEDED:
        condition = find(obj.status.conditions, kind)
        if condition is not None and condition.status == FALSE:
            yield f"no Job can start yet: {kind} is False, {condition.reason}: {condition.message}"
    yield from _replaced_warnings(now)
    if isinstance(now.live, Contents):
        state = now.live.state
        if state.serial > backup.serial:
            yield (
                f"the state is at serial {state.serial} with {len(now.live.addresses)} resources, "
                f"the backup at {backup.serial} with {len(loaded.addresses)}: whatever was created "
                "after it goes on, and nothing manages it"
            )
        if now.mutable and backup.inputs_hash and backup.inputs_hash != state.inputs_hash:
            yield "the backup is of other inputs than the state: an apply follows the restore"
    if not backup.inputs_hash:
        yield (
            "the backup does not tell which inputs were applied: an apply follows the restore"
            if now.mutable
            else "the backup does not tell which inputs were applied: a machine is held after it"
        )


def _replaced_warnings(now: Situation) -> Iterator[str]:
    """What becomes of a state that was not stored, or that cannot be read."""
    kept, live = now.kept, now.live
    if kept is not None:
        yield (
            f"Job {kept.job} left a state that it could not store, {kept}. Without the restore the "
            "next run would store it; the restore puts the backup in its place, and makes a backup "
            "of it"
        )
    if isinstance(live, Unreadable) and live.problem is not StateProblem.NO_STATE:
        yield (
            "the state cannot be read, so what the restore forgets of it is not known; its Secrets "
            f"are copied as they are, and captfctl cannot restore those: {live.message}"
        )


_NEEDED = (Type.IDENTITY_ALLOWED, Type.CREDENTIALS_MIRRORED, Type.RUNNER_RBAC_READY)
