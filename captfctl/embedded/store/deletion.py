"""What a delete does to an object: removed at once, marked, or nothing more.

Finalizers keep an object until the last one is gone; the propagation policy is written down as a
finalizer that the garbage collector acts on; a grace period keeps a pod until its node is done.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, auto

from captfctl.cluster.door import Propagation
from captfctl.embedded.store.metadata import kubernetes_time
from captfctl.embedded.store.requests import DeleteOptions
from captfctl.embedded.store.strategy import Strategy
from captfctl.embedded.store.violations import conflict
from captfctl.model.keys import FOREGROUND_DELETION, ORPHAN
from captfctl.model.meta import parse_time
from captfctl.model.resource import Document

_GRACE = "deletionGracePeriodSeconds"
_MARK = "deletionTimestamp"


class Step(Enum):
    """What a delete does."""

    REMOVE = auto()
    """The object goes."""
    KEEP = auto()
    """It stays, possibly changed."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do, and the document to store for it."""

    step: Step
    document: Document


def plan(document: Document, options: DeleteOptions, strategy: Strategy, now: datetime) -> Plan:
    """What deleting `document` (which is changed in place) comes to."""
    metadata = document["metadata"]
    graceful, pending = _grace(document, options, strategy, now)
    if pending:
        return Plan(Step.KEEP, document)
    _set_finalizers(metadata, propagation_finalizers(metadata, options.propagation))
    kept = bool(metadata.get("finalizers")) or not strategy.removable(document)
    if not graceful and not kept:
        return Plan(Step.REMOVE, document)
    if not graceful:
        _mark(metadata, now)
        strategy.mark_deleting(document)
        return Plan(Step.KEEP, document)
    return Plan(Step.KEEP if kept or metadata[_GRACE] > 0 else Step.REMOVE, document)


def _grace(
    document: Document, options: DeleteOptions, strategy: Strategy, now: datetime
) -> tuple[bool, bool]:
    """Whether the grace period was set, and whether a longer or equal one already runs."""
    metadata = document["metadata"]
    wanted = options.grace_period_seconds
    if strategy.grace(document, wanted) is None:
        return False, False
    if _MARK in metadata:
        running = metadata.get(_GRACE, 0)
        if not running:
            return False, False
        if wanted is None or wanted >= running:
            return False, True
        marked = parse_time(metadata[_MARK])
        assert marked is not None
        shortened = max(wanted, 0)
        metadata[_MARK] = kubernetes_time(marked + timedelta(seconds=shortened - running))
        metadata[_GRACE] = shortened
        return True, False
    period = strategy.grace(document, wanted)
    assert period is not None
    metadata[_MARK] = kubernetes_time(now + timedelta(seconds=period))
    metadata[_GRACE] = period
    _bump(metadata)
    return True, False


def _mark(metadata: Document, now: datetime) -> None:
    marked = parse_time(metadata.get(_MARK, ""))
    if marked is None:
        _bump(metadata)
    if marked is None or marked > now:
        metadata[_MARK] = kubernetes_time(now)
    metadata[_GRACE] = 0


def _bump(metadata: Document) -> None:
    if metadata.get("generation"):
        metadata["generation"] += 1


def _set_finalizers(metadata: Document, finalizers: list[str]) -> None:
    metadata.pop("finalizers", None)
    if finalizers:
        metadata["finalizers"] = finalizers


def propagation_finalizers(metadata: Document, policy: Propagation | None) -> list[str]:
    """The finalizers an object has after a delete with this policy.

    Without one, a finalizer that an earlier delete left decides, else dependents are left to the
    garbage collector's background work.
    """
    present: list[str] = metadata.get("finalizers", [])
    rest = [name for name in present if name not in (ORPHAN, FOREGROUND_DELETION)]
    if policy is None:
        wanted = next((name for name in present if name not in rest), "")
    else:
        wanted = {Propagation.ORPHAN: ORPHAN, Propagation.FOREGROUND: FOREGROUND_DELETION}.get(
            policy, ""
        )
    result = [*rest, wanted] if wanted else rest
    return present if set(result) == set(present) else result


def finished(document: Document, old: Document, strategy: Strategy) -> bool:
    """Whether this change of a marked object removes the last thing that held it back."""
    before = old["metadata"]
    return (
        _MARK in before
        and not before.get(_GRACE)
        and not document["metadata"].get("finalizers")
        and strategy.removable(document)
    )


def check_preconditions(
    resource: str, name: str, metadata: Document, options: DeleteOptions
) -> None:
    """Raises `Conflict`."""
    uid, version = metadata.get("uid", ""), metadata.get("resourceVersion", "")
    if options.uid and options.uid != uid:
        reason = (
            f"Precondition failed: UID in precondition: {options.uid}, UID in object meta: {uid}"
        )
        raise conflict(resource, name, reason)
    if options.resource_version and options.resource_version != version:
        reason = (
            f"Precondition failed: ResourceVersion in precondition: {options.resource_version}, "
            f"ResourceVersion in object meta: {version}"
        )
        raise conflict(resource, name, reason)
