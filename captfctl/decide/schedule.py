"""What is due by the calendar when nothing else has to be done (decision.md: The schedule)."""

from collections.abc import Iterator
from datetime import datetime, timedelta

import msgspec
from msgspec.structs import replace

from captfctl.decide import duration
from captfctl.decide.constants import CONVERGING_INTERVAL, RETRY_MAX
from captfctl.decide.duration import Nanoseconds
from captfctl.decide.job import job
from captfctl.decide.timing import jitter, pending_delay
from captfctl.decide.types import Action, DecideInput, Decision, Reason
from captfctl.model.ops import Op


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One periodic check of an object. `last` is what its interval counts from; None is due now."""

    op: Op
    reason: Reason
    last: datetime | None
    interval: timedelta

    def due_in(self, uid: str, now: datetime) -> Nanoseconds:
        """Zero or less: due."""
        if self.last is None:
            return duration.ZERO
        wait = duration.of(self.last + self.interval - now)
        return Nanoseconds(wait + jitter(uid, self.interval))


def schedule(inp: DecideInput, waiting: Reason | None = None) -> Decision:
    """The first check that is due, else when the next one is.

    A check that is due but backing off ends the schedule: those after it do not run in that pass.
    `waiting` is the reason reported while nothing runs and a plan waits for a person.
    """
    scheduled = _schedule(inp, waiting)
    return replace(scheduled, waiting=waiting) if waiting else scheduled


def _schedule(inp: DecideInput, waiting: Reason | None) -> Decision:
    if _refresh_after_apply(inp):
        return job(inp, Op.REFRESH, Reason.REFRESH_AFTER_APPLY)
    upcoming: list[Nanoseconds] = []
    for check in checks(inp):
        due = check.due_in(inp.uid, inp.now)
        if due <= 0:
            return job(inp, check.op, check.reason)
        upcoming.append(due)
    if waiting is not None:
        upcoming.append(duration.of(RETRY_MAX))
    return Decision(
        action=Action.NONE,
        reason=waiting or Reason.UP_TO_DATE,
        requeue_after=min(upcoming, default=duration.ZERO),
    )


def checks(inp: DecideInput) -> Iterator[Check]:
    """The checks that apply to the object, in their order."""
    if inp.converging:
        yield Check(
            op=Op.REFRESH,
            reason=Reason.MEMBERSHIP_CONVERGING,
            last=inp.last_refresh,
            interval=CONVERGING_INTERVAL,
        )
    elif inp.state.pending:
        yield Check(
            op=Op.REFRESH,
            reason=Reason.HEALTH_PENDING,
            last=inp.last_refresh,
            interval=pending_delay(inp.pending_refreshes),
        )
    since_refresh = _base(inp, inp.last_refresh)
    for op, reason, last, interval in (
        (Op.REFRESH, Reason.MEMBERSHIP_REFRESH_DUE, since_refresh, inp.membership_interval),
        (Op.REFRESH, Reason.HEALTH_CHECK_DUE, since_refresh, inp.health_interval),
        (Op.DRIFT, Reason.DRIFT_DUE, _base(inp, inp.last_drift_check), inp.drift_interval),
    ):
        if interval > duration.NO_TIME:
            yield Check(op=op, reason=reason, last=last, interval=interval)


def _refresh_after_apply(inp: DecideInput) -> bool:
    applied = inp.last_apply_succeeded
    return (
        inp.refresh_after_apply
        and applied is not None
        and (inp.last_refresh is None or inp.last_refresh < applied)
    )


def _base(inp: DecideInput, last: datetime | None) -> datetime | None:
    """What an interval counts from: the last check, else the apply, else the creation."""
    return last or inp.last_apply_succeeded or inp.created
