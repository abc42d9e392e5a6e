"""Letting an object go: what is removed, kept and said in each case (deletion.md: Cleaning up)."""

from collections.abc import Callable

from captfctl.cluster.errors import Conflict
from captfctl.decide import constants
from captfctl.model.events import EventReason
from captfctl.reconcile import credentials
from captfctl.reconcile.context import DecideAgain, Pass
from captfctl.reconcile.finish import finish
from captfctl.reconcile.identity import Identity
from captfctl.reconcile.known import Ended, Known
from captfctl.reconcile.retain import retain
from captfctl.terraform.state.cleanup import (
    delete_leases,
    delete_plan_key,
    delete_records,
    delete_state,
)


def destroyed(p: Pass, known: Known) -> Ended:
    """The destroy succeeded: everything that described the infrastructure goes."""

    def steps() -> None:
        _remove_everything(p)
        p.later.append(EventReason.DESTROYED.says("the infrastructure is destroyed"))
        _say_removed(p, "finalizer removed after the destroy")

    return _clean_up(p, known, steps)


def nothing_to_destroy(p: Pass, known: Known) -> Ended:
    """Nothing was ever created, or all of it is gone."""
    what = (
        "its state has no resources" if known.state and known.state.state else "there is no state"
    )

    def steps() -> None:
        _remove_everything(p)
        _say_removed(p, f"finalizer removed: {what}, so nothing was destroyed")

    return _clean_up(p, known, steps)


def retained(p: Pass, known: Known) -> Ended:
    """`deletionPolicy: Retain`: the infrastructure stays, and its state with it."""

    def steps() -> None:
        kept = retain(p)
        text = f"nothing was destroyed; {kept}"
        p.later.append(EventReason.INFRASTRUCTURE_RETAINED.says(text))

    return _clean_up(p, known, steps)


def released(p: Pass, known: Known, uid: str) -> Ended:
    """The Secrets of this object's names belong to an earlier object: they stay untouched."""

    def steps() -> None:
        delete_plan_key(p.env.door, p.owner)
        delete_leases(p.env.door, p.owner)
        _say_removed(p, f"finalizer removed: the state belongs to an earlier object, UID {uid}")

    return _clean_up(p, known, steps)


def _clean_up(p: Pass, known: Known, steps: Callable[[], None]) -> Ended:
    """What is removed cannot be had back. So the object is confirmed first: one that the cache
    showed as it was before may not know yet which state it was left with. Raises `Conflict`."""
    p.confirm()
    if p.env.leases.run_lease_live(p.owner):
        return finish(p, known, constants.LAG_REQUEUE)
    steps()
    _leave_copies(p, known.identity)
    p.drop_finalizer()
    return finish(p, known)


def _remove_everything(p: Pass) -> None:
    door, owner = p.env.door, p.owner
    delete_state(door, owner)
    delete_records(door, owner)
    delete_plan_key(door, owner)
    delete_leases(door, owner)


def _leave_copies(p: Pass, identity: Identity) -> None:
    """Of the identity named now, which the cache may not show yet, and of those named before."""
    named = {identity.name} if identity.name and not identity.local else set()
    try:
        for name in sorted(named.union(p.env.cache.copied_identities(p.owner))):
            credentials.leave_copy(p, name)
    except Conflict as problem:
        raise DecideAgain from problem  # another user came or went: look again


def _say_removed(p: Pass, text: str) -> None:
    p.later.append(EventReason.FINALIZER_REMOVED.says(text))
