"""Limits on running Jobs (11 §9)."""

from collections.abc import Iterable
from dataclasses import dataclass

from captfctl.model.core import Job
from captfctl.model.ops import Op
from captfctl.model.owner import Owner
from captfctl.model.reasons import WaitReason
from captfctl.runs.reader import JobsReader
from captfctl.runs.waits import Wait
from captfctl.terraform.books.results import is_finished

_BACKGROUND_PERCENT = 80


@dataclass(frozen=True, slots=True)
class SlotLimits:
    """0 means no limit. `cluster` is `spec.maxActiveJobs` when set, else the flag's value."""

    manager: int = 200
    cluster: int = 20


def slot_wait(reader: JobsReader, owner: Owner, op: Op, limits: SlotLimits) -> Wait | None:
    """The wait for a Job slot, None when one is free. Soft by a few Jobs: nothing is locked.

    The message names no count: it would rewrite the status whenever another Job starts or ends.
    """
    if limits.manager and not _fits(len(reader.running_jobs()), limits.manager, op):
        return Wait(WaitReason.JOB_SLOT, _message("the manager", limits.manager, op))
    if limits.cluster and owner.cluster:
        jobs = reader.cluster_jobs(owner.namespace, owner.cluster)
        if not _fits(_active(jobs), limits.cluster, op):
            scope = f"Cluster {owner.cluster}"
            return Wait(WaitReason.JOB_SLOT, _message(scope, limits.cluster, op))
    return None


def _active(jobs: Iterable[Job]) -> int:
    return sum(not is_finished(job) for job in jobs)


def _fits(active: int, limit: int, op: Op) -> bool:
    if op.background:
        return active * 100 < limit * _BACKGROUND_PERCENT
    return active < limit


def _message(scope: str, limit: int, op: Op) -> str:
    text = f"{scope} is at its limit of {limit} active Jobs"
    if op.background:
        text += f"; {op} starts below {_BACKGROUND_PERCENT} % of it"
    return text
