"""`status.lastRun`: the newest finished Job, in the object's own words
(runs.md: The last run in the status)."""

from msgspec.structs import replace

from captfctl.model.conditions import cut
from captfctl.model.status import LastRun, RunError
from captfctl.terraform.books.apply_condition import failure_detail, out_of_memory
from captfctl.terraform.books.result_document import (
    SUMMARY_MAX,
    status_drift,
    status_error,
    status_steps,
)
from captfctl.terraform.books.results import FinishedRun

_IMAGE_MAX = 512
_VERSION_MAX = 64


def last_run(newest: FinishedRun | None, written: LastRun | None) -> LastRun | None:
    """What to write; None when the newest Job was read before and is shown already."""
    if newest is None or (newest.bookkept and written and written.job == newest.name):
        return None
    result = newest.result
    return LastRun(
        job=newest.name,
        operation=newest.op,
        steps=status_steps(result) if result else [],
        error=_error(newest),
        drift=status_drift(result) if result else None,
    )


def _error(run: FinishedRun) -> RunError | None:
    """What the run told, and what only its node can tell: that it was out of memory, or ended
    before it told anything."""
    told = status_error(run.result) if run.result else None
    detail = failure_detail(run) if run.failed and not run.deadline else ""
    if told is None:
        return RunError(summary=cut(detail.removeprefix(": "), SUMMARY_MAX)) if detail else None
    if out_of_memory(run):
        return replace(told, summary=cut(f"{out_of_memory(run)}\n{told.summary}", SUMMARY_MAX))
    return told


def runtime_of(newest: FinishedRun | None) -> tuple[str, str]:
    """The image and the runtime's version that the newest run reports; empty when it does not."""
    result = newest.result if newest else None
    if result is None:
        return "", ""
    return cut(result.image, _IMAGE_MAX), cut(result.runtime_version, _VERSION_MAX)
