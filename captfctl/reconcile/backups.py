"""Backing the state up, and telling which backups there are (state.md: Backups)."""

import logging
from collections.abc import Sequence

from captfctl.cluster.errors import ApiError
from captfctl.model import keys
from captfctl.model.events import EventReason
from captfctl.model.status import StateBackup
from captfctl.reconcile.context import Pass
from captfctl.terraform.books.bookkeeping import Bookkeeping
from captfctl.terraform.state.backup_store import (
    Moment,
    backup_of,
    delete_backup,
    surplus,
    take_backup,
    unmark_replaced,
)
from captfctl.terraform.state.backups import BackupSet, read_backups, requested_serial
from captfctl.terraform.state.reader import State

_SHOWN = 16

log = logging.getLogger(__name__)


def back_up(p: Pass, books: Bookkeeping, state: State) -> str:
    """Take a backup where the state has a serial that was not seen before; then delete those that
    are not kept any more.

    Tells why there is none though there should be; empty when all is well. It never fails a pass.
    """
    if not is_due(p, state):
        return ""
    try:
        backups = _take(p, books, state, read_backups(p.env.door, p.owner))
    except ApiError as problem:
        p.env.metrics.state_backup(p.kind, "skipped")
        return f"the backup of serial {state.serial} could not be written: {problem}"
    show(p, _prune(p, state, backups))
    return ""


def is_due(p: Pass, state: State) -> bool:
    """Whether the state's serial was not seen before. Where no backup is known there is none, as
    after an upgrade from a release without them."""
    status = p.obj.status
    if p.env.settings.state_backups <= 0 or p.deleting or state.serial < 1:
        return False
    return status.observed_state_serial != state.serial or not status.state_backups


def _take(
    p: Pass, books: Bookkeeping, state: State, backups: Sequence[BackupSet]
) -> Sequence[BackupSet]:
    """All sets, with the one of this state."""
    known = backup_of(backups, state)
    if known is not None:
        if known.replaced and known.serial != requested_serial(p.obj.metadata):
            unmark_replaced(p.env.door, known)
        return backups
    moment = Moment(now=p.now, job=books.finished[0].name if books.finished else "")
    taken = take_backup(p.env.door, p.owner, state, moment, backups)
    if taken is None:
        return backups
    p.env.metrics.state_backup(p.kind, "taken")
    text = (
        f"serial {taken.serial}, {taken.bytes} bytes in {taken.count} "
        f"Secret{'s' * (taken.count != 1)}, is backed up as {taken.name}; to restore it: "
        f"annotation {keys.RESTORE_STATE}={taken.serial}"
    )
    p.record(EventReason.STATE_BACKED_UP.says(text, job=moment.job))
    return [taken, *(backup for backup in backups if backup.name != taken.name)]


def _prune(p: Pass, state: State, backups: Sequence[BackupSet]) -> list[BackupSet]:
    """Delete what is not kept; the sets that are left. An error leaves the rest to the next one."""
    left = list(backups)
    pending = requested_serial(p.obj.metadata)
    keep = p.env.settings.state_backups
    for backup in surplus(backups, state, keep=keep, pending=pending):
        try:
            delete_backup(p.env.door, backup)
        except ApiError as problem:
            log.warning("%s/%s: %s is not deleted: %s", *p.obj.key, backup.name, problem)
            break
        left.remove(backup)
        p.env.metrics.state_backup(p.kind, "pruned")
    return left


def show(p: Pass, backups: Sequence[BackupSet]) -> None:
    """Tell in the status which complete sets there are."""
    p.obj.status.state_backups = [
        StateBackup(serial=backup.serial, taken_at=backup.taken_at, bytes=backup.bytes)
        for backup in backups
        if backup.complete
    ][:_SHOWN]
