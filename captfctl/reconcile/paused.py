"""The pass of a paused object: it reads what finished and starts nothing
(reconcile.md: Paused objects)."""

from captfctl.decide import constants
from captfctl.model.reasons import Deleting
from captfctl.reconcile import active
from captfctl.reconcile.context import Pass
from captfctl.reconcile.finish import finish
from captfctl.reconcile.known import Ended, Known
from captfctl.runs.stuck import Starting


def paused_branch(p: Pass, known: Known) -> Ended:
    """The pass of a paused object after bookkeeping."""
    if p.deleting:
        p.conditions.set_reason(
            Deleting.DELETING,
            "waits until the object is no longer paused: a paused object is not destroyed",
        )
    job = known.books.active
    if job is not None:
        starting = Starting(p.env.door, p.now, job)
        stuck = active.remove_if_stuck(p, known, job, starting)
        if stuck is None or not stuck.removed:
            shown = active.show(p, known, job, starting)
            return finish(p, shown) if shown else finish(p, known, constants.LAG_REQUEUE)
    settled = active.settle(p, known)
    return finish(p, settled) if settled else finish(p, known, constants.LAG_REQUEUE)
