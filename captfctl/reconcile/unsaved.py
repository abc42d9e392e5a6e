"""What a state that was not stored means for the object
(state.md: A state that a run could not store)."""

from dataclasses import replace

from captfctl.cluster.errors import Conflict
from captfctl.model import keys
from captfctl.model.conditions import ConditionValue, Type
from captfctl.model.events import EventReason
from captfctl.model.reasons import StateReadable
from captfctl.model.terraform import TerraformObject
from captfctl.reconcile.context import DecideAgain, Pass
from captfctl.reconcile.known import Known, StateView
from captfctl.terraform.state.backup_store import copy_kept
from captfctl.terraform.state.last_state import LastState, accepted_as, remember
from captfctl.terraform.state.reader import State, StateProblem, Unreadable
from captfctl.terraform.state.records import confirm_no_resources, mark_saved, read_records
from captfctl.terraform.state.unsaved import Unsaved, delete_kept


def report(p: Pass, unsaved: Unsaved, found: State | Unreadable) -> StateView:
    """Set `StateReadable`. A kept state holds nothing: whatever runs next stores it first."""
    value = _verdict(unsaved, found)
    if p.deleting and unsaved.kept is None:
        text = "; the deletion is held until then, or until spec.deletionPolicy is Retain"
        value = replace(value, message=value.message + text)
    p.set(Type.STATE_READABLE, value)
    return StateView(found if isinstance(found, State) else None, held=unsaved.kept is None)


def _verdict(unsaved: Unsaved, found: State | Unreadable) -> ConditionValue:
    way = _way_out(unsaved, found)
    kept = unsaved.kept
    if kept is not None:
        return StateReadable.STATE_NOT_SAVED.says(
            f"Job {kept.job} could not store the state that it left, {kept}. It is kept in "
            f"{len(kept.secrets)} Secrets, {kept.secrets[0]} first; the next run stores it before "
            f"anything else. To give it up, {way}"
        )
    return StateReadable.UNSAVED_STATE_LOST.says(
        f"Job {unsaved.lost} changed resources and could neither store nor keep the state that it "
        "left. Nothing is applied or destroyed with what is stored. Look at what exists, and bring "
        f"the state in line with it; then {way}"
    )


def _way_out(unsaved: Unsaved, found: State | Unreadable) -> str:
    if isinstance(found, State):
        return f"accept what is stored with the annotation {keys.ACCEPT_STATE}={accepted_as(found)}"
    if found.problem is StateProblem.NO_STATE:
        confirm = f"{keys.CONFIRM_NO_RESOURCES}={unsaved.job}"
        return f"if nothing of it exists any more, say so with the annotation {confirm}"
    return f"put a readable state in its place: {found.message}"


def given_up(p: Pass, known: Known, found: State | Unreadable) -> Known:
    """Use up a person's word that what is stored is right as it is."""
    unsaved = known.books.unsaved
    if not unsaved or not _is_given_up(p, unsaved, found):
        return known
    p.confirm()  # the word may have been taken back, and what is given up is gone
    if isinstance(found, State):
        copy_kept(p.env.door, p.owner)
    delete_kept(p.env.door, p.owner)
    mark_saved(p.env.door, p.owner)
    if not isinstance(found, State):
        confirm_no_resources(p.env.door, p.owner, unsaved.job)
    try:
        p.write_now(lambda obj: _use_up(obj, found, p.owner.uid))
    except Conflict as problem:
        raise DecideAgain from problem
    text = f"the state that Job {unsaved.job} left and that was not stored is given up"
    p.record(EventReason.STATE_ACCEPTED.says(text))
    books = replace(known.books, unsaved=Unsaved())
    return replace(known, books=books, records=read_records(p.env.door, p.owner))


def _is_given_up(p: Pass, unsaved: Unsaved, found: State | Unreadable) -> bool:
    said = p.obj.metadata.annotations
    if isinstance(found, State):
        return said.get(keys.ACCEPT_STATE, "").strip() == accepted_as(found)
    nothing = found.problem is StateProblem.NO_STATE
    return nothing and said.get(keys.CONFIRM_NO_RESOURCES, "").strip() == unsaved.job


def _use_up(obj: TerraformObject, found: State | Unreadable, uid: str) -> None:
    if isinstance(found, State):
        obj.metadata.annotations.pop(keys.ACCEPT_STATE, None)
        remember(obj.metadata, LastState.of(found, uid))
    else:
        obj.metadata.annotations.pop(keys.CONFIRM_NO_RESOURCES, None)
