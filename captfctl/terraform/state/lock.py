"""Terraform's own lock on the state, and who holds it (state.md: The state lock)."""

import contextlib
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

import msgspec

from captfctl.cluster.door import Door, delete_as_read, find
from captfctl.cluster.errors import NotFound
from captfctl.model import keys, names
from captfctl.model.conditions import cut
from captfctl.model.core import Lease
from captfctl.model.owner import Owner
from captfctl.model.resources import LEASES, PODS

NO_LEASE = "none"
_BEFORE_CHANGES = ("init", "OperationTypePlan")  # what Terraform locks the state for, and reads
_TEXT_MAX = 128
_ENDED = ("Succeeded", "Failed")


class LockHolder(StrEnum):
    """Who holds a state lock."""

    FREE = "free"
    ALIVE = "alive"  # one of the object's own pods, still there
    STALE = "stale"  # one of the object's own pods, gone or finished: to be force-unlocked
    FOREIGN = "foreign"  # somebody else, or nobody can tell


class _LockInfo(msgspec.Struct, frozen=True):
    id: str = msgspec.field(name="ID", default="")
    operation: str = msgspec.field(name="Operation", default="")
    who: str = msgspec.field(name="Who", default="")
    created: str = msgspec.field(name="Created", default="")


@dataclass(frozen=True, slots=True, kw_only=True)
class StateLock:
    """`id`, `who`, `operation`, `created` are empty when the lock does not tell them. `version` is
    its Lease's as it was read: see `lock_version`."""

    holder: LockHolder
    id: str = ""
    who: str = ""
    operation: str = ""
    created: str = ""
    version: str = field(default="", compare=False)

    @property
    def in_use(self) -> bool:
        """Whether who holds it may be at work."""
        return self.holder in (LockHolder.ALIVE, LockHolder.FOREIGN)

    @property
    def force_unlock(self) -> str:
        """The lock ID that the next Job of any op removes; empty when none is stale."""
        return self.id if self.holder is LockHolder.STALE else ""

    @property
    def message(self) -> str:
        """For `StateReadable` False/`StateLocked`: what is known of the lock."""
        facts = (
            ("lock ID", self.id),
            ("holder", self.who),
            ("operation", self.operation),
            ("since", self.created),
        )
        known = ", ".join(f"{what} {cut(text, _TEXT_MAX)}" for what, text in facts if text)
        return (
            f"the state is locked by something else than this object's Jobs ({known}); "
            "unlock it with the runtime's force-unlock once its holder is gone"
        )


def find_lock(door: Door, owner: Owner) -> Lease | None:
    """The lock's Lease, read live; None when there is none."""
    return find(door, LEASES, owner.namespace, names.state_lock(owner.suffix))


def read_lock(door: Door, owner: Owner) -> StateLock:
    """Read the lock live. To be asked only when no Job of the object is active."""
    lease = find_lock(door, owner)
    if lease is None or not lease.spec.holder_identity:
        return StateLock(holder=LockHolder.FREE, version=lock_version(lease))
    info = _info(lease)
    return StateLock(
        version=lock_version(lease),
        holder=_judge(door, owner, info.who),
        id=info.id or lease.spec.holder_identity,
        who=info.who,
        operation=info.operation,
        created=info.created,
    )


def lock_version(lease: Lease | None) -> str:
    """The lock Lease's resourceVersion, `none` without a Lease."""
    return lease.metadata.resource_version if lease else NO_LEASE


@dataclass(frozen=True, slots=True, kw_only=True)
class LockTrace:
    """What the lock tells of a run that has ended. `pod` holds it, for `operation`."""

    version: str
    pod: str = ""
    operation: str = ""

    @classmethod
    def of(cls, lease: Lease | None) -> Self:
        """The trace in the lock as it was read."""
        if lease is None or not lease.spec.holder_identity:
            return cls(version=lock_version(lease))
        info = _info(lease)
        return cls(version=lock_version(lease), pod=_pod(info.who), operation=info.operation)

    def nothing_changed_by(self, job: str, version_before: str) -> bool:
        """Whether it proves that the Job's apply, which must have ended, changed nothing.

        It never took the lock, or it died with it, taken for what comes before all changes.
        """
        if version_before and version_before == self.version:
            return True
        return names.is_pod_of(job, self.pod) and self.operation in _BEFORE_CHANGES


def remove_lock(door: Door, owner: Owner, lock_id: str) -> None:
    """Delete the lock while it is this one. For a lock of a state that does not exist: Terraform
    can neither initialize nor unlock that."""
    lease = find_lock(door, owner)
    if lease is None or lock_id not in (_info(lease).id, lease.spec.holder_identity):
        return
    with contextlib.suppress(NotFound):
        delete_as_read(door, LEASES, lease)


def _info(lease: Lease) -> _LockInfo:
    text = lease.metadata.annotations.get(keys.LOCK_INFO, "")
    try:
        return msgspec.json.decode(text, type=_LockInfo)
    except msgspec.MsgspecError:
        return _LockInfo()


def _pod(who: str) -> str:
    """The host that took a lock, which is the pod for one of ours."""
    _, at, host = who.rpartition("@")
    return host if at else ""


def _judge(door: Door, owner: Owner, who: str) -> LockHolder:
    pod = _pod(who)
    if not pod or not names.owns_pod(owner.kind, owner.name, pod):
        return LockHolder.FOREIGN
    try:
        phase = door.get(PODS, pod, owner.namespace).status.phase
    except NotFound:
        return LockHolder.STALE
    return LockHolder.STALE if phase in _ENDED else LockHolder.ALIVE
