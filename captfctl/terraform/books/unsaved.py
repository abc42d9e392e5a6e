"""What finished runs say of states that were not stored
(state.md: A state that a run could not store)."""

from dataclasses import dataclass

from captfctl.cluster.door import Door
from captfctl.model.events import EventReason, Note
from captfctl.model.ops import Op
from captfctl.model.owner import Owner
from captfctl.terraform.books.results import FinishedRun
from captfctl.terraform.books.runs import Runs
from captfctl.terraform.state.backup_store import copy_kept
from captfctl.terraform.state.records import Record, Records, mark_not_saved
from captfctl.terraform.state.unsaved import KeptState, Unsaved, delete_kept, find_kept
from runner import wire

_LEAVE_STATES = (Op.APPLY, Op.DESTROY)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsavedBooks:
    """What is not stored now. `record` is the attempt record when this changed it."""

    unsaved: Unsaved
    record: Record | None = None
    notes: tuple[Note, ...] = ()


def judge_unsaved(
    door: Door, owner: Owner, runs: Runs, records: Records, *, shown: bool
) -> UnsavedBooks:
    """Which state of the object is not stored, after what its finished runs did.

    `shown`: the cache has a Secret that keeps one. A run that was read before has told already.
    """
    ended = [run for run in runs.unread if run.op in _LEAVE_STATES and not run.ok]
    kept = find_kept(door, owner) if shown or ended else None
    stored = next((run for run in runs.unread if kept and _stored(run, kept)), None)
    if kept is not None and stored is not None:
        if stored.op is Op.RESTORE:  # one may have turned up while it ran
            copy_kept(door, owner)
        delete_kept(door, owner)
        text = f"the state of Job {kept.job}, {kept}, is {_END[stored.op is Op.RESTORE]}"
        note = EventReason.UNSAVED_STATE_STORED.says(text, job=stored.name)
        return UnsavedBooks(unsaved=Unsaved(), notes=(note,))
    if kept is not None:
        return UnsavedBooks(unsaved=Unsaved(kept=kept))
    lost = next((run for run in ended if run.result and run.result.unsaved), None)
    if lost is None:
        return UnsavedBooks(unsaved=Unsaved(lost=records.marks.state_not_saved))
    record = mark_not_saved(door, owner, lost.name)
    return UnsavedBooks(unsaved=Unsaved(lost=lost.name), record=record)


_END = {False: "stored now", True: "replaced by the restored one, and kept as a backup"}


def _stored(run: FinishedRun, kept: KeptState) -> bool:
    """Whether this run stored the kept state, or put another in its place."""
    if run.op is Op.RESTORE:
        return run.ok
    result = run.result
    if result is None:
        return False
    if run.name == kept.job:
        return result.unsaved is None and result.did_step(wire.STATE_PUSH)
    return result.did_step(wire.STATE_RECOVER)
