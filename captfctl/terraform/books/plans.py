"""What plan Jobs tell the decision (decision.md: What the decision reads)."""

from captfctl.model import keys
from captfctl.model.ops import Op
from captfctl.terraform.books.results import FinishedRun
from captfctl.terraform.books.runs import Runs
from runner import wire


def plan_hash(run: FinishedRun) -> str:
    """The fingerprint of the plan that a run reported, from its result or from its mark."""
    if run.result is not None:
        return run.result.plan.hash if run.result.plan else ""
    return run.job.metadata.annotations.get(keys.PLAN_HASH, "")


def empty_plan(runs: Runs) -> str:
    """The inputs hash that the newest plan found nothing to do for; empty when an apply or
    another plan ended after it."""
    run = runs.newest(Op.APPLY, Op.PLAN)
    if run is None or run.op is not Op.PLAN or not run.ok:
        return ""
    return run.inputs_hash if plan_hash(run) == wire.EMPTY_PLAN else ""
