"""Pure: a snapshot of one object -> what to do next. No I/O, no clock, no globals
(decision.md: What the decision reads)."""

from captfctl.decide.duration import Nanoseconds
from captfctl.decide.explain import explain
from captfctl.decide.rules import decide_op
from captfctl.decide.timing import backoff, jitter, pending_delay
from captfctl.decide.types import (
    Action,
    DecideInput,
    Decision,
    Jobs,
    PlanView,
    Reason,
    State,
)

__all__ = [
    "Action",
    "DecideInput",
    "Decision",
    "Jobs",
    "Nanoseconds",
    "PlanView",
    "Reason",
    "State",
    "backoff",
    "decide_op",
    "explain",
    "jitter",
    "pending_delay",
]
