"""Snapshots to decide on: what a test does not say is a quiet, applied cluster at T0."""

from datetime import UTC, datetime, timedelta
from typing import Any

from captfctl.decide import DecideInput, Jobs, PlanView, State
from captfctl.model.ops import Op
from captfctl.model.plan import PlanReason

T0 = datetime(2026, 9, 25, 12, 0, 0, tzinfo=UTC)
A, B, C = "h1:a", "h1:b", "h1:c"


def ago(**duration: float) -> datetime:
    return T0 - timedelta(**duration)


def minutes(count: float) -> timedelta:
    return timedelta(minutes=count)


def applied(current: str = A, **fields: Any) -> State:
    """A state that was applied with the inputs A."""
    return State(exists=True, inputs_hash=A, current_hash=current, **fields)


def failed(op: Op, times: int, when: datetime, **fields: Any) -> Jobs:
    return Jobs(failures={op: times}, last_failure={op: when}, **fields)


def snapshot(**fields: Any) -> DecideInput:
    return DecideInput(**{"now": T0, "state": applied()} | fields)


def machine(**fields: Any) -> DecideInput:
    return snapshot(**{"mutable": False, "state": applied(current="")} | fields)


def plan(
    reason: PlanReason = PlanReason.DESTRUCTIVE,
    inputs_hash: str = B,
    *,
    approved: bool = False,
) -> PlanView:
    return PlanView(
        name="demo-0123456789",
        reason=reason,
        inputs_hash=inputs_hash,
        plan_hash="p2:plan",
        approved=approved,
    )
