"""How an error looks on a terminal: what, where, why, what to do; never a traceback."""

import os
import sys
import traceback

from captfctl.cli.output import escaped
from captfctl.errors import CaptfError


def report(error: CaptfError) -> None:
    """Print one error to standard error."""
    lines = [f"Error: {error.what}"]
    lines += [
        f"  {label:<6}{_indented(text)}"
        for label, text in (("where", error.where), ("why", error.why), ("do", error.do))
        if text
    ]
    print(escaped("\n".join(lines), keep="\n"), file=sys.stderr)


def report_defect(error: Exception) -> None:
    """Print an error that nobody foresaw: kind and place, not its text, which may hold a secret.

    With CAPTFCTL_TRACEBACK set, everything.
    """
    if os.environ.get("CAPTFCTL_TRACEBACK"):
        traceback.print_exception(error)
        return
    last = traceback.extract_tb(error.__traceback__)[-1]
    print(
        f"Error: captfctl has a defect: {type(error).__name__} at {last.name}, line {last.lineno}\n"
        "  do    report it, with what CAPTFCTL_TRACEBACK=1 prints for the same command",
        file=sys.stderr,
    )


def _indented(text: str) -> str:
    return text.replace("\n", "\n        ")
