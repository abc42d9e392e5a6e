"""Which finished Jobs are kept (11 §8.5)."""

from collections.abc import Iterable, Sequence

from captfctl.cluster.door import Door, Propagation
from captfctl.cluster.errors import NotFound
from captfctl.model.core import Job
from captfctl.model.ops import Op
from captfctl.model.resources import JOBS
from captfctl.terraform.books.results import Outcome, created_at, is_finished, op_of, outcome


def prunable(jobs: Iterable[Job], *, successful: int, failed: int) -> list[Job]:
    """The finished Jobs beyond the limits, per op. Running ones are never among them.

    The newest success of an op always stays, and so does a newest failure that is newer.
    """
    by_op: dict[Op | None, list[Job]] = {}
    for job in jobs:
        if is_finished(job):
            by_op.setdefault(op_of(job), []).append(job)
    limits = {Outcome.SUCCEEDED: max(successful, 0), Outcome.FAILED: max(failed, 0)}
    return [job for listed in by_op.values() for job in _beyond(listed, limits)]


def _beyond(jobs: list[Job], limits: dict[Outcome, int]) -> list[Job]:
    jobs = sorted(jobs, key=lambda job: job.metadata.name)
    jobs.sort(key=created_at, reverse=True)  # stable: equal ages stay in order of name
    kept = {Outcome.SUCCEEDED: 0, Outcome.FAILED: 0}
    beyond = []
    for job in jobs:
        result = outcome(job)
        first = kept[result] == 0
        indispensable = first and (result is Outcome.SUCCEEDED or not kept[Outcome.SUCCEEDED])
        if kept[result] >= limits[result] and not indispensable:
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


def delete_job(door: Door, job: Job) -> None:
    """Delete exactly this Job, not a later one of the name; its pods go in the background."""
    try:
        door.delete(
            JOBS,
            job.metadata.name,
            job.metadata.namespace,
            uid=job.metadata.uid,
            propagation=Propagation.BACKGROUND,
        )
    except NotFound:
        return
