"""Terraform's own lock on the state, and who holds it (11 §12, 40 §6)."""

from dataclasses import dataclass
from enum import StrEnum

from captfctl.cluster.door import Door
from captfctl.model.owner import Owner

NO_LEASE = "none"


class LockHolder(StrEnum):
    FREE = "free"
    ALIVE = "alive"  # one of the object's own pods, still there
    STALE = "stale"  # one of the object's own pods, gone or finished: to be force-unlocked
    FOREIGN = "foreign"  # somebody else, or nobody can tell


@dataclass(frozen=True, slots=True, kw_only=True)
class StateLock:
    """`id`, `who`, `operation`, `created` are empty when the lock does not tell them."""

    holder: LockHolder
    id: str = ""
    who: str = ""
    operation: str = ""
    created: str = ""

    @property
    def force_unlock(self) -> str:
        """The lock ID that the next Job of any op removes; empty when none is stale."""
        return self.id if self.holder is LockHolder.STALE else ""

    @property
    def message(self) -> str:
        """For `StateReadable` False/`StateLocked`: id, holder, operation and time when known."""
        raise NotImplementedError


def read_lock(door: Door, owner: Owner) -> StateLock:
    """Read the lock live. To be asked only when no Job of the object is active."""
    raise NotImplementedError


def lock_version(door: Door, owner: Owner) -> str:
    """The lock Lease's resourceVersion, `none` without a Lease."""
    raise NotImplementedError
