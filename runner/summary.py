"""What the result says about a failure: a curated text of at most 512 bytes
(runner.md: The failure summary)."""

from collections.abc import Sequence

from runner import diagnostics, wire
from runner.diagnostics import Diagnostic
from runner.execute import Ended
from runner.redact import Redactor
from runner.text import cut, listed_within, without_ansi

LONGEST = 512
_PLAIN = (wire.STATE_PUSH, wire.STATE_RECOVER)
"""`state push` does not begin its own errors with "Error: "."""


def of_step(
    name: str,
    ended: Ended,
    stderr: bytes,
    redactor: Redactor,
    *,
    validation: bytes = b"",
    shown: Sequence[Diagnostic] = (),
    crash: bytes = b"",
) -> str:
    """Why a step failed, the most telling line first.

    `validation` is the captured output of `validate`, `shown` the errors of the JSON UI, `crash`
    the line that a crash of the runtime or of a provider began with.
    """
    found = diagnostics.of_validation(validation) if name == wire.VALIDATE else shown
    # A secret at the end of what was kept may have been cut off.
    found = found or diagnostics.of_text(_decoded(redactor.redact_cut(stderr)))
    lines = [_decoded(crash)] if crash else []
    lines += [item.redacted(redactor.redact_text).headline() for item in found]
    if not lines and ended.error:
        lines = [f"{name} {ended.error}"]
    elif not lines:
        said = _plain(redactor.redact_cut(stderr)) if name in _PLAIN else "see the Job's log"
        lines = [f"{name} failed with exit code {ended.exit}; {said}"]
    return cut(redactor.redact_text("\n".join(lines)), LONGEST)


def _plain(stderr: bytes) -> str:
    """The last line of what a command said that does not mark its errors."""
    lines = [line.strip() for line in _decoded(stderr).splitlines()]
    return next((line for line in reversed(lines) if line), "see the Job's log")


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


def _decoded(data: bytes) -> str:
    return without_ansi(data).decode("utf-8", "replace")
