"""Single leases: what is in one, when it is free, taking and giving it back (11 §10.1–§10.3).

A lease names the Job that it is for, so a crashed start takes its own lease again, and whoever
finds a lease can ask what became of its holder.
"""

import logging
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from captfctl.clock import Clock
from captfctl.cluster.door import Door
from captfctl.cluster.errors import AlreadyExists, ApiError, Conflict, NotFound
from captfctl.model import keys, names
from captfctl.model.core import Lease, LeaseSpec
from captfctl.model.meta import ObjectMeta, micro_time, parse_time
from captfctl.model.ops import Op
from captfctl.model.owner import Owner
from captfctl.model.resources import JOBS, LEASES, PODS
from captfctl.terraform.books.results import is_finished

log = logging.getLogger(__name__)

MISSING_HOLDER = timedelta(seconds=60)
_BEYOND_DEADLINE = 600 + 300  # the grace period, and time to notice
_BACKSTOP_SECONDS = 3600 + _BEYOND_DEADLINE
_ENDED = ("Succeeded", "Failed")


class LeaseKind(StrEnum):
    """The value of the label `captf.io/lease`."""

    RUN = "run"
    CLUSTER = "cluster"


@dataclass(frozen=True, slots=True)
class LeaseClaim:
    """What is asked for: the right to run `job`, whose deadline is in seconds."""

    owner: Owner
    op: Op
    job: str
    deadline: int


@dataclass(frozen=True, slots=True)
class Taken:
    """Whether a lease was acquired; else who holds it, empty when another was just faster."""

    acquired: bool
    holder: str = ""


class LeaseStore:
    """Single leases: read, take, judge, give back."""

    def __init__(self, door: Door, clock: Clock) -> None:
        self._door = door
        self._clock = clock

    def read(self, namespace: str, name: str) -> Lease | None:
        """The Lease, read live; None when there is none."""
        try:
            return self._door.get(LEASES, name, namespace)
        except NotFound:
            return None

    def run_leases(self, namespace: str, cluster: str) -> list[Lease]:
        """The run leases of everything that belongs to a Cluster, read live."""
        selector = (
            f"{keys.LEASE}={LeaseKind.RUN},{keys.MANAGED}=true,"
            f"{keys.CLUSTER_NAME}={names.label_value(cluster)}"
        )
        return self._door.list(LEASES, namespace, labels=selector).items

    def take(self, name: str, kind: LeaseKind, claim: LeaseClaim) -> Taken:
        """Acquire or refresh (11 §10.2). It always writes, so that what is read next is newer."""
        wanted = self._build(name, kind, claim)
        try:
            self._door.create(LEASES, wanted, claim.owner.namespace)
        except AlreadyExists:
            return self._take_over(wanted, claim)
        return Taken(True)

    def _take_over(self, wanted: Lease, claim: LeaseClaim) -> Taken:
        found = self.read(claim.owner.namespace, wanted.metadata.name)
        if found is None:
            return Taken(False)
        holder = found.spec.holder_identity
        if holder != claim.job:
            if not self.is_free(found):
                return Taken(False, holder)
            log.info("lease %s of %s is taken over for %s", found.key, holder, claim.job)
        wanted.metadata.resource_version = found.metadata.resource_version
        try:
            self._door.update(LEASES, wanted)
        except (Conflict, NotFound):
            return Taken(False)
        return Taken(True)

    def _build(self, name: str, kind: LeaseKind, claim: LeaseClaim) -> Lease:
        now = micro_time(self._clock.now())
        return Lease(
            api_version=LEASES.api_version,
            kind=LEASES.kind,
            metadata=ObjectMeta(
                name=name,
                namespace=claim.owner.namespace,
                labels={**claim.owner.run_labels, keys.LEASE: kind.value},
                annotations={
                    keys.LEASE_OP: claim.op.value,
                    keys.LEASE_ACQUIRED_AT: f"{now.removesuffix('Z')}000Z",
                },
            ),
            spec=LeaseSpec(
                holder_identity=claim.job,
                acquire_time=now,
                lease_duration_seconds=claim.deadline + _BEYOND_DEADLINE,
            ),
        )

    def age(self, lease: Lease) -> timedelta:
        """Since it was taken or refreshed."""
        written = lease.metadata.annotations.get(keys.LEASE_ACQUIRED_AT, "")
        taken = _moment(written) or _moment(lease.spec.acquire_time)
        taken = taken or lease.metadata.creation_timestamp or datetime.fromtimestamp(0, UTC)
        return self._clock.now() - taken

    def is_free(self, lease: Lease) -> bool:
        """Whether anybody may take it (11 §10.3).

        Age frees a lease whose holder ends too late to be believed; a holder that does not exist
        may still be about to be created for a minute.
        """
        holder, namespace = lease.spec.holder_identity, lease.metadata.namespace
        if not holder:
            return True
        age = self.age(lease)
        if age > timedelta(seconds=lease.spec.lease_duration_seconds or _BACKSTOP_SECONDS):
            return True
        try:
            job = self._door.get(JOBS, holder, namespace)
        except NotFound:
            if age <= MISSING_HOLDER:
                return False
        else:
            if not is_finished(job):
                return False
        return not self._has_running_pod(holder, namespace)

    def _has_running_pod(self, job: str, namespace: str) -> bool:
        pods = self._door.list(PODS, namespace, labels=f"{keys.JOB_NAME}={job}").items
        return any(pod.status.phase not in _ENDED for pod in pods)

    def give_back(self, namespace: str, name: str, job: str) -> None:
        """Delete the lease if `job` holds it. A failure is only logged: the backstop frees it."""
        try:
            lease = self.read(namespace, name)
            if lease is None or lease.spec.holder_identity != job:
                return
            self._door.delete(
                LEASES,
                name,
                namespace,
                uid=lease.metadata.uid,
                resource_version=lease.metadata.resource_version,
            )
        except (NotFound, Conflict):
            return
        except ApiError as error:
            log.warning("lease %s/%s was not given back: %s", namespace, name, error)


def _moment(text: str) -> datetime | None:
    return parse_time(text) if text else None


def operation_of(lease: Lease) -> Op | None:
    """The operation that the lease's annotation names."""
    try:
        return Op(lease.metadata.annotations.get(keys.LEASE_OP, ""))
    except ValueError:
        return None
