"""How an error looks on a terminal: what, where, why, what to do; never a traceback."""

import sys

from captfctl.errors import CaptfError


def report(error: CaptfError) -> None:
    """Print one error to standard error."""
    lines = [f"Error: {error.what}"]
    lines += [
        f"  {label:<6}{_indented(text)}"
        for label, text in (("where", error.where), ("why", error.why), ("do", error.do))
        if text
    ]
    print("\n".join(lines), file=sys.stderr)


def _indented(text: str) -> str:
    return text.replace("\n", "\n        ")
