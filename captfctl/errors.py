"""The one error tree.

An error says what happened, where, why, and what to do about it, and carries a code that stays the
same from release to release. The command line prints it in that order and ends with `exit_code`
(docs/exit-codes.md).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Source:
    """Where a piece of input stands: a file and, when known, a line (1-based)."""

    file: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


class CaptfError(Exception):
    """Anything captfctl reports to a person.

    `what` is one sentence without a trailing full stop; `where` a file and line or a field path;
    `why` the cause; `do` the next step to take.
    """

    code: ClassVar[str] = "Error"
    exit_code: ClassVar[int] = 1

    def __init__(self, what: str, *, where: str = "", why: str = "", do: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.why = why
        self.do = do

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        return f"{text}: {self.why}" if self.why else text


class RefusedByRule(CaptfError):
    """A check that a command makes before it writes did not pass: nothing was written.

    `rule` is the check; its number stays the same from release to release.
    """

    code = "Refused"

    def __init__(self, rule: IntEnum, what: str, *, why: str = "", do: str = "") -> None:
        super().__init__(what, why=why, do=do)
        self.rule = rule


class InputError(CaptfError):
    """What a person wrote cannot be used: a flag, a file, an object's field."""

    code = "InvalidInput"
    exit_code = 2


class EnvironmentFault(CaptfError):
    """Something this machine should provide is missing or refuses: a binary, a port, a disk."""

    code = "Environment"
    exit_code = 3


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word that was probably meant, whatever its case; empty when none is like it."""
    import difflib  # only for the error that names it

    by_lower = {one.lower(): one for one in known}
    found = difflib.get_close_matches(word.lower(), by_lower, 1, 0.6)
    return by_lower[found[0]] if found else ""
