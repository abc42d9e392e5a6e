"""What it means for the object that its state cannot be read (state.md: Verdicts on a state)."""

from dataclasses import dataclass

from captfctl.cluster.door import Door
from captfctl.model import keys, names
from captfctl.model.owner import Owner
from captfctl.model.reasons import StateReadable
from captfctl.model.resources import SECRETS
from captfctl.terraform.state.backups import backup_selector, read_backups, serials_of
from captfctl.terraform.state.last_state import LastState, accepted_as
from captfctl.terraform.state.lock import LockTrace, find_lock
from captfctl.terraform.state.reader import (
    DECOMPRESSED_MAX,
    State,
    StateProblem,
    Unreadable,
    in_mib,
)
from captfctl.terraform.state.records import Record, Records
from captfctl.terraform.state.unsaved import find_kept


@dataclass(frozen=True, slots=True)
class Verdict:
    """The `StateReadable` condition. `held`: no Job may run except a requested restore."""

    reason: StateReadable
    message: str
    held: bool = False

    @property
    def status(self) -> str:
        return self.reason.status


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


def changed_nothing(door: Door, owner: Owner, attempt: Record) -> bool:
    """Whether it is proven that the recorded apply, of which no pod is left, changed nothing
    (state.md: Applies that ended without telling)."""
    trace = LockTrace.of(find_lock(door, owner))
    return trace.nothing_changed_by(attempt.job, attempt.annotation(keys.STATE_LOCK_VERSION))


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """What tells of earlier applies besides the Secrets of the state.

    `last` is the state that the object remembers.
    """

    records: Records
    provisioned: bool
    last: LastState | None = None


def applied_before(door: Door, owner: Owner, signs: Signs) -> bool:
    """Whether an apply is known to have succeeded once, or to have left resources."""
    records = signs.records
    return (
        signs.provisioned
        or records.marks.applied
        or records.applied is not None
        or (records.attempt is not None and bool(records.attempt.digest))
        or _had_resources(owner, signs)
        or has_backup(door, owner)
    )


def _had_resources(owner: Owner, signs: Signs) -> bool:
    """What another object remembers counts where its records came along, as in a move. An object
    that was destroyed and is created again from what `kubectl get -o yaml` told has none."""
    last, records = signs.last, signs.records
    if last is None or not last.resources:
        return False
    return last.uid == owner.uid or not (records.attempt is None and records.applied is None)


def ever_applied(door: Door, owner: Owner, signs: Signs) -> bool:
    """`applied_before`, or an apply is recorded whose outcome is unconfirmed, or whose state is not
    stored."""
    marks = signs.records.marks
    if marks.interrupted_apply or marks.state_not_saved:
        return True
    return applied_before(door, owner, signs) or find_kept(door, owner) is not None


def judge(
    door: Door, owner: Owner, unreadable: Unreadable, signs: Signs, *, deleting: bool
) -> Verdict:
    """The verdict on a state that could not be read or does not exist.

    Nothing that was ever applied may be followed by a plain apply: it would create everything a
    second time.
    """
    if unreadable.problem is StateProblem.TOO_LARGE:
        return _too_large(unreadable, deleting=deleting)
    if unreadable.problem is not StateProblem.NO_STATE:
        text = f"{unreadable.message}. {_way_back(door, owner)}"
        return _held(_REASONS[unreadable.problem], text, deleting=deleting)
    if applied_before(door, owner, signs):
        was = f": {signs.last} was there" if signs.last else ""
        text = f"the object was applied before and its state is gone{was}. {_way_back(door, owner)}"
        return _held(StateReadable.STATE_LOST, text, deleting=deleting)
    interrupted = signs.records.marks.interrupted_apply
    if interrupted:
        text = _unknown(interrupted)
        return _held(StateReadable.APPLY_OUTCOME_UNKNOWN, text, deleting=deleting)
    return Verdict(StateReadable.STATE_NOT_FOUND, "there is no state yet")


def replaced(door: Door, owner: Owner, found: State, why: str, *, deleting: bool) -> Verdict:
    """The verdict on a state that can be read and is not the one that was left."""
    accept = f"{keys.ACCEPT_STATE}={accepted_as(found)}"
    text = (
        f"{why}. Nothing is applied or destroyed with it. {_way_back(door, owner)}; or, if what is "
        f"there now is right, accept it with the annotation {accept}"
    )
    return _held(StateReadable.STATE_REPLACED, text, deleting=deleting)


def _too_large(unreadable: Unreadable, *, deleting: bool) -> Verdict:
    """Terraform can work with it, so what the deletion waits for is not kept from running."""
    text = unreadable.message
    if deleting:
        return Verdict(StateReadable.STATE_TOO_LARGE, f"{text}; it is destroyed all the same")
    text = (
        f"{text}, so its outputs cannot be read and no apply or check runs. Make it smaller with "
        "`terraform state rm` from a workstation, after moving resources to another module; "
        "deleting the object destroys all of it"
    )
    return Verdict(StateReadable.STATE_TOO_LARGE, text, held=True)


def large(state: State) -> str:
    """What to say of a state that can still be read."""
    return (
        f"the state has {in_mib(state.unpacked)} when decompressed; over "
        f"{in_mib(DECOMPRESSED_MAX)} it cannot be read, and only a destroy runs then. Move "
        "resources to another module, or keep large values out of attributes and outputs"
    )


def _way_back(door: Door, owner: Owner) -> str:
    """A restore is advised only where there is something to restore."""
    good = (b for b in read_backups(door, owner) if b.complete and not b.replaced)
    serials = serials_of(good)
    copy = f"ut Secret {names.state_secret(owner.suffix)} back from a copy of yours"
    if not serials:
        return f"P{copy}"
    return (
        f"Restore a backup with the annotation {keys.RESTORE_STATE}=<serial>, newest first: "
        f"{serials}; or p{copy}"
    )


def _held(reason: StateReadable, message: str, *, deleting: bool) -> Verdict:
    if deleting:
        message += (
            "; the deletion is held until then: to let it go without a destroy, and keep what "
            "exists, set spec.deletionPolicy to Retain"
        )
    return Verdict(reason, message, held=True)


def _unknown(job: str) -> str:
    return (
        f"the apply Job {job} ended without telling what it created, and there is no state. Look "
        f"at what exists: if it created nothing, say so with the annotation "
        f"{keys.CONFIRM_NO_RESOURCES}={job}; else delete the object with spec.deletionPolicy "
        "Retain, which keeps what exists"
    )
