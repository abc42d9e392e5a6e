"""Why an operation does not start now although it is due (11 §14)."""

from dataclasses import dataclass
from enum import StrEnum


class WaitReason(StrEnum):
    """The reasons of waits, as conditions and events carry them."""

    RUN_LEASE = "WaitingForRunLease"
    CLUSTER_OPERATION = "WaitingForClusterOperation"
    MACHINE_OPERATIONS = "WaitingForMachineOperations"
    JOB_SLOT = "WaitingForJobSlot"

    @property
    def metric(self) -> str:
        """The `reason` label of `captf_lease_waits_total`."""
        return {
            WaitReason.RUN_LEASE: "run_lease",
            WaitReason.CLUSTER_OPERATION: "cluster_operation",
            WaitReason.MACHINE_OPERATIONS: "machine_operations",
            WaitReason.JOB_SLOT: "job_slot",
        }[self]


WAIT_REASONS = frozenset(reason.value for reason in WaitReason)


@dataclass(frozen=True, slots=True)
class Wait:
    """No failure: the condition of the operation is Unknown with this reason, and no backoff."""

    reason: WaitReason
    message: str
