"""What comes before a pass proper: deletion modes, owner, finalizer, pause
(reconcile.md: The preamble)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from captfctl.cluster.errors import Conflict
from captfctl.controller import Result
from captfctl.decide import constants
from captfctl.errors import CaptfError
from captfctl.model import keys
from captfctl.model.conditions import FALSE, TRUE, ConditionValue, Type
from captfctl.model.core import Job
from captfctl.model.events import EventReason, Note
from captfctl.model.reasons import Paused, Ready
from captfctl.reconcile import report, settled
from captfctl.reconcile.context import Pass
from captfctl.reconcile.env import Env
from captfctl.reconcile.finish import answer_request
from captfctl.reconcile.kinds import KindRules, owner_of, paused_by
from captfctl.reconcile.retain import retain
from captfctl.reconcile.state_step import signs
from captfctl.reconcile.sweep import sweep_quietly
from captfctl.reconcile.transitions import notes
from captfctl.runs.jobs import Outcome, outcome
from captfctl.runs.lag import Lag, check_lag
from captfctl.runs.reader import own_jobs
from captfctl.terraform.state.reader import StateProblem, Unreadable, read_state
from captfctl.terraform.state.records import read_records
from captfctl.terraform.state.verdict import ever_applied

DONE = Result()


def after(delay: timedelta) -> Result:
    return Result(delay.total_seconds())


@dataclass(frozen=True, slots=True)
class Entered:
    """The pass to go on with (`paused` tells which branch), and the object's Jobs as cached.
    `observed` as `settled.observe` has it."""

    p: Pass
    jobs: Sequence[Job]
    observed: bytes | None


def enter(env: Env, rules: KindRules) -> Entered | Result:
    """The pass to go on with, or where it ends already.

    The object is as cached; it becomes the pass's.
    """
    obj, resource = rules.obj, rules.resource
    obj.api_version, obj.kind = resource.api_version, resource.kind
    owner = owner_of(rules)
    jobs = own_jobs(env.cache, owner)
    observed = settled.observe(env.door, env.cache, env.settings, rules, owner, jobs)
    now = env.clock.now()
    if settled.is_resting(rules, observed, now):
        # Only the gauges of a new manager are missing.
        env.metrics.show(owner.kind, owner.namespace, owner.name, report.resting_gauges(obj, jobs))
        return after(settled.requeue(obj, now))
    p = Pass(env, rules, owner)
    try:
        return _stages(p) or Entered(p, jobs, observed)
    except Conflict:
        return after(constants.CONFLICT_REQUEUE)


def _stages(p: Pass) -> Result | None:
    """None: go on."""
    if p.deleting and not p.has_finalizer():
        return DONE  # it is no longer, or never was, ours to take down
    if p.deleting:
        _convert_foreground_deletion(p)
    if keys.MANAGED_BY in p.obj.metadata.annotations:
        return _externally_managed(p)
    ended = _owner_stage(p)
    if ended is not None:
        return ended
    if not p.deleting and not p.has_finalizer():
        p.write_now(lambda obj: obj.metadata.finalizers.append(p.rules.kind.finalizer))
        return DONE  # the write starts the next pass
    if _resumed(p):
        return DONE
    p.before = p.conditions.list()
    return None


def _convert_foreground_deletion(p: Pass) -> None:
    """Or else the garbage collector takes the Job and the state before the destroy."""
    if keys.FOREGROUND_DELETION not in p.obj.metadata.finalizers:
        return
    p.write_now(lambda obj: obj.metadata.finalizers.remove(keys.FOREGROUND_DELETION))
    p.record(
        EventReason.FOREGROUND_DELETION_CONVERTED.says(
            f"finalizer {keys.FOREGROUND_DELETION} taken off: what the destroy needs must outlive "
            "the request to delete"
        )
    )


def _externally_managed(p: Pass) -> Result:
    """A live object is not touched; one that goes leaves its state behind
    (deletion.md: Keeping infrastructure)."""
    if not p.deleting:
        return DONE
    if _runs_something(p):
        return after(constants.GATE_REQUEUE)
    p.confirm()  # the cache may lag: the mark may be gone, and then a destroy is due
    kept = retain(p)
    p.drop_finalizer()
    p.persist()
    text = f"externally managed: nothing was destroyed; {kept}"
    p.record(EventReason.EXTERNALLY_MANAGED_RELEASED.says(text))
    forget(p)
    return DONE


def _owner_stage(p: Pass) -> Result | None:
    """None: go on. A deleting object goes on whatever its owner."""
    if p.deleting:
        protected = p.config.deletion_protection
        if p.rules.lookup.reference is None and not protected and _nothing_to_take_down(p):
            return _release(p)
        return None
    gate = p.rules.lookup.gate
    if gate is None and p.rules.lookup.reference is not None:
        return None
    close_gate(p, p.rules.lookup.missing)
    p.persist()
    p.record(*notes(p.before, p.conditions.list()))
    return after(constants.GATE_REQUEUE) if p.rules.lookup.reference is None else DONE


def close_gate(p: Pass, gate: ConditionValue) -> None:
    """`DependenciesReady`, and `Ready` while the object was never ready
    (conditions-and-events.md: Ready)."""
    p.set(Type.DEPENDENCIES_READY, gate)
    if not p.provisioned:
        reason = Ready.NOT_READY if gate.status == FALSE else Ready.READY_UNKNOWN
        p.conditions.set_reason(reason, f"{gate.reason}: {gate.message}")
    answer_request(p, constants.GATE_REQUEUE)


def _nothing_to_take_down(p: Pass) -> bool:
    """Ownerless release (deletion.md: Release without an owner). Whatever cannot be read counts as
    something."""
    if p.rules.dependents(p.env.door):
        return False
    try:
        state = read_state(p.env.door, p.owner)
        if not isinstance(state, Unreadable) or state.problem is not StateProblem.NO_STATE:
            return False
        if _runs_something(p):
            return False
        records = read_records(p.env.door, p.owner)
        return not ever_applied(p.env.door, p.owner, signs(p, records))
    except CaptfError:
        return False


def _runs_something(p: Pass) -> bool:
    """A Job in the cache, one that the cache does not show yet, or a live run lease."""
    jobs = own_jobs(p.env.cache, p.owner)
    if any(outcome(job) is Outcome.RUNNING for job in jobs):
        return True
    active = p.obj.status.active_job
    lag = check_lag(
        p.env.door,
        p.env.leases,
        p.owner,
        listed=[job.metadata.name for job in jobs],
        active_job=active.name if active else "",
        block_move=keys.BLOCK_MOVE in p.obj.metadata.annotations,
        deleting=p.deleting,
    )
    return lag is Lag.LAGGING or p.env.leases.run_lease_live(p.owner)


def _release(p: Pass) -> Result:
    p.drop_finalizer()
    p.persist()
    text = "finalizer removed: it has no owner, and nothing was ever created"
    p.record(EventReason.FINALIZER_REMOVED.says(text))
    forget(p)
    return DONE


def forget(p: Pass) -> None:
    """The object was let go: what is kept for it outside of it goes, too."""
    p.env.metrics.forget(p.kind, p.owner.namespace, p.owner.name)
    sweep_quietly(p.env.door, p.owner.namespace)


def _resumed(p: Pass) -> bool:
    """Set `Paused` and, on a change, write it. True: just unpaused, and that ends this pass."""
    old = p.conditions[Type.PAUSED]
    was = old is not None and old.status == TRUE
    cause = paused_by(p.rules)
    p.paused = bool(cause)
    if cause:
        p.conditions.set_reason(Paused.PAUSED, cause)
    else:
        p.conditions.set_reason(Paused.NOT_PAUSED)
    if p.paused == was:
        return False
    p.persist()
    p.record(_pause_note(cause))
    return not p.paused


def _pause_note(cause: str) -> Note:
    if cause:
        return EventReason.PAUSED.says(f"no Job starts while {cause}")
    return EventReason.RESUMED.says("no longer paused")
