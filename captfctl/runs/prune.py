"""Which finished Jobs are kept (runs.md: Pruning)."""

from collections.abc import Iterable, Sequence

from captfctl.cluster.door import Door
from captfctl.model.core import Job
from captfctl.runs.jobs import (
    Outcome,
    attempt_of,
    created_at,
    delete_job,
    is_finished,
    operation_of,
    outcome,
)


def prunable(jobs: Iterable[Job], *, successful: int, failed: int) -> list[Job]:
    """The finished Jobs beyond the limits, per operation. Running ones are never among them.

    The newest success of each always stays, and so does a newest failure that is newer. So does the
    highest attempt: the next one's name counts on from it, and no name may be used again.
    """
    by_operation: dict[str, list[Job]] = {}
    for job in jobs:
        if is_finished(job):
            by_operation.setdefault(operation_of(job), []).append(job)
    limits = {Outcome.SUCCEEDED: max(successful, 0), Outcome.FAILED: max(failed, 0)}
    return [job for listed in by_operation.values() for job in _beyond(listed, limits)]


def _beyond(jobs: list[Job], limits: dict[Outcome, int]) -> list[Job]:
    jobs = sorted(jobs, key=lambda job: job.metadata.name)
    jobs.sort(key=created_at, reverse=True)  # stable: equal ages stay in order of name
    highest = max(map(attempt_of, jobs))  # not always the newest: times are in whole seconds
    kept = {Outcome.SUCCEEDED: 0, Outcome.FAILED: 0}
    beyond = []
    for job in jobs:
        result = outcome(job)
        first = kept[result] == 0
        indispensable = first and (result is Outcome.SUCCEEDED or not kept[Outcome.SUCCEEDED])
        stays = indispensable or attempt_of(job) == highest
        if kept[result] >= limits[result] and not stays:
            beyond.append(job)
        kept[result] += 1
    return beyond


def prune(door: Door, jobs: Sequence[Job], *, successful: int, failed: int) -> list[str]:
    """Delete the Jobs beyond the limits, and with them their pods; returns their names."""
    removed = []
    for job in prunable(jobs, successful=successful, failed=failed):
        delete_job(door, job)
        removed.append(job.metadata.name)
    return removed
