"""Reading the state and taking over what it says (state.md: Verdicts on a state)."""

import logging
from dataclasses import replace
from datetime import datetime

from captfctl.cluster.errors import Conflict
from captfctl.model import keys
from captfctl.model.conditions import TRUE, Type
from captfctl.model.events import EventReason
from captfctl.model.ops import Op
from captfctl.model.reasons import InfrastructureHealthy, OutputsValid, StateReadable
from captfctl.model.terraform import TerraformObject
from captfctl.reconcile import backups, unsaved
from captfctl.reconcile.context import Change, DecideAgain, Pass
from captfctl.reconcile.known import Known, StateView
from captfctl.reconcile.vanished import proven_harmless
from captfctl.terraform.books.bookkeeping import Bookkeeping
from captfctl.terraform.books.results import FinishedRun
from captfctl.terraform.job.run import RunSpec
from captfctl.terraform.state.adopt import AdoptionSource, adopt
from captfctl.terraform.state.last_state import (
    LastState,
    accepted_as,
    contradiction,
    last_state,
    remember,
    with_restore,
    with_run,
)
from captfctl.terraform.state.lock import LockHolder
from captfctl.terraform.state.reader import State, StateProblem, Unreadable
from captfctl.terraform.state.records import (
    Records,
    confirm_no_resources,
    mark_applied,
    read_records,
)
from captfctl.terraform.state.verdict import Signs, Verdict, judge, large, replaced

_DEFINITE = frozenset(
    {
        InfrastructureHealthy.HEALTHY,
        InfrastructureHealthy.INSTANCE_UNHEALTHY,
        InfrastructureHealthy.INSTANCE_DEGRADED,
        InfrastructureHealthy.INSTANCE_STOPPED,
        InfrastructureHealthy.INSTANCE_TERMINATED,
    }
)

log = logging.getLogger(__name__)


def take_over(p: Pass, known: Known, found: State | Unreadable) -> tuple[Known, StateView]:
    """Set `StateReadable` and everything that follows from the state."""
    known = unsaved.given_up(p, known, found)
    if known.books.unsaved:
        records, view = known.records, unsaved.report(p, known.books.unsaved, found)
    elif isinstance(found, Unreadable):
        records, view = _unreadable(p, known.records, found)
    else:
        records, view = _readable(p, known, found)
    return replace(known, records=records, state=view), view


def _unreadable(p: Pass, records: Records, found: Unreadable) -> tuple[Records, StateView]:
    verdict = _verdict(p, records, found)
    if verdict.reason == StateReadable.APPLY_OUTCOME_UNKNOWN and _settled(p, records):
        records = read_records(p.env.door, p.owner)
        verdict = _verdict(p, records, found)
    p.conditions.set_reason(verdict.reason, verdict.message)
    if found.problem is StateProblem.NO_STATE and not verdict.held:
        remember(p.obj.metadata, None)
        p.conditions.set_default(OutputsValid.OUTPUTS_PENDING)
        p.conditions.set_default(InfrastructureHealthy.WAITING_FOR_PROVISIONING)
    too_large = found if found.problem is StateProblem.TOO_LARGE else None
    return records, StateView(None, verdict.held, too_large)


def _verdict(p: Pass, records: Records, found: Unreadable) -> Verdict:
    return judge(p.env.door, p.owner, found, signs(p, records), deleting=p.deleting)


def signs(p: Pass, records: Records) -> Signs:
    """What tells of earlier applies, besides the state."""
    return Signs(records=records, provisioned=p.provisioned, last=_last(p))


def _last(p: Pass) -> LastState | None:
    return last_state(p.obj.metadata, p.obj.status.observed_state_serial)


def note_of_run(p: Pass, run: RunSpec) -> Change:
    """What to write on the object before the run exists: from then on it may write the state."""
    last = last_state(p.obj.metadata)
    note = with_restore if run.op is Op.RESTORE else with_run
    noted = last if run.op is Op.PLAN else note(last, run.name)
    return lambda obj: remember(obj.metadata, noted)


def _settled(p: Pass, records: Records) -> bool:
    """Whether it is known that the unconfirmed apply created nothing; then it is not recorded any
    more. Nobody has to be asked where there is proof."""
    job = records.marks.interrupted_apply
    if _harmless(p, records):
        confirm_no_resources(p.env.door, p.owner, job)
        return True
    if not _vouched_for(p, job):
        return False
    p.confirm()  # the person's word may have been taken back
    confirm_no_resources(p.env.door, p.owner, job)
    _write_now(p, _use_up_confirmation)
    return True


def _harmless(p: Pass, records: Records) -> bool:
    interrupted, attempt = records.marks.interrupted_apply, records.attempt
    return attempt is not None and attempt.job == interrupted and proven_harmless(p, attempt)


def _vouched_for(p: Pass, job: str) -> bool:
    """Whether a person says that this apply created nothing
    (state.md: Applies that ended without telling)."""
    named = p.obj.metadata.annotations.get(keys.CONFIRM_NO_RESOURCES)
    if named is None:
        return False
    if named.strip() != job:
        log.info(
            "%s/%s: %s names another Job than %s and is left alone",
            p.owner.namespace,
            p.owner.name,
            keys.CONFIRM_NO_RESOURCES,
            job,
        )
        return False
    return True


def _write_now(p: Pass, change: Change) -> None:
    try:
        p.write_now(change)
    except Conflict as problem:
        raise DecideAgain from problem


def _use_up_confirmation(obj: TerraformObject) -> None:
    obj.metadata.annotations.pop(keys.CONFIRM_NO_RESOURCES, None)


def _readable(p: Pass, known: Known, found: State) -> tuple[Records, StateView]:
    restored = known.books.newest(Op.RESTORE)
    ours = restored.name if restored is not None and restored.ok else ""
    why = contradiction(_last(p), found, restored=ours)
    if why and not _accepted(p, found):
        verdict = replaced(p.env.door, p.owner, found, why, deleting=p.deleting)
        p.conditions.set_reason(verdict.reason, verdict.message)
        return known.records, StateView(None, verdict.held)
    return _believe(p, known, found)


def _accepted(p: Pass, found: State) -> bool:
    """Use up a person's word that this state is right."""
    wanted = accepted_as(found)
    if p.obj.metadata.annotations.get(keys.ACCEPT_STATE, "").strip() != wanted:
        return False

    def accept(obj: TerraformObject) -> None:
        obj.metadata.annotations.pop(keys.ACCEPT_STATE, None)
        remember(obj.metadata, LastState.of(found, p.owner.uid))

    _write_now(p, accept)
    p.obj.status.observed_state_serial = 0  # whatever its serial, it was not seen before
    p.record(EventReason.STATE_ACCEPTED.says(f"state {wanted} is used as {keys.ACCEPT_STATE} says"))
    return True


def _believe(p: Pass, known: Known, found: State) -> tuple[Records, StateView]:
    """What is written of a state outlives the pass, whatever becomes of it. So the object is
    confirmed before: as it was earlier, it may not know which state was left. Raises `Conflict`."""
    records = known.records
    source = _adoption_source(known.books, found)
    if source is not None or backups.is_due(p, found):
        p.confirm()
    remember(p.obj.metadata, LastState.of(found, p.owner.uid))
    taken = _adopt(p, found, source) if source is not None else found
    if isinstance(taken, Unreadable):
        return _unreadable(p, records, taken)
    not_backed_up = backups.back_up(p, known.books, taken)
    if not not_backed_up:
        p.obj.status.observed_state_serial = taken.serial
    _report(p, known.books, taken, not_backed_up)
    trusted = bool(taken.inputs_hash) or p.provisioned
    if trusted and not records.marks.applied and records.attempt is not None:
        mark_applied(p.env.door, p.owner)
    _map_outputs(p, records, taken)
    _count_samples(p, known.books)
    return records, StateView(taken, backup_due=bool(not_backed_up))


def _map_outputs(p: Pass, records: Records, state: State) -> None:
    """Set everything on the object that follows from the outputs
    (module-contract.md: What outputs change)."""
    mapped = p.rules.map_outputs(state, records)
    p.set(Type.OUTPUTS_VALID, mapped.outputs_valid)
    if mapped.healthy is not None:
        p.set(Type.INFRASTRUCTURE_HEALTHY, mapped.healthy)
    else:
        p.conditions.set_default(InfrastructureHealthy.WAITING_FOR_PROVISIONING)
    for kind, value in mapped.conditions:
        p.set(kind, value)
    if mapped.provisioned and not p.provisioned:
        p.latch_provisioned()
        p.later.append(EventReason.PROVISIONED.says("the infrastructure is provisioned"))
    p.later.extend(mapped.notes)


def _report(p: Pass, books: Bookkeeping, found: State, not_backed_up: str) -> None:
    """A foreign lock does not stop Jobs: they wait for it, and fail if it stays
    (state.md: The state lock)."""
    lock = books.lock
    if lock is not None and lock.holder is LockHolder.FOREIGN:
        p.conditions.set_reason(StateReadable.STATE_LOCKED, lock.message)
    elif not_backed_up:
        p.conditions.set_reason(StateReadable.STATE_NOT_BACKED_UP, not_backed_up)
    elif found.large:
        p.conditions.set_reason(StateReadable.STATE_LARGE, large(found))
    else:
        p.conditions.set_reason(StateReadable.STATE_READ)


def _adopt(p: Pass, found: State, source: AdoptionSource) -> State | Unreadable:
    taken = adopt(p.env.door, p.owner, found, source)
    if isinstance(taken, State):
        inputs = source.inputs_hash or "unknown"
        text = f"the state is the result of Job {source.job}, inputs {inputs}"
        p.record(EventReason.STATE_ADOPTED.says(text, job=source.job))
    return taken


def _adoption_source(books: Bookkeeping, found: State) -> AdoptionSource | None:
    """The run whose state this is, where the state does not say so yet."""
    run = _newest_writer(books)
    if run is None:
        return None
    hashed = run.job.metadata.annotations.get(keys.INPUTS_HASH)
    # Only a restore may say that there is none: its backup had none (state.md: Adopting a state).
    if hashed is None or hashed == found.inputs_hash or (not hashed and run.op is not Op.RESTORE):
        return None
    return AdoptionSource(run.name, hashed)


def _newest_writer(books: Bookkeeping) -> FinishedRun | None:
    """The newer of the newest apply and restore, if it succeeded."""
    of_each = (books.newest(Op.APPLY), books.newest(Op.RESTORE))
    runs = [run for run in of_each if run is not None]
    newest = max(runs, key=lambda run: run.finished_at, default=None)
    return newest if newest is not None and newest.ok else None


def _count_samples(p: Pass, books: Bookkeeping) -> None:
    """What a new reading of the infrastructure changes (reconcile.md: Samples).

    `status.pendingRefreshes` tells how long the infrastructure is already coming up.
    """
    status, before = p.obj.status, p.stored.status.last_refresh
    newest = books.newest(Op.APPLY)
    applied = newest is not None and newest.ok and _later(newest.finished_at, before)
    if newest is not None and newest.ok and _apply_stands_in(p, newest):
        status.last_refresh = newest.finished_at
    sampled = _later(status.last_refresh, before)
    health = p.conditions[Type.INFRASTRUCTURE_HEALTHY]
    if sampled and p.provisioned and health is not None:
        p.rules.sample(health.reason)
    if not sampled:
        status.pending_refreshes = 0 if applied else status.pending_refreshes
    elif not pending(p):
        status.pending_refreshes = 0
    else:
        status.pending_refreshes = 1 if applied else status.pending_refreshes + 1


def _apply_stands_in(p: Pass, newest: FinishedRun) -> bool:
    """Whether the apply's own outputs tell all that a refresh after it would."""
    health, outputs = p.conditions[Type.INFRASTRUCTURE_HEALTHY], p.conditions[Type.OUTPUTS_VALID]
    return (
        p.rules.refresh_after_apply
        and p.provisioned
        and _later(newest.finished_at, p.obj.status.last_refresh)
        and outputs is not None
        and outputs.status == TRUE
        and health is not None
        and health.reason in _DEFINITE
    )


def pending(p: Pass) -> bool:
    """Whether the module reports that the infrastructure is still coming up."""
    health = p.conditions[Type.INFRASTRUCTURE_HEALTHY]
    return health is not None and health.reason == InfrastructureHealthy.INSTANCE_PENDING


def _later(moment: datetime | None, than: datetime | None) -> bool:
    return moment is not None and (than is None or moment > than)
