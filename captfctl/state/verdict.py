"""What a state that cannot be read means for the object (40 §5, 10 §13)."""

from dataclasses import dataclass

from captfctl.cluster.door import Door
from captfctl.model.owner import Owner
from captfctl.state.reader import Unreadable
from captfctl.state.records import Records


@dataclass(frozen=True, slots=True)
class Verdict:
    """The `StateReadable` condition. `held`: no Job may run except a requested restore."""

    status: str
    reason: str
    message: str
    held: bool


def has_backup(door: Door, owner: Owner) -> bool:
    """Whether any backup of the state exists, complete or not."""
    raise NotImplementedError


def applied_before(door: Door, owner: Owner, records: Records, *, provisioned: bool) -> bool:
    """Whether an apply is known to have succeeded once (40 §5.2)."""
    raise NotImplementedError


def ever_applied(door: Door, owner: Owner, records: Records, *, provisioned: bool) -> bool:
    """`applied_before`, or an apply with an unconfirmed outcome is recorded."""
    raise NotImplementedError


def judge(
    door: Door,
    owner: Owner,
    unreadable: Unreadable,
    records: Records,
    *,
    provisioned: bool,
    deleting: bool,
) -> Verdict:
    """The verdict on a state that could not be read or does not exist."""
    raise NotImplementedError
