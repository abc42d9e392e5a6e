"""Terraform state: read, judged, adopted, unlocked and cleaned up; the inputs records (40)."""

from captfctl.state.adopt import AdoptionSource, adopt
from captfctl.state.lock import LockHolder, StateLock, lock_version, read_lock
from captfctl.state.owners import repair_owner_references
from captfctl.state.reader import Output, State, StateProblem, Unreadable, read_state
from captfctl.state.records import Record, Records, RunInputs, read_records
from captfctl.state.verdict import Verdict, applied_before, ever_applied, has_backup, judge

__all__ = [
    "AdoptionSource",
    "LockHolder",
    "Output",
    "Record",
    "Records",
    "RunInputs",
    "State",
    "StateLock",
    "StateProblem",
    "Unreadable",
    "Verdict",
    "adopt",
    "applied_before",
    "ever_applied",
    "has_backup",
    "judge",
    "lock_version",
    "read_lock",
    "read_records",
    "read_state",
    "repair_owner_references",
]
