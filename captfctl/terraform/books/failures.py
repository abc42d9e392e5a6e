"""Counting failures (runs.md: Counting failures). Every function takes the runs newest finish
first."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from captfctl.model.ops import Op
from captfctl.terraform.books.results import FinishedRun

# A run of these renders the inputs that are wanted now; any other works with what was applied.
_OF_CURRENT_INPUTS = frozenset({Op.APPLY, Op.PLAN})


@dataclass(frozen=True, slots=True)
class Failures:
    """Counted failures of one op since its last success; `last` is when the newest ended."""

    count: int = 0
    last: datetime | None = None


@dataclass(frozen=True, slots=True)
class FailureCounts:
    """The one count of failures: decision and events read it.

    `runs` are newest finish first. `inputs_key` names the annotation on an object's Jobs that tells
    which inputs a run rendered, as the object's kind counts them: failed applies and plans of other
    inputs are not counted, since waiting out a failure of inputs that nobody wants any more would
    only keep the correction from being applied.
    """

    runs: Sequence[FinishedRun]
    inputs_key: str

    def of(self, op: Op, inputs: str = "") -> Failures:
        """Failures of the op with these inputs; where they are not known, with the newest run's.

        Interrupted, blocked and changed-plan runs are passed over.
        """
        count, last = 0, None
        for run in (run for run in self.runs if run.op is op):
            inputs = inputs or self._inputs(run)
            if run.ok or self._inputs(run) not in ("", inputs):
                break
            if run.failed:
                count += 1
                last = last or run.finished_at
        return Failures(count, last)

    def of_run(self, run: FinishedRun) -> Failures:
        """The failures that the next try of this run's op and inputs is delayed by."""
        return self.of(run.op, self._inputs(run))

    def _inputs(self, run: FinishedRun) -> str:
        """Empty, which is the same as any others, for a run that does not tell."""
        if run.op not in _OF_CURRENT_INPUTS:
            return ""
        return run.job.metadata.annotations.get(self.inputs_key, "")


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
    """Failed applies since the last successful drift check (reconcile.md: Drift remediation).
    Interrupted ones count."""
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
