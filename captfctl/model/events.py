"""What a step wants told to people; whoever runs the pass records it (31 §5)."""

from dataclasses import dataclass
from enum import StrEnum


class Action(StrEnum):
    """The `action` of an Event (31 §5.1)."""

    RECONCILE = "Reconcile"
    RUN = "Run"
    PLAN = "Plan"
    DELETE = "Delete"
    RESTORE = "Restore"
    CREDENTIALS = "Credentials"
    PIN = "Pin"
    REMEDIATE = "Remediate"


@dataclass(frozen=True, slots=True)
class Note:
    """One Event of the object. `job` names the related Job, if any."""

    reason: str
    note: str
    action: Action = Action.RUN
    warning: bool = False
    job: str = ""
