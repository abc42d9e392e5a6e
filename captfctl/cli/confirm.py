"""Asking a person before something that cannot be taken back."""

import sys

from captfctl.errors import CaptfError


class NotConfirmed(CaptfError):
    """Nobody agreed, so nothing was done."""

    code = "NotConfirmed"


def has_terminal() -> bool:
    """Whether there is somebody to ask, who sees the question."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def answer_to(question: str) -> str | None:
    """What is typed at the terminal; None where there is none."""
    if not has_terminal():
        return None
    sys.stderr.write(question)
    sys.stderr.flush()
    return sys.stdin.readline().strip()


def confirm(word: str, what: str, *, yes: bool) -> None:
    """Have the word typed at a terminal, unless `--yes` was given. Raises `NotConfirmed`.

    `what` says what is confirmed, as `to delete it`.
    """
    if yes:
        return
    answer = answer_to(f"Type {word} {what}: ")
    if answer is None:
        raise NotConfirmed(
            "this has to be confirmed, and there is no terminal to ask at",
            do="add --yes once you have read what it does; --dry-run only shows it",
        )
    if answer != word:
        raise NotConfirmed("not confirmed: nothing was changed")
