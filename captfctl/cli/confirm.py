"""Asking a person before something that cannot be taken back."""

import sys

from captfctl.errors import CaptfError


class NotConfirmed(CaptfError):
    """Nobody agreed, so nothing was done."""

    code = "NotConfirmed"


def confirm(word: str, what: str, *, yes: bool) -> None:
    """Have the word typed at a terminal, unless `--yes` was given. Raises `NotConfirmed`.

    `what` says what is confirmed, as `to delete it`.
    """
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise NotConfirmed(
            "this has to be confirmed, and there is no terminal to ask at",
            do="add --yes once you have read what it does; --dry-run only shows it",
        )
    sys.stderr.write(f"Type {word} {what}: ")
    sys.stderr.flush()
    if sys.stdin.readline().strip() != word:
        raise NotConfirmed("not confirmed: nothing was changed")
