"""Is the cached list of Jobs behind the server? (runs.md: A cache behind the server)"""

from collections.abc import Collection
from enum import StrEnum

from captfctl.cluster.door import Door, find
from captfctl.model.core import Job
from captfctl.model.resources import JOBS
from captfctl.model.subject import Subject
from captfctl.runs.leases import Leases


class Lag(StrEnum):
    """What the check found."""

    NONE = "none"
    LAGGING = "lagging"  # finish, look again in 5 s, change nothing
    GONE = "gone"  # `status.activeJob` names a Job that exists nowhere any more


def check_lag(
    door: Door,
    leases: Leases,
    subject: Subject,
    *,
    listed: Collection[str],
    active_job: str,
    block_move: bool,
    deleting: bool,
) -> Lag:
    """To be asked when the cache shows no active Job, before anything is taken as settled.

    `listed` are the names of the object's cached Jobs, `active_job` that in `status.activeJob`.
    An idle object costs no request.
    """
    unseen = bool(active_job) and active_job not in listed
    if unseen and find(door, JOBS, subject.namespace, active_job) is not None:
        return Lag.LAGGING
    settled = Lag.GONE if unseen else Lag.NONE
    if not (block_move or active_job or deleting):
        return settled
    lease = leases.read_run_lease(subject)
    holder = lease.spec.holder_identity if lease else ""
    if lease is None or not holder or holder in listed:
        return settled
    job = find(door, JOBS, subject.namespace, holder)
    if job is not None and _labelled(job, subject) and not leases.is_free(lease):
        return Lag.LAGGING
    return settled


def _labelled(job: Job, subject: Subject) -> bool:
    return all(job.metadata.labels.get(key) == value for key, value in subject.labels.items())
