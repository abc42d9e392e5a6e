"""Who may run: run lease, freshness, and the operation gate (leases.md: The operation gate).

The gate keeps the operations of a group's leader apart from those of its other members, such as a
cluster's from its machines'. Both sides write their own lease before they read the other's, so at
least one sees the other. Jobs are looked at besides leases, because a run could have tampered with
a Lease.
"""

from collections.abc import Iterable

from captfctl.clock import Clock
from captfctl.cluster.door import Door
from captfctl.cluster.errors import ApiError
from captfctl.model import keys
from captfctl.model.core import Lease
from captfctl.model.reasons import WaitReason
from captfctl.model.subject import Group, Subject
from captfctl.runs.jobs import is_finished, operation_of
from captfctl.runs.lease_store import LeaseKind, LeaseStore, Taken, leased_operation
from captfctl.runs.reader import JobsReader
from captfctl.runs.run import Run
from captfctl.runs.waits import Wait

FRESH_SECONDS = 30
_NAMED = 5


class Leases:
    """Taking and giving back all that one run needs. `gate`: `--cluster-operation-gate`."""

    def __init__(self, door: Door, jobs: JobsReader, clock: Clock, *, gate: bool = True) -> None:
        self._store = LeaseStore(door, clock)
        self._jobs = jobs
        self._clock = clock
        self._gate = gate

    def acquire(self, run: Run) -> Wait | None:
        """Take the run lease and pass the gate; None: taken.

        An error of the gate gives back what was taken, and is raised.
        """
        subject = run.subject
        group = subject.group if self._gate and run.exclusive else None
        leads = group is not None and subject.kind == group.leader
        taken = self._store.take(subject.run_lease, LeaseKind.RUN, run)
        if taken.to_refresh is not None and group is not None and not leads:
            wait = self._leader_runs(run, group)
            if wait is not None:
                return wait  # not refreshed: the leader must not wait for what waits for it
        taken = self._refreshed(taken)
        if not taken.acquired:
            return _wait_for(taken, f"the run lease of {subject.kind} {subject.name}")
        if group is None:
            return None
        try:
            return self._leader_gate(run, group) if leads else self._member_gate(run, group)
        except ApiError:
            self._store.give_up(subject.namespace, subject.run_lease, run.name)
            raise

    def _leader_gate(self, run: Run, group: Group) -> Wait | None:
        subject = run.subject
        taken = self._refreshed(self._store.take(group.lease, LeaseKind.CLUSTER, run))
        if not taken.acquired:
            self._store.give_up(subject.namespace, subject.run_lease, run.name)
            return _wait_for(taken, f"the cluster lease of {group.name}")
        try:
            running = self._members_running(subject, group)
        except ApiError:
            # Only now: one that could not be taken may be what a live Job of this name relies on.
            self._store.give_up(subject.namespace, group.lease, run.name)
            raise
        if not running:
            return None
        # Both leases stay: operations that would start now queue behind this one.
        return Wait(WaitReason.MACHINE_OPERATIONS, _running_message(running))

    def _refreshed(self, taken: Taken) -> Taken:
        """The same once what is only found is written, too."""
        lost = taken.to_refresh is not None and not self._store.refresh(taken.to_refresh)
        return Taken(False) if lost else taken

    def _members_running(self, subject: Subject, group: Group) -> list[str]:
        """Names of the Jobs of members that exclude the leader's."""
        leases = self._store.run_leases(subject.namespace, group.name)
        held = [lease.spec.holder_identity for lease in leases if self._excludes(lease, group)]
        return held or self._running_jobs(subject, group, of_leader=False)

    def _excludes(self, lease: Lease, group: Group) -> bool:
        if lease.metadata.labels.get(keys.OWNER_KIND) == group.leader:
            return False
        return leased_operation(lease) in group.exclusive and not self._store.is_free(lease)

    def _member_gate(self, run: Run, group: Group) -> Wait | None:
        wait = self._leader_runs(run, group)
        if wait is not None:
            self._store.give_up(run.subject.namespace, run.subject.run_lease, run.name)
        return wait

    def _leader_runs(self, run: Run, group: Group) -> Wait | None:
        """What a member waits for; None: nothing."""
        lease = self._store.read(run.subject.namespace, group.lease)
        if lease is not None and not self._store.is_free(lease):
            running = [lease.spec.holder_identity]
        else:
            running = self._running_jobs(run.subject, group, of_leader=True)
        if not running:
            return None
        return Wait(
            WaitReason.CLUSTER_OPERATION,
            f"waits for Job {', '.join(running)} of {group.leader} {group.name}",
        )

    def _running_jobs(self, subject: Subject, group: Group, *, of_leader: bool) -> list[str]:
        return [
            job.metadata.name
            for job in self._jobs.group_jobs(subject.namespace, group.name)
            if (job.metadata.labels.get(keys.OWNER_KIND) == group.leader) == of_leader
            and operation_of(job) in group.exclusive
            and not is_finished(job)
        ]

    def freshen(self, run: Run) -> bool:
        """Just before the create (leases.md: Freshness before the create): False means defer the
        start.

        A lease that got old while the start was prepared may have been taken for free.
        """
        lease = self.read_run_lease(run.subject)
        if lease is not None and lease.spec.holder_identity not in ("", run.name):
            return False
        mine = lease is not None and lease.spec.holder_identity == run.name
        if mine and lease is not None and self._store.age(lease).total_seconds() < FRESH_SECONDS:
            return True
        begun = self._clock.monotonic()
        return self.acquire(run) is None and self._clock.monotonic() - begun < FRESH_SECONDS

    def give_up(self, run: Run) -> None:
        """Give back what a start took that came to nothing (leases.md: Giving leases back)."""
        for lease in _leases_of(run.subject):
            self._store.give_up(run.subject.namespace, lease, run.name)

    def release(self, subject: Subject, job: str) -> None:
        """Give back what `job` holds, which has ended (leases.md: Giving leases back)."""
        for lease in _leases_of(subject):
            self._store.give_back(subject.namespace, lease, job)

    def job_removed(self, subject: Subject, job: str) -> None:
        """The Job was deleted before it began: its leases are free once no pod of it is left."""
        for lease in _leases_of(subject):
            self._store.job_removed(subject.namespace, lease, job)

    def read_run_lease(self, subject: Subject) -> Lease | None:
        """The subject's run lease, read live."""
        return self._store.read(subject.namespace, subject.run_lease)

    def is_free(self, lease: Lease) -> bool:
        """Whether any Job may take it (leases.md: When a lease is free)."""
        return self._store.is_free(lease)

    def run_lease_live(self, subject: Subject) -> bool:
        """Whether some Job holds the run lease: nothing of the subject is cleaned up meanwhile."""
        lease = self.read_run_lease(subject)
        return lease is not None and not self._store.is_free(lease)


def _leases_of(subject: Subject) -> list[str]:
    """The names of the leases that a Job of the subject may hold."""
    group = subject.group
    leads = group is not None and subject.kind == group.leader
    return [subject.run_lease, group.lease] if group and leads else [subject.run_lease]


def _wait_for(taken: Taken, what: str) -> Wait:
    if taken.holder:
        return Wait(WaitReason.RUN_LEASE, f"Job {taken.holder} holds {what}", short=taken.ending)
    return Wait(WaitReason.RUN_LEASE, f"another manager was first to take {what}")


def _running_message(jobs: Iterable[str]) -> str:
    ordered = sorted(set(jobs))
    named = ", ".join(ordered[:_NAMED]) + (", …" if len(ordered) > _NAMED else "")
    return (
        f"waits for {len(ordered)} machine and pool Jobs: {named}; "
        "operations that start later queue behind this one"
    )
