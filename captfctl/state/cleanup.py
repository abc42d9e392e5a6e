"""Removing what an object's runs left behind (40 §13; 50 §11 C1, C2, R1, R2)."""

from captfctl.cluster.door import Door
from captfctl.model.owner import Owner


def delete_state(door: Door, owner: Owner) -> None:
    """Every state Secret, every backup, then the lock Lease."""
    raise NotImplementedError


def delete_records(door: Door, owner: Owner) -> None:
    """Both inputs records."""
    raise NotImplementedError


def delete_plan_key(door: Door, owner: Owner) -> None:
    raise NotImplementedError


def delete_leases(door: Door, owner: Owner) -> None:
    """Every run or cluster Lease with the object's labels, whoever holds it."""
    raise NotImplementedError


def delete_lock(door: Door, owner: Owner) -> None:
    """The state lock Lease alone, for an object whose state is retained."""
    raise NotImplementedError
