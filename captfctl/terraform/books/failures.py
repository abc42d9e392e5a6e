"""Counting failures (11 §8.4). Every function takes the runs newest finish first."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from captfctl.model import keys
from captfctl.model.ops import Op
from captfctl.terraform.books.results import FinishedRun


@dataclass(frozen=True, slots=True)
class Failures:
    """Counted failures of one op since its last success; `last` is when the newest ended."""

    count: int = 0
    last: datetime | None = None


def failures(runs: Sequence[FinishedRun], op: Op) -> Failures:
    """Interrupted, blocked and changed-plan runs are passed over."""
    count, last = 0, None
    for run in runs:
        if run.op is not op:
            continue
        if run.ok:
            break
        if run.failed:
            count += 1
            last = last or run.finished_at
    return Failures(count, last)


def failures_of_inputs(runs: Sequence[FinishedRun], op: Op, inputs_hash: str) -> Failures:
    """Failures of runs that rendered these inputs: changed inputs are tried at once.

    Waiting out a failure of inputs that nobody wants any more would only keep the correction from
    being applied. An empty hash, or a run that does not tell its own, counts as the same inputs.
    """
    same = []
    for run in runs:
        rendered = run.job.metadata.annotations.get(keys.INPUTS_HASH, "")
        if run.op is op and inputs_hash and rendered not in ("", inputs_hash):
            break
        same.append(run)
    return failures(same, op)


def retry_number(runs: Sequence[FinishedRun], run: FinishedRun) -> int:
    """Which try this run was since its op's previous success, from 1. Interrupted ones count."""
    older = [r for r in runs[_index(runs, run) + 1 :] if r.op is run.op]
    tries = 1
    for other in older:
        if other.ok:
            break
        tries += not other.stopped
    return tries


def _index(runs: Sequence[FinishedRun], run: FinishedRun) -> int:
    return next(index for index, other in enumerate(runs) if other.name == run.name)


def remediation_failures(runs: Sequence[FinishedRun], last_drift_check: datetime | None) -> int:
    """Failed applies since the last successful drift check (10 §14.3.5). Interrupted ones count."""
    if last_drift_check is None:
        return 0
    count = 0
    for run in runs:
        if run.op is not Op.APPLY:
            continue
        if run.ok or run.finished_at <= last_drift_check:
            break
        count += not run.stopped
    return count
