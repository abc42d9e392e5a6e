"""Limits on running Jobs (runs.md: Limits on running Jobs)."""

from collections.abc import Iterable
from dataclasses import dataclass

from captfctl.model.core import Job
from captfctl.model.reasons import WaitReason
from captfctl.runs.jobs import is_finished
from captfctl.runs.reader import JobsReader
from captfctl.runs.run import Run
from captfctl.runs.waits import Wait

_BACKGROUND_PERCENT = 80


@dataclass(frozen=True, slots=True)
class SlotLimits:
    """How many Jobs may run: of the manager, and of the subject's group. 0 means no limit."""

    manager: int = 200
    group: int = 20


def slot_wait(reader: JobsReader, run: Run, limits: SlotLimits) -> Wait | None:
    """The wait for a Job slot, None when one is free. Soft by a few Jobs: nothing is locked.

    The message names no count: it would rewrite the status whenever another Job starts or ends.
    """
    if limits.manager and not _fits(len(reader.running_jobs()), limits.manager, run):
        return Wait(WaitReason.JOB_SLOT, _message("the manager", limits.manager, run))
    group = run.subject.group
    if limits.group and group is not None:
        jobs = reader.group_jobs(run.subject.namespace, group.name)
        if not _fits(_active(jobs), limits.group, run):
            scope = f"Cluster {group.name}"
            return Wait(WaitReason.JOB_SLOT, _message(scope, limits.group, run))
    return None


def _active(jobs: Iterable[Job]) -> int:
    return sum(not is_finished(job) for job in jobs)


def _fits(active: int, limit: int, run: Run) -> bool:
    if run.background:
        return active * 100 < limit * _BACKGROUND_PERCENT
    return active < limit


def _message(scope: str, limit: int, run: Run) -> str:
    text = f"{scope} is at its limit of {limit} active Jobs"
    if run.background:
        text += f"; {run.operation} starts below {_BACKGROUND_PERCENT} % of it"
    return text
