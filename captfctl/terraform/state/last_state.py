"""The state as it was seen last, so that another one in its place is noticed
(state.md: A state that is not the one we left).

It is remembered in an annotation of the object. There it outlives a cleared status and a move, and
it stays when Secrets are replaced, all of them at once included.
"""

from typing import Self

import msgspec
from msgspec.structs import replace

from captfctl.model import keys
from captfctl.model.meta import ObjectMeta
from captfctl.terraform.state.reader import State


class LastState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is remembered. `uid` is that of the object that saw it.

    `resources` is None where only the serial is known. `run` is a Job of ours that was started
    since and may write the state: it explains resources that are gone. The Job's name is there
    before the Job is.
    """

    lineage: str = ""
    serial: int = 0
    resources: int | None = None
    uid: str = ""
    run: str = ""
    restore: str = ""
    """A restore that was started since: it explains any state, and only if it succeeded."""

    @classmethod
    def of(cls, state: State, uid: str) -> Self:
        """What to remember of a state that is believed."""
        return cls(lineage=state.lineage, serial=state.serial, resources=state.resources, uid=uid)

    def __str__(self) -> str:
        return _described(self.lineage, self.serial, self.resources)


def last_state(meta: ObjectMeta, observed_serial: int = 0) -> LastState | None:
    """What the object remembers.

    `observed_serial` is what its status tells, for an object whose annotations were replaced.
    """
    text = meta.annotations.get(keys.LAST_STATE, "")
    try:
        return msgspec.json.decode(text, type=LastState)
    except msgspec.MsgspecError:
        return LastState(serial=observed_serial, uid=meta.uid) if observed_serial > 0 else None


def remember(meta: ObjectMeta, last: LastState | None) -> None:
    """Change the annotation on the object; None forgets."""
    if last is None:
        meta.annotations.pop(keys.LAST_STATE, None)
    else:
        meta.annotations[keys.LAST_STATE] = msgspec.json.encode(last).decode()


def with_restore(last: LastState | None, job: str) -> LastState | None:
    """From here on, a restore of ours may write the state."""
    return last and replace(last, restore=job)


def with_run(last: LastState | None, job: str) -> LastState | None:
    """From here on, a Job of ours may write the state."""
    return last and replace(last, run=job)


def contradiction(last: LastState | None, found: State, *, restored: str) -> str:
    """Why this cannot be the state that was left, or what became of it; empty when it can.

    `restored` is the newest restore that succeeded: what it left may be any state.
    """
    if last is None or (restored and last.restore == restored):
        return ""
    if last.lineage and found.lineage != last.lineage:
        what = "it is another state, of another lineage"
    elif found.serial < last.serial:
        what = "it is an older one"
    elif last.resources and not found.resources and not last.run:
        what = "its resources are gone, and no run of this object removed them"
    elif last.lineage and found.serial == last.serial and found.resources != last.resources:
        what = "its content was changed, which no run does without a new serial"
    else:
        return ""
    here = _described(found.lineage, found.serial, found.resources)
    return f"the state is not the one that was left: {what}. There was {last}; there is {here}"


def accepted_as(state: State) -> str:
    """What a person writes to accept this state, and no other."""
    return f"{state.lineage}/{state.serial}"


def _described(lineage: str, serial: int, resources: int | None) -> str:
    of = f"lineage {lineage}, " if lineage else ""
    how_many = "" if resources is None else f" with {resources} resource{'s' * (resources != 1)}"
    return f"{of}serial {serial}{how_many}"
