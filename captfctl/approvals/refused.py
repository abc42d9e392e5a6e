"""Why a plan is not approved."""

from enum import IntEnum

from captfctl.errors import RefusedByRule


class Rule(IntEnum):
    """What a plan was checked for, in the order of the checks; the numbers stay the same from
    release to release (plans.md: Approving)."""

    NOT_FOUND = 2
    MALFORMED = 3
    ENDED = 4
    TARGET_GONE = 6
    TARGET_DELETING = 7
    REPLACED = 8
    POLICY = 9
    OTHER_HASH = 10
    USER_UNKNOWN = 11
    OTHER_USER = 12
    DESTRUCTIVE = 13
    UNCONFIRMED = 14
    NOT_WRITTEN = 15


class Refused(RefusedByRule):
    """The plan is not approved, and nothing was written."""


def malformed(name: str, why: str) -> Refused:
    """The plan of that name is not one that the manager makes."""
    return Refused(
        Rule.MALFORMED,
        f"TerraformPlan {name} is malformed",
        why=why,
        do="delete it: the manager makes another one if the change is still due",
    )
