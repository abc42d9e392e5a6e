"""Why a plan is not approved."""

from enum import IntEnum

from captfctl.errors import CaptfError


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


class Refused(CaptfError):
    """The plan is not approved, and nothing was written."""

    code = "Refused"

    def __init__(self, rule: Rule, what: str, *, why: str = "", do: str = "") -> None:
        super().__init__(what, why=why, do=do)
        self.rule = rule
