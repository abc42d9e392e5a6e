"""A restore that is asked for: which backup it is, and what became of it
(state.md: Restoring a backup)."""

from dataclasses import dataclass

from captfctl.cluster.errors import Conflict
from captfctl.model import keys
from captfctl.model.conditions import TRUE, Type
from captfctl.model.core import Job
from captfctl.model.ops import Op
from captfctl.model.reasons import RestoreJobSucceeded, WaitReason
from captfctl.model.terraform import TerraformObject
from captfctl.reconcile import backups
from captfctl.reconcile.context import DecideAgain, Pass
from captfctl.terraform.books.bookkeeping import Bookkeeping
from captfctl.terraform.books.restores import failed_once
from captfctl.terraform.state.backups import (
    BackupSet,
    Damage,
    newest_complete,
    read_backup,
    read_backups,
    requested_serial,
    serials_of,
)


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for. `backup` is the one to restore; `refused`: there is none as asked."""

    backup: BackupSet | None = None
    refused: bool = False


def consume(p: Pass, books: Bookkeeping) -> None:
    """What a restore that this pass reads means for the request: each is consumed once, whatever
    came of it, and a failed one is not repeated by itself."""
    for run in books.counted:
        if run.run.op is Op.RESTORE:
            p.env.metrics.state_restore(p.kind, "succeeded" if run.run.ok else "failed")
    restored = books.restored
    if restored is None:
        return
    if restored.ok and requested_serial(p.obj.metadata) == restored.serial:
        try:
            p.write_now(_take_away)
        except Conflict as problem:
            raise DecideAgain from problem
    p.obj.status.last_restored_serial = restored.serial
    if not restored.ok:
        p.obj.metadata.annotations[keys.RESTORE_FAILED] = str(restored.serial)


def is_asked_for(p: Pass) -> bool:
    """Whether somebody asks for a restore, of whatever."""
    return keys.RESTORE_STATE in p.obj.metadata.annotations


def outdated(p: Pass, job: Job) -> str:
    """Why a restore that has not begun should not any more; empty when it should."""
    serial = requested_serial(p.obj.metadata)
    asked = job.metadata.annotations.get(keys.RESTORE_SERIAL) == str(serial)
    return "" if asked else "its restore is not asked for any more"


def _take_away(obj: TerraformObject) -> None:
    obj.metadata.annotations.pop(keys.RESTORE_STATE, None)


def requested(p: Pass, books: Bookkeeping) -> Request:
    """The restore that is to be done now, if any. That the annotation is still there is made sure
    of when the Job is started: that writes onto the version of the object that this pass read."""
    asked = p.obj.metadata.annotations.get(keys.RESTORE_STATE)
    if asked is None:
        if books.restored is None:
            forget_request(p)
        return Request()
    serial = requested_serial(p.obj.metadata)
    _remember_failure(p, serial)
    if serial == p.obj.status.last_restored_serial and not _succeeded(p):
        return Request()
    p.obj.status.last_restored_serial = 0  # an earlier request; this one may have to wait
    if serial is None:
        return _refuse(p, f"{keys.RESTORE_STATE}={asked[:64]!r} is no serial")
    found = read_backups(p.env.door, p.owner)
    backups.show(p, found)
    backup = newest_complete(found, serial)
    if backup is None:
        return _refuse(p, _missing(found, serial))
    content = read_backup(p.env.door, p.owner, backup)
    if isinstance(content, Damage):
        return _refuse(p, f"backup {backup.name} is damaged: {content.why}")
    _drop_earlier(p)
    return Request(backup)


def _remember_failure(p: Pass, serial: int | None) -> None:
    """That the request failed is told to an object without a status, too, as after a move."""
    if p.obj.metadata.annotations.get(keys.RESTORE_FAILED) != str(serial):
        p.obj.metadata.annotations.pop(keys.RESTORE_FAILED, None)
    elif p.obj.status.last_restored_serial != serial:
        p.obj.status.last_restored_serial = serial or 0
        why = "it was tried before the object was moved, or its status lost"
        p.set(Type.RESTORE_JOB_SUCCEEDED, failed_once(why, serial or 0))


def _succeeded(p: Pass) -> bool:
    """Whether the last restore did. That took its request away: what is there is another one."""
    told = p.conditions[Type.RESTORE_JOB_SUCCEEDED]
    return told is not None and told.status == TRUE


def forget_request(p: Pass) -> None:
    """Nothing is asked for any more: the same serial may be asked for again."""
    p.obj.status.last_restored_serial = 0
    p.obj.metadata.annotations.pop(keys.RESTORE_FAILED, None)
    told = p.conditions[Type.RESTORE_JOB_SUCCEEDED]
    if told is not None and told.status != TRUE:
        p.conditions.remove(Type.RESTORE_JOB_SUCCEEDED)


def _drop_earlier(p: Pass) -> None:
    """What was said of an earlier request; a wait of this one goes on."""
    told = p.conditions[Type.RESTORE_JOB_SUCCEEDED]
    if told is not None and told.reason not in list(WaitReason):
        p.conditions.remove(Type.RESTORE_JOB_SUCCEEDED)


def _refuse(p: Pass, why: str) -> Request:
    text = f"{why}; nothing is restored"
    before = p.condition_before(Type.RESTORE_JOB_SUCCEEDED)
    if before is None or before.message != text:
        p.env.metrics.state_restore(p.kind, "not_found")
    p.conditions.set_reason(RestoreJobSucceeded.RESTORE_BACKUP_NOT_FOUND, text)
    return Request(refused=True)


def _missing(found: tuple[BackupSet, ...], serial: int) -> str:
    broken = next((backup for backup in found if backup.serial == serial), None)
    if broken is not None:
        text = f"backup {broken.name} of serial {serial} is not complete: {broken.defect}"
    else:
        text = f"there is no backup of serial {serial}"
    there = serials_of(one for one in found if one.complete)
    listed = f"serials {there}" if there else "no serial at all"
    return f"{text}; there are complete backups of {listed}"
