"""Finished runs are read once (runs.md: Bookkeeping): what every subject does with them, and in
which order.

The subject reads its finished Jobs and records what they did. Then `retire` deletes what was
provided for them, `release` gives their leases back, the subject is written, and only then does
`mark` tell later passes that these Jobs were read. A pass that ends in between is repeated.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Protocol, TypeVar

from captfctl.cluster.door import Door
from captfctl.cluster.errors import ApiError, NotFound
from captfctl.model import names
from captfctl.model.core import Job
from captfctl.model.resources import JOBS, SECRETS
from captfctl.model.subject import Subject
from captfctl.runs.jobs import created_at, is_finished
from captfctl.runs.leases import Leases


class Finished(Protocol):
    """A finished Job as its subject read it."""

    @property
    def job(self) -> Job: ...

    @property
    def finished_at(self) -> datetime: ...

    @property
    def bookkept(self) -> bool:
        """Whether an earlier pass read it: then nothing of it is to be done again."""
        ...

    @property
    def pod_runs(self) -> bool:
        """Whether its pod outlives the Job, as one may that is being ended."""
        ...

    def marks(self) -> dict[str, str]:
        """The annotations that keep its outcome once its pod is not read any more."""
        ...


F = TypeVar("F", bound=Finished)


def newest_first(runs: Iterable[F]) -> list[F]:
    """By finish time, ties by name, both descending."""
    return sorted(runs, key=lambda run: (run.finished_at, run.job.metadata.name), reverse=True)


def running_job(jobs: Iterable[Job]) -> Job | None:
    """The newest unfinished Job."""
    running = (job for job in jobs if not is_finished(job))
    return max(running, key=lambda job: (created_at(job), job.metadata.name), default=None)


def retire(door: Door, runs: Sequence[F]) -> list[F]:
    """Delete the Secrets of the unread runs; the runs whose Secret went by this very call, which is
    so once per run."""
    retired = []
    for run in runs:
        if run.bookkept:
            continue
        meta = run.job.metadata
        try:
            door.delete(SECRETS, names.run_secret(meta.name), meta.namespace)
        except NotFound:
            continue
        retired.append(run)
    return retired


def release(leases: Leases, subject: Subject, runs: Sequence[Finished]) -> None:
    """Give back the leases of unread runs, also of those counted by a pass that ended too early.

    A pod that outlives its Job keeps the leases: they are free when it ends.
    """
    for run in runs:
        if not run.bookkept and not run.pod_runs:
            leases.release(subject, run.job.metadata.name)


def mark(door: Door, runs: Sequence[Finished]) -> list[str]:
    """Mark the Jobs as read, after the subject was written. Returns what failed, for the log: the
    next pass reads those Jobs again."""
    problems = []
    for run in runs:
        meta = run.job.metadata
        try:
            door.patch(JOBS, meta.name, meta.namespace, {"metadata": {"annotations": run.marks()}})
        except NotFound:
            continue
        except ApiError as error:
            problems.append(f"Job {meta.name} could not be marked as read: {error}")
    return problems
