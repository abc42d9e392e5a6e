"""What it means for the object that its state cannot be read (state.md: Verdicts on a state)."""

from dataclasses import dataclass

from captfctl.cluster.door import Door
from captfctl.model import keys
from captfctl.model.owner import Owner
from captfctl.model.reasons import StateReadable
from captfctl.model.resources import SECRETS
from captfctl.terraform.state.cleanup import backup_selector
from captfctl.terraform.state.reader import StateProblem, Unreadable
from captfctl.terraform.state.records import Records


@dataclass(frozen=True, slots=True)
class Verdict:
    """The `StateReadable` condition. `held`: no Job may run except a requested restore."""

    reason: StateReadable
    message: str

    @property
    def status(self) -> str:
        return self.reason.status

    @property
    def held(self) -> bool:
        return self.reason.bad


_REASONS = {
    StateProblem.ENCRYPTED: StateReadable.STATE_ENCRYPTED,
    StateProblem.INCONSISTENT: StateReadable.STATE_INCONSISTENT,
    StateProblem.CORRUPT: StateReadable.STATE_CORRUPT,
    StateProblem.UNSUPPORTED_VERSION: StateReadable.STATE_CORRUPT,
}


def has_backup(door: Door, owner: Owner) -> bool:
    """Whether any backup of the state exists, complete or not."""
    page = door.list(
        SECRETS.metadata_only(), owner.namespace, labels=backup_selector(owner), limit=1
    )
    return bool(page.items)


def applied_before(door: Door, owner: Owner, records: Records, *, provisioned: bool) -> bool:
    """Whether an apply is known to have succeeded once."""
    return (
        provisioned
        or records.marks.applied
        or records.applied is not None
        or (records.attempt is not None and bool(records.attempt.digest))
        or has_backup(door, owner)
    )


def ever_applied(door: Door, owner: Owner, records: Records, *, provisioned: bool) -> bool:
    """`applied_before`, or an apply with an unconfirmed outcome is recorded."""
    return bool(records.marks.interrupted_apply) or applied_before(
        door, owner, records, provisioned=provisioned
    )


def judge(
    door: Door,
    owner: Owner,
    unreadable: Unreadable,
    records: Records,
    *,
    provisioned: bool,
    deleting: bool,
) -> Verdict:
    """The verdict on a state that could not be read or does not exist.

    Nothing that was ever applied may be followed by a plain apply: it would create everything a
    second time.
    """
    if unreadable.problem is not StateProblem.NO_STATE:
        return _held(_REASONS[unreadable.problem], unreadable.message, deleting=deleting)
    if applied_before(door, owner, records, provisioned=provisioned):
        return _held(
            StateReadable.STATE_LOST,
            "the object was applied before and its state is gone",
            deleting=deleting,
        )
    if records.marks.interrupted_apply:
        return _held(
            StateReadable.APPLY_OUTCOME_UNKNOWN,
            _unknown(records.marks.interrupted_apply),
            deleting=deleting,
        )
    return Verdict(StateReadable.STATE_NOT_FOUND, "there is no state yet")


def _held(reason: StateReadable, message: str, *, deleting: bool) -> Verdict:
    if deleting:
        message += (
            f"; the deletion is held: restore a backup with the annotation {keys.RESTORE_STATE}, "
            "or keep what exists with spec.deletionPolicy Retain"
        )
    return Verdict(reason, message)


def _unknown(job: str) -> str:
    return (
        f"the apply Job {job} ended without telling what it created, and there is no state; "
        f"restore a backup ({keys.RESTORE_STATE}=<serial>), or state that it created nothing "
        f"({keys.CONFIRM_NO_RESOURCES}={job}), or delete the object with deletionPolicy Retain"
    )
