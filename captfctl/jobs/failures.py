"""Counting failures (11 §8.4). Every function takes the runs newest finish first."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from captfctl.jobs.results import FinishedRun
from captfctl.model.ops import Op


@dataclass(frozen=True, slots=True)
class Failures:
    """Failures of one op since its last success; `last` is when the newest finished."""

    count: int = 0
    last: datetime | None = None


def failures(runs: Sequence[FinishedRun], op: Op) -> Failures:
    raise NotImplementedError


def retry_number(runs: Sequence[FinishedRun], run: FinishedRun) -> int:
    """Which try of its op `run` was since the success before it; 1 is the first."""
    raise NotImplementedError


def remediation_failures(runs: Sequence[FinishedRun], last_drift_check: datetime | None) -> int:
    """Failed applies since the last successful drift check (10 §14.3.5)."""
    raise NotImplementedError
