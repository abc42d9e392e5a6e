"""Starting a Job, or waiting until its operation's backoff is over
(decision.md: Retries and backoff)."""

from captfctl.decide import duration
from captfctl.decide.timing import remaining_backoff
from captfctl.decide.types import Action, DecideInput, Decision, Reason
from captfctl.model.ops import Op


def job(inp: DecideInput, op: Op, reason: Reason) -> Decision:
    """Backoff is counted per operation: a failing drift check never delays an apply."""
    jobs = inp.jobs
    remaining = remaining_backoff(
        jobs.failures.get(op, 0), jobs.last_failure.get(op), jobs.failed_limit, inp.now
    )
    if remaining:
        return Decision(
            action=Action.NONE, reason=reason.backoff(), requeue_after=duration.of(remaining)
        )
    return Decision(action=Action.JOB, op=op, reason=reason)
