"""Who may run: run lease, freshness, and the operation gate (11 §10.4–§10.6).

The gate keeps a cluster's changes and its machines' apart. Both sides write their own lease before
they read the other's, so at least one sees the other. Jobs are looked at besides leases, because a
module could have tampered with a Lease.
"""

from collections.abc import Iterable

from captfctl.clock import Clock
from captfctl.cluster.door import Door
from captfctl.cluster.errors import ApiError
from captfctl.model import keys, names
from captfctl.model.core import Job, Lease
from captfctl.model.owner import Owner
from captfctl.model.reasons import WaitReason
from captfctl.runs.lease_store import LeaseClaim, LeaseKind, LeaseStore, Taken, operation_of
from captfctl.runs.reader import JobsReader
from captfctl.runs.waits import Wait
from captfctl.terraform.books.results import is_finished, op_of

__all__ = ["LeaseClaim", "Leases"]

FRESH_SECONDS = 30
_NAMED = 5
_CLUSTER = "TerraformCluster"


class Leases:
    """Taking and giving back all that one run needs. `gate`: `--cluster-operation-gate`."""

    def __init__(self, door: Door, jobs: JobsReader, clock: Clock, *, gate: bool = True) -> None:
        self._store = LeaseStore(door, clock)
        self._jobs = jobs
        self._clock = clock
        self._gate = gate

    def acquire(self, claim: LeaseClaim) -> Wait | None:
        """Take the run lease and pass the gate; None: taken.

        An error of the gate gives everything back and is raised.
        """
        taken = self._store.take(claim.owner.run_lease, LeaseKind.RUN, claim)
        if not taken.acquired:
            return _wait_for(taken, f"the run lease of {claim.owner.kind} {claim.owner.name}")
        if not (self._gate and claim.op.mutating and claim.owner.cluster):
            return None
        try:
            if claim.owner.kind == _CLUSTER:
                return self._cluster_gate(claim)
            return self._machine_gate(claim)
        except ApiError:
            self.release(claim.owner, claim.job)
            raise

    def _cluster_gate(self, claim: LeaseClaim) -> Wait | None:
        owner = claim.owner
        taken = self._store.take(_cluster_lease(owner), LeaseKind.CLUSTER, claim)
        if not taken.acquired:
            self._store.give_back(owner.namespace, owner.run_lease, claim.job)
            return _wait_for(taken, f"the write lease of Cluster {owner.cluster}")
        running = self._machine_operations(owner)
        if not running:
            return None
        # Both leases stay: operations that would start now queue behind this one.
        return Wait(WaitReason.MACHINE_OPERATIONS, _running_message(running))

    def _machine_operations(self, owner: Owner) -> list[str]:
        """Names of the Jobs of machine and pool operations that exclude the cluster's."""
        leases = self._store.run_leases(owner.namespace, owner.cluster)
        held = [lease.spec.holder_identity for lease in leases if self._excludes(lease)]
        return held or self._running_jobs(owner, of_cluster=False)

    def _excludes(self, lease: Lease) -> bool:
        if lease.metadata.labels.get(keys.OWNER_KIND) == _CLUSTER:
            return False
        op = operation_of(lease)
        return op is not None and op.mutating and not self._store.is_free(lease)

    def _machine_gate(self, claim: LeaseClaim) -> Wait | None:
        owner = claim.owner
        lease = self._store.read(owner.namespace, _cluster_lease(owner))
        if lease is not None and not self._store.is_free(lease):
            running = [lease.spec.holder_identity]
        else:
            running = self._running_jobs(owner, of_cluster=True)
        if not running:
            return None
        self._store.give_back(owner.namespace, owner.run_lease, claim.job)
        return Wait(
            WaitReason.CLUSTER_OPERATION, f"waits for the cluster's Job {', '.join(running)}"
        )

    def _running_jobs(self, owner: Owner, *, of_cluster: bool) -> list[str]:
        jobs = self._jobs.cluster_jobs(owner.namespace, owner.cluster)
        return [
            job.metadata.name
            for job in jobs
            if (job.metadata.labels.get(keys.OWNER_KIND) == _CLUSTER) == of_cluster
            and _mutates(job)
        ]

    def freshen(self, claim: LeaseClaim) -> bool:
        """Just before the create (11 §10.4): False means defer the start.

        A lease that got old while the start was prepared may have been taken for free.
        """
        lease = self.read_run_lease(claim.owner)
        if lease is not None and lease.spec.holder_identity not in ("", claim.job):
            return False
        mine = lease is not None and lease.spec.holder_identity == claim.job
        if mine and lease is not None and self._store.age(lease).total_seconds() < FRESH_SECONDS:
            return True
        begun = self._clock.monotonic()
        return self.acquire(claim) is None and self._clock.monotonic() - begun < FRESH_SECONDS

    def release(self, owner: Owner, job: str) -> None:
        """Give back what `job` holds (11 §10.6)."""
        self._store.give_back(owner.namespace, owner.run_lease, job)
        if owner.kind == _CLUSTER and owner.cluster:
            self._store.give_back(owner.namespace, _cluster_lease(owner), job)

    def read_run_lease(self, owner: Owner) -> Lease | None:
        """The object's run lease, read live."""
        return self._store.read(owner.namespace, owner.run_lease)

    def is_free(self, lease: Lease) -> bool:
        """Whether anybody may take it (11 §10.3)."""
        return self._store.is_free(lease)

    def run_lease_live(self, owner: Owner) -> bool:
        """Whether some Job holds the run lease: nothing of the object is cleaned up meanwhile."""
        lease = self.read_run_lease(owner)
        return lease is not None and not self._store.is_free(lease)


def _cluster_lease(owner: Owner) -> str:
    return names.cluster_lease(owner.namespace, owner.cluster)


def _mutates(job: Job) -> bool:
    op = op_of(job)
    return op is not None and op.mutating and not is_finished(job)


def _wait_for(taken: Taken, what: str) -> Wait:
    if taken.holder:
        return Wait(WaitReason.RUN_LEASE, f"Job {taken.holder} holds {what}")
    return Wait(WaitReason.RUN_LEASE, f"another manager was first to take {what}")


def _running_message(jobs: Iterable[str]) -> str:
    ordered = sorted(set(jobs))
    named = ", ".join(ordered[:_NAMED]) + (", …" if len(ordered) > _NAMED else "")
    return (
        f"waits for {len(ordered)} machine and pool Jobs: {named}; "
        "operations that start later queue behind this one"
    )
