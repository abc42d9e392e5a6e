"""Single leases: what is in one, when it is free, taking and giving it back
(leases.md: When a lease is free).

A lease names the Job that it is for, so a crashed start takes its own lease again, and any
manager that finds a lease can ask what became of its holder.
"""

import logging
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from captfctl.clock import Clock
from captfctl.cluster.door import Door, delete_as_read, find
from captfctl.cluster.errors import AlreadyExists, ApiError, Conflict, NotFound
from captfctl.model import keys, names
from captfctl.model.core import Lease, LeaseSpec
from captfctl.model.meta import ObjectMeta, micro_time, parse_time
from captfctl.model.resources import JOBS, LEASES
from captfctl.runs.jobs import is_finished, labelled_pods, pod_ended
from captfctl.runs.run import Run

log = logging.getLogger(__name__)

MISSING_HOLDER = timedelta(seconds=60)
_BEYOND_DEADLINE = 600 + 300  # the grace period, and time to notice
_BACKSTOP_SECONDS = 3600 + _BEYOND_DEADLINE


class LeaseKind(StrEnum):
    """The value of the label `captf.io/lease`."""

    RUN = "run"
    CLUSTER = "cluster"


@dataclass(frozen=True, slots=True)
class Taken:
    """Whether a lease was acquired; else who holds it, empty when another was just faster.

    `ending`: the holder's Job is gone, and only its pod is still to go. `to_refresh`: what to write
    to have it, since it names the Job already.
    """

    acquired: bool
    holder: str = ""
    ending: bool = False
    to_refresh: Lease | None = None


class LeaseStore:
    """Single leases: read, take, judge, give back."""

    def __init__(self, door: Door, clock: Clock) -> None:
        self._door = door
        self._clock = clock

    def read(self, namespace: str, name: str) -> Lease | None:
        return find(self._door, LEASES, namespace, name)

    def run_leases(self, namespace: str, group: str) -> list[Lease]:
        """The run leases of all members of a group, read live."""
        selector = (
            f"{keys.LEASE}={LeaseKind.RUN},{keys.MANAGED}=true,"
            f"{keys.CLUSTER_NAME}={names.label_value(group)}"
        )
        return self._door.list(LEASES, namespace, labels=selector).items

    def take(self, name: str, kind: LeaseKind, run: Run) -> Taken:
        """Acquire it, and write, so that what is read next is newer. One that names the Job already
        is only found: `refresh` writes it (leases.md: Taking a lease)."""
        wanted = self._build(name, kind, run)
        try:
            self._door.create(LEASES, wanted, run.subject.namespace)
        except AlreadyExists:
            return self._take_over(wanted, run)
        return Taken(True)

    def _take_over(self, wanted: Lease, run: Run) -> Taken:
        found = self.read(run.subject.namespace, wanted.metadata.name)
        if found is None:
            return Taken(False)
        holder = found.spec.holder_identity
        if holder == run.name:
            # Another manager may rely on it, and be about to create the Job.
            wanted.metadata.annotations[keys.LEASE_SHARED] = keys.TRUE
            wanted.metadata.resource_version = found.metadata.resource_version
            return Taken(True, to_refresh=wanted)
        if not self.is_free(found):
            return Taken(False, holder, ending=_job_removed(found))
        log.info("lease %s of %s is taken over for %s", found.key, holder, run.name)
        wanted.metadata.resource_version = found.metadata.resource_version
        return Taken(self.refresh(wanted))

    def refresh(self, lease: Lease) -> bool:
        """Write a lease in the version that was read; False: somebody else did."""
        try:
            self._door.update(LEASES, lease)
        except (Conflict, NotFound):
            return False
        return True

    def _build(self, name: str, kind: LeaseKind, run: Run) -> Lease:
        now = micro_time(self._clock.now())
        return Lease(
            api_version=LEASES.api_version,
            kind=LEASES.kind,
            metadata=ObjectMeta(
                name=name,
                namespace=run.subject.namespace,
                labels={**run.subject.run_labels, keys.LEASE: kind.value},
                annotations={
                    keys.LEASE_OP: run.operation,
                    keys.LEASE_ACQUIRED_AT: f"{now.removesuffix('Z')}000Z",
                },
            ),
            spec=LeaseSpec(
                holder_identity=run.name,
                acquire_time=now,
                lease_duration_seconds=run.deadline_seconds + _BEYOND_DEADLINE,
            ),
        )

    def age(self, lease: Lease) -> timedelta:
        """Since it was taken or refreshed."""
        written = lease.metadata.annotations.get(keys.LEASE_ACQUIRED_AT, "")
        taken = _moment(written) or _moment(lease.spec.acquire_time)
        taken = taken or lease.metadata.creation_timestamp or datetime.fromtimestamp(0, UTC)
        return self._clock.now() - taken

    def is_free(self, lease: Lease) -> bool:
        """Whether anybody may take it.

        Age frees a lease whose holder ends too late to be believed; a holder that does not exist
        may still be about to be created for a minute.
        """
        holder, namespace = lease.spec.holder_identity, lease.metadata.namespace
        if not holder:
            return True
        age = self.age(lease)
        if age > timedelta(seconds=lease.spec.lease_duration_seconds or _BACKSTOP_SECONDS):
            return True
        job = find(self._door, JOBS, namespace, holder)
        if job is None and not _job_removed(lease) and age <= MISSING_HOLDER:
            return False
        if job is not None and not is_finished(job):
            return False
        return all(pod_ended(pod) for pod in labelled_pods(self._door, namespace, holder))

    def job_removed(self, namespace: str, name: str, job: str) -> None:
        """Note on the lease that its holder `job` is not about to be created. A failure is only
        logged: a missing holder frees it."""
        try:
            lease = self.read(namespace, name)
            if lease is not None and lease.spec.holder_identity == job:
                lease.metadata.annotations[keys.LEASE_JOB_REMOVED] = keys.TRUE
                self._door.update(LEASES, lease)
        except (NotFound, Conflict):
            return
        except ApiError as error:
            log.warning("lease %s/%s is held for a while yet: %s", namespace, name, error)

    def give_back(self, namespace: str, name: str, job: str) -> None:
        """Delete the lease if `job`, which has ended, holds it. A failure is only logged: the
        backstop frees it."""
        self._delete(namespace, name, job, shared=True)

    def give_up(self, namespace: str, name: str, job: str) -> None:
        """Delete the lease if `job`, which is not created, holds it, and nobody else took it for
        the same Job meanwhile. A failure is only logged: a missing holder frees it."""
        self._delete(namespace, name, job, shared=False)

    def _delete(self, namespace: str, name: str, job: str, *, shared: bool) -> None:
        try:
            lease = self.read(namespace, name)
            if lease is None or lease.spec.holder_identity != job:
                return
            if shared or keys.LEASE_SHARED not in lease.metadata.annotations:
                delete_as_read(self._door, LEASES, lease)
        except (NotFound, Conflict):
            return
        except ApiError as error:
            log.warning("lease %s/%s was not given back: %s", namespace, name, error)


def _job_removed(lease: Lease) -> bool:
    return keys.LEASE_JOB_REMOVED in lease.metadata.annotations


def _moment(text: str) -> datetime | None:
    return parse_time(text) if text else None


def leased_operation(lease: Lease) -> str:
    """The operation that the lease is held for; empty when it does not tell."""
    return lease.metadata.annotations.get(keys.LEASE_OP, "")
