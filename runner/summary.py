"""What the result says about a failure: a curated text of at most 512 bytes (20 §18, §13)."""

from collections.abc import Sequence

from runner import ui, wire
from runner.execute import Ended
from runner.redact import Redactor
from runner.text import cut, listed_within, without_ansi

LONGEST = 512


def of_step(
    name: str,
    ended: Ended,
    stderr: bytes,
    redactor: Redactor,
    *,
    validation: bytes = b"",
    diagnostics: Sequence[ui.Diagnostic] = (),
) -> str:
    """The error lines of a failed step; else what is known about its end.

    `validation` is the captured output of `validate`, `diagnostics` the errors of the JSON UI.
    """
    found: Sequence[ui.Diagnostic] = diagnostics
    if name == wire.VALIDATE:
        found = ui.validation_errors(validation)
    lines = [diagnostic.headline() for diagnostic in found] or _error_lines(stderr, redactor)
    if not lines:
        if ended.error:
            lines = [f"{name} {ended.error}"]
        else:
            lines = [f"{name} failed with exit code {ended.exit}; see the Job's log"]
    return cut(redactor.redact_text("\n".join(lines)), LONGEST)


def blocked(destructive: Sequence[str]) -> str:
    """What a guarded apply would have destroyed."""
    noun = "resource" if len(destructive) == 1 else "resources"
    head = f"the plan destroys {len(destructive)} {noun}: "
    return listed_within(head, destructive, LONGEST)


def plan_changed(approved: str, found: wire.Plan) -> str:
    """How the plan differs from the one approved."""
    text = (
        f"the approved plan {approved} is not the plan found now, {found.hash} "
        f"({found.counts}); nothing was applied"
    )
    return cut(text, LONGEST)


def _error_lines(stderr: bytes, redactor: Redactor) -> list[str]:
    """Lines of standard error that start with `Error: `, secrets replaced before the choice."""
    text = without_ansi(redactor.redact_cut(stderr)).decode("utf-8", "replace")
    lines = (line.rstrip("\r") for line in text.split("\n"))
    return [line for line in lines if line.startswith("Error: ")]
