"""What a pass counts (manager.md: Metrics). The manager turns it into Prometheus series."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from captfctl.model.ops import Op
from captfctl.terraform.books.bookkeeping import CountedRun


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauges:
    """What is shown of one object after a pass. None: nothing to show, the series goes.

    `ready` and `healthy` are 1, 0, or -1 for unknown. `last_success` holds the scheduled ops only.
    """

    ready: int
    healthy: int
    drift_detected: bool
    state_resources: int | None = None
    state_bytes: int | None = None
    inputs_bytes: int | None = None
    last_success: Mapping[Op, datetime] = field(default_factory=dict)


class Metrics(Protocol):
    """What passes count and show."""

    def run_finished(self, kind: str, run: CountedRun) -> None:
        """Once per finished Job, across restarts and replicas."""
        ...

    def decided(self, kind: str, op: str, reason: str) -> None:
        """`op` is the operation, `finalizer` when the object is let go without a Job, or `none`."""
        ...

    def lease_wait(self, kind: str, reason: str) -> None:
        """A start waits for a lease or a Job slot."""
        ...

    def state_unreadable(self, kind: str, reason: str) -> None:
        """The state cannot be used any more, or for another reason."""
        ...

    def outputs_invalid(self, kind: str, reason: str) -> None:
        """The outputs became invalid, or for another reason."""
        ...

    def identity_denied(self, reason: str) -> None:
        """An identity was refused."""
        ...

    def inputs_changed(self, kind: str) -> None:
        """An apply or a plan started for changed inputs."""
        ...

    def force_unlocked(self, kind: str) -> None:
        """A run removes a stale state lock."""
        ...

    def state_backup(self, kind: str, result: str) -> None:
        """A backup was `taken` or `pruned`, or one that was due was not taken (`skipped`)."""
        ...

    def state_restore(self, kind: str, result: str) -> None:
        """A restore `succeeded` or `failed`, or nothing can be restored as asked (`not_found`)."""
        ...

    def remediation(self, action: str) -> None:
        """A Machine was marked for replacement (`requested`), or is no longer (`withdrawn`)."""
        ...

    def plan_moved(self, kind: str, result: str, *, destructive: bool) -> None:
        """A plan was `created`, or came to a phase: `result` is its name in small letters."""
        ...

    def show(self, kind: str, namespace: str, name: str, gauges: Gauges) -> None:
        """What to show of the object from now on."""
        ...

    def forget(self, kind: str, namespace: str, name: str) -> None:
        """The object is gone: so are its series."""
        ...


class NoMetrics:
    """Counts nothing."""

    def run_finished(self, kind: str, run: CountedRun) -> None: ...

    def decided(self, kind: str, op: str, reason: str) -> None: ...

    def lease_wait(self, kind: str, reason: str) -> None: ...

    def state_unreadable(self, kind: str, reason: str) -> None: ...

    def outputs_invalid(self, kind: str, reason: str) -> None: ...

    def identity_denied(self, reason: str) -> None: ...

    def inputs_changed(self, kind: str) -> None: ...

    def force_unlocked(self, kind: str) -> None: ...

    def state_backup(self, kind: str, result: str) -> None: ...

    def state_restore(self, kind: str, result: str) -> None: ...

    def remediation(self, action: str) -> None: ...

    def plan_moved(self, kind: str, result: str, *, destructive: bool) -> None: ...

    def show(self, kind: str, namespace: str, name: str, gauges: Gauges) -> None: ...

    def forget(self, kind: str, namespace: str, name: str) -> None: ...
