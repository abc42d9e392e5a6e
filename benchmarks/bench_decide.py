"""Decisions of one core: `decide_op` on snapshots of objects in every kind of situation.

The yardstick is what no decision can do without: calling a function that makes the answer.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta

from benchmarks.figures import Figure, Yardstick, at_least
from benchmarks.timing import alternately
from captfctl.decide import Action, DecideInput, Decision, Jobs, PlanView, Reason, State, decide_op
from captfctl.model.ops import Op
from captfctl.model.plan import PlanReason

AIM = 100_000
ROUNDS = 15
CALLS = 2_000
NOW = datetime(2026, 9, 25, 12, tzinfo=UTC)
UID = "8f14e45f-ceea-467f-a0e6-52b0c1d9a3c7"
OLD, NEW = "h1:old", "h1:new"


def run() -> Iterator[Figure]:
    situations = {**_waiting(), **_due(), **_in_trouble()}
    everything = list(situations.values())
    quiet = [situations["nothing is due"]]
    every, calm, answer = (
        1 / min(times)
        for times in alternately(
            [_Calls(decide_op, everything), _Calls(decide_op, quiet), _Calls(_answer, quiet)],
            ROUNDS,
            time.thread_time,
        )
    )
    stick = Yardstick(name="only making the answer", value=answer * CALLS)
    what = f"decisions, {len(everything)} situations"
    yield at_least(what, every * CALLS, "/s", AIM, yardstick=stick)
    yield at_least("decisions, nothing is due", calm * CALLS, "/s", AIM, yardstick=stick)


class _Calls:
    """`CALLS` calls, with the snapshots in turn."""

    def __init__(
        self, function: Callable[[DecideInput], Decision], snapshots: Sequence[DecideInput]
    ) -> None:
        self._function = function
        self._snapshots = [snapshots[n % len(snapshots)] for n in range(CALLS)]

    def __call__(self) -> None:
        function = self._function
        for snapshot in self._snapshots:
            function(snapshot)


def _answer(_: DecideInput) -> Decision:
    return Decision(action=Action.NONE, reason=Reason.UP_TO_DATE)


def _ago(minutes: float) -> datetime:
    return NOW - timedelta(minutes=minutes)


def _snapshot(current: str = OLD, **fields: object) -> DecideInput:
    """An applied cluster with drift and health checks; `fields` say what is different."""
    usual: dict[str, object] = {
        "now": NOW,
        "uid": UID,
        "created": _ago(600),
        "state": State(exists=True, inputs_hash=OLD, current_hash=current),
        "last_refresh": _ago(1),
        "last_drift_check": _ago(10),
        "last_apply_succeeded": _ago(60),
        "drift_interval": timedelta(minutes=30),
        "health_interval": timedelta(minutes=5),
    }
    return DecideInput(**usual | fields)  # type: ignore[arg-type]


def _waiting() -> dict[str, DecideInput]:
    return {
        "nothing is due": _snapshot(),
        "a Job is active": _snapshot(jobs=Jobs(active=True)),
        "deleted, state held": _snapshot(deleting=True, state_held=True),
        "an apply backs off": _snapshot(NEW, jobs=_failed(Op.APPLY, 2)),
        "a destroy backs off": _snapshot(deleting=True, jobs=_failed(Op.DESTROY, 1)),
        "a plan waits for approval": _snapshot(NEW, manual_apply=True, plan=_plan()),
        "the last apply failed, blocked": _snapshot(
            jobs=Jobs(last_apply_failed=True, blocked_hash=OLD, blocked_at=_ago(5))
        ),
    }


def _due() -> dict[str, DecideInput]:
    return {
        "the first apply": _snapshot(state=State(current_hash=NEW)),
        "changed inputs": _snapshot(NEW),
        "an approved plan": _snapshot(NEW, manual_apply=True, plan=_plan(approved=True)),
        "a plan is due": _snapshot(NEW, manual_apply=True),
        "a drift check": _snapshot(last_drift_check=_ago(60)),
        "a health check": _snapshot(last_refresh=_ago(30)),
        "a pending machine": _snapshot(
            mutable=False,
            state=State(exists=True, inputs_hash=OLD, pending=True),
            pending_refreshes=3,
        ),
        "a converging pool": _snapshot(converging=True, membership_interval=timedelta(minutes=1)),
        "a destroy": _snapshot(deleting=True),
        "a restore": _snapshot(restore=True),
    }


def _in_trouble() -> dict[str, DecideInput]:
    return {
        "drift to correct": _snapshot(remediate=True),
        "a drift check backs off": _snapshot(last_drift_check=_ago(60), jobs=_failed(Op.DRIFT, 1)),
        "a guarded apply that waits": _snapshot(NEW, plan=_plan(PlanReason.DESTRUCTIVE)),
    }


def _failed(op: Op, times: int) -> Jobs:
    return Jobs(failures={op: times}, last_failure={op: _ago(0.5)})


def _plan(reason: PlanReason = PlanReason.MANUAL, *, approved: bool = False) -> PlanView:
    return PlanView(
        name="demo-0123456789", reason=reason, inputs_hash=NEW, plan_hash="p2:x", approved=approved
    )
