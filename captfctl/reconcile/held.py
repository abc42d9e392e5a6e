"""Whether the deletion of an object would wait because of its state, asked from outside of a pass
(deletion.md: When a deletion waits)."""

from captfctl.cluster.door import Door
from captfctl.model.conditions import FALSE, Type, find
from captfctl.model.owner import Owner
from captfctl.model.reasons import StateReadable
from captfctl.model.terraform import TerraformObject
from captfctl.terraform.state.contents import Contents
from captfctl.terraform.state.last_state import last_state
from captfctl.terraform.state.reader import Unreadable
from captfctl.terraform.state.records import read_records
from captfctl.terraform.state.unsaved import KeptState
from captfctl.terraform.state.verdict import Signs, judge

_THOUGH_READ = (StateReadable.STATE_REPLACED, StateReadable.UNSAVED_STATE_LOST)


def held_by_state(
    door: Door,
    obj: TerraformObject,
    owner: Owner,
    found: Contents | Unreadable,
    kept: KeptState | None,
) -> str:
    """Why a deletion would be held: reason and message; empty when it would not.

    A kept state holds nothing: the destroy stores it first. That a state which can be read is
    another one than was left, the last pass has told.
    """
    if kept is not None:
        return ""
    if isinstance(found, Contents):
        told = find(obj.status.conditions, Type.STATE_READABLE)
        if told is None or told.status != FALSE or told.reason not in _THOUGH_READ:
            return ""
        return f"{told.reason}: {told.message}"
    latch, records = obj.status.initialization, read_records(door, owner)
    lost = records.marks.state_not_saved
    if lost:
        text = f"Job {lost} changed resources and could neither store nor keep its state"
        return f"{StateReadable.UNSAVED_STATE_LOST}: {text}"
    signs = Signs(
        records=records,
        provisioned=latch is not None and latch.provisioned,
        last=last_state(obj.metadata, obj.status.observed_state_serial),
    )
    verdict = judge(door, owner, found, signs, deleting=True)
    return f"{verdict.reason}: {verdict.message}" if verdict.held else ""
