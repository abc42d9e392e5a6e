"""The pass of a paused object: it reads what finished and starts nothing
(reconcile.md: Paused objects)."""

from captfctl.controller import Result
from captfctl.decide import constants
from captfctl.model.reasons import Deleting
from captfctl.reconcile import active, bookkeeping
from captfctl.reconcile.context import Pass
from captfctl.reconcile.finish import finish


def paused_branch(p: Pass) -> Result:
    """The pass of a paused object after its setup."""
    if p.deleting:
        p.conditions.set_reason(
            Deleting.DELETING,
            "waits until the object is no longer paused: a paused object is not destroyed",
        )
    books = bookkeeping.keep(p)
    if books.active is not None:
        stuck = active.remove_if_stuck(p, books.active)
        if stuck is None or not stuck.removed:
            shown = active.show(p, books.active)
            return finish(p) if shown else finish(p, constants.LAG_REQUEUE)
    if not active.settle(p):
        return finish(p, constants.LAG_REQUEUE)
    return finish(p)
