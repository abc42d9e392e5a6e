"""What a pass would decide, without doing it: for `captfctl reconcile --dry-run`
(reconcile.md: Dry run)."""

from collections.abc import Iterable
from dataclasses import dataclass

from captfctl.clock import Clock
from captfctl.cluster.door import Door, find
from captfctl.controller import Result
from captfctl.decide import Action, Reason, explain
from captfctl.model.conditions import TRUE, Type
from captfctl.model.kinds import Kind
from captfctl.model.meta import Condition
from captfctl.model.ops import Op
from captfctl.reconcile import bookkeeping, plans, preamble
from captfctl.reconcile.adoption import adopt_as_cluster_api_does
from captfctl.reconcile.cache import DoorCache
from captfctl.reconcile.context import Pass
from captfctl.reconcile.env import Env
from captfctl.reconcile.events import NoRecorder
from captfctl.reconcile.kinds import RULES
from captfctl.reconcile.known import Decided
from captfctl.reconcile.metrics import NoMetrics
from captfctl.reconcile.paused import paused_branch
from captfctl.reconcile.preamble import Entered
from captfctl.reconcile.run_branch import decide
from captfctl.reconcile.setup import set_up
from captfctl.reconcile.starting import Obstacle, prepare
from captfctl.runs.slots import Slots
from captfctl.settings import PassSettings

# Of one object: its finalizer, and the end of a pause, each end a pass.
_PREAMBLES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """What the next pass would do.

    `reason` is the decision's, or why nothing is decided (a condition's reason: `Paused`,
    `WaitingForOwner`). `explanation` is the reason in words. `waiting` tells what keeps a due Job
    from starting; empty when nothing does. `requeue_after` in seconds, 0: not until a change.
    """

    action: Action
    op: Op | None
    reason: str
    explanation: str
    requeue_after: float
    waiting: str
    job: str
    conditions: tuple[Condition, ...]


def evaluate(
    door: Door, kind: Kind, key: tuple[str, str], clock: Clock, settings: PassSettings
) -> Evaluation:
    """Evaluate the object of `kind` at `key` = (namespace, name) in `door`.

    What a pass writes before it decides (finalizer, copied credentials) is written to `door`: give
    it an in-memory store. No Job is created. Raises `NotFound` for an object that is not there, and
    what the pass would raise.
    """
    namespace, name = key
    adopt_as_cluster_api_does(door, kind, door.get(RULES[kind.name].resource, name, namespace))
    cache = DoorCache(door)
    env = Env(
        door=door,
        cache=cache,
        clock=clock,
        settings=settings,
        recorder=NoRecorder(),
        metrics=NoMetrics(),
        random_bytes=bytes,  # no key made here is ever used
        slots=Slots(door, cache, clock, settings.max_active_jobs),
    )
    return _evaluated(env, kind, key)


def _evaluated(env: Env, kind: Kind, key: tuple[str, str]) -> Evaluation:
    resource, (namespace, name) = RULES[kind.name].resource, key
    ended = Result()
    for _ in range(_PREAMBLES):
        obj = find(env.door, resource, namespace, name)
        if obj is None:
            return _released()
        entered = preamble.enter(env, RULES[kind.name](obj, env.cache))
        if isinstance(entered, Entered):
            return _evaluate(entered)
        ended = entered
        if ended.requeue_after:
            break
    left = find(env.door, resource, namespace, name)
    return _released() if left is None else _undecided(left.status.conditions, ended)


def _evaluate(entered: Entered) -> Evaluation:
    p = entered.p
    found = set_up(p, entered.jobs)
    known = plans.keep(p, bookkeeping.keep(p, found))
    reached = paused_branch(p, known) if p.paused else decide(p, known, found.state)
    if isinstance(reached, Decided):
        return _decided(p, reached)
    if p.let_go:
        return _released()
    active = reached.known.books.active
    return _undecided(p.conditions.list(), reached.result, active.metadata.name if active else "")


def _decided(p: Pass, decided: Decided) -> Evaluation:
    decision = decided.decision
    requeue, waiting, job = decision.requeue_seconds, "", ""
    if (wait := plans.wait(p, decided.known)) is not None:
        waiting = f"{wait.reason}: {wait.message}"
    if decision.op is not None and decision.action is Action.JOB:
        ready = prepare(p, decided, decision.op)
        if isinstance(ready, Obstacle):
            requeue, waiting = ready.requeue.total_seconds(), _why(p, ready)
        else:
            job = ready.run.name
    return Evaluation(
        action=decision.action,
        op=decision.op,
        reason=decision.reason.value,
        explanation=explain(decision),
        requeue_after=requeue,
        waiting=waiting,
        job=job,
        conditions=tuple(p.conditions.list()),
    )


def _why(p: Pass, obstacle: Obstacle) -> str:
    if obstacle.value is not None:
        return f"{obstacle.value.reason}: {obstacle.value.message}"
    blocking = _blocking(p.conditions.list())
    return f"{blocking.type}: {blocking.reason}: {blocking.message}" if blocking else ""


_ORDER = (
    Type.PAUSED,
    Type.DELETION_BLOCKED,
    Type.DEPENDENCIES_READY,
    Type.IDENTITY_ALLOWED,
    Type.CREDENTIALS_MIRRORED,
    Type.RUNNER_RBAC_READY,
    Type.STATE_READABLE,
)
_TRUE_BLOCKS = frozenset({Type.PAUSED, Type.DELETION_BLOCKED})


def _blocking(conditions: Iterable[Condition]) -> Condition | None:
    """The condition that keeps the object from going on, the earliest of a pass first."""
    found = {condition.type: condition for condition in conditions}
    for kind in _ORDER:
        condition = found.get(kind)
        if condition is not None and (condition.status == TRUE) == (kind in _TRUE_BLOCKS):
            return condition
    return None


def _undecided(conditions: Iterable[Condition], result: Result, job: str = "") -> Evaluation:
    listed = tuple(conditions)
    blocking = None if job else _blocking(listed)
    reason, text = (
        (blocking.reason, blocking.message) if blocking else (Reason.UP_TO_DATE.value, "")
    )
    if job:
        reason, text = Reason.JOB_ACTIVE.value, f"Job {job} is running"
    return Evaluation(
        action=Action.NONE,
        op=None,
        reason=reason,
        explanation=text or reason,
        requeue_after=result.requeue_after,
        waiting="",
        job=job,
        conditions=listed,
    )


def _released() -> Evaluation:
    return Evaluation(
        action=Action.DROP_FINALIZER,
        op=None,
        reason=Reason.DELETING_WITHOUT_STATE.value,
        explanation="there is nothing left to destroy: the finalizer is removed",
        requeue_after=0.0,
        waiting="",
        job="",
        conditions=(),
    )
