"""Why an operation does not start now although it is due (leases.md: When a lease is held)."""

from dataclasses import dataclass

from captfctl.model.reasons import WaitReason


@dataclass(frozen=True, slots=True)
class Wait:
    """No failure: the condition of the operation is Unknown with this reason, and no backoff.

    `short`: it is over in seconds.
    """

    reason: WaitReason
    message: str
    short: bool = False
