"""Asking a person before something that cannot be taken back."""

import sys
from typing import TextIO

from captfctl.errors import CaptfError


class NotConfirmed(CaptfError):
    """Nobody agreed, so nothing was done."""

    code = "NotConfirmed"


def has_terminal(shown: TextIO) -> bool:
    """Whether there is somebody to ask, who sees the question and what it is about, which goes to
    `shown`."""
    return all(stream.isatty() for stream in (sys.stdin, sys.stderr, shown))


def answer_to(question: str, shown: TextIO) -> str | None:
    """What is typed at the terminal; None where there is none."""
    if not has_terminal(shown):
        return None
    sys.stderr.write(question)
    sys.stderr.flush()
    return sys.stdin.readline().strip()


def confirm(word: str, what: str, *, yes: bool) -> None:
    """Have the word typed at a terminal, unless `--yes` was given. Raises `NotConfirmed`.

    `what` says what is confirmed, as `to delete it`; standard output shows what that would do.
    """
    if yes:
        return
    answer = answer_to(f"Type {word} {what}: ", sys.stdout)
    if answer is None:
        raise NotConfirmed(
            "this has to be confirmed, and there is no terminal that shows it and asks",
            do="add --yes once you have read what it does; --dry-run only shows it",
        )
    if answer != word:
        raise NotConfirmed("not confirmed: nothing was changed")
