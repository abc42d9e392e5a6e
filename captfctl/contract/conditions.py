"""A condition as the contract derives it, before it meets the object's own ones."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ConditionValue:
    """Status, reason and message for one condition type. An empty message stands for the reason."""

    status: str
    reason: str
    message: str = ""
