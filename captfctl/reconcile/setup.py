"""The beginning of a pass proper (reconcile.md: Setup)."""

from collections.abc import Sequence

from captfctl.model import keys
from captfctl.model.core import Job
from captfctl.model.reasons import Deleting, DeletionBlocked, DriftDetected, Paused
from captfctl.reconcile import plans
from captfctl.reconcile.context import Pass
from captfctl.reconcile.identity import Identity
from captfctl.reconcile.known import Found
from captfctl.runs.jobs import is_bookkept, is_finished
from captfctl.terraform.state.lock import read_lock
from captfctl.terraform.state.own_secrets import read_own_secrets
from captfctl.terraform.state.records import Records, read_records


def set_up(p: Pass, jobs: Sequence[Job]) -> Found:
    """First-visit conditions and the suffix; reads both records and, where that is possible, lock
    and state. `jobs` are the object's as cached."""
    _first_visit(p)
    if p.deleting:
        p.conditions.set_reason(Deleting.DELETING)
    status = p.obj.status
    status.observed_generation = p.obj.metadata.generation
    status.state_secret_suffix = p.owner.suffix
    return _read(p, jobs)


def _first_visit(p: Pass) -> None:
    p.conditions.set_default(Paused.NOT_PAUSED)
    p.conditions.set_default(Deleting.NOT_DELETING)
    p.conditions.set_default(DriftDetected.DRIFT_NOT_CHECKED)
    p.conditions.set_default(DeletionBlocked.NOT_BLOCKED)


def _read(p: Pass, jobs: Sequence[Job]) -> Found:
    """The records; with them the state where nothing that this pass will do comes before that.

    Elsewhere Jobs are read first, and the server is asked whether the cache shows all of them: the
    state may be what one left that ended meanwhile.
    """
    if not _nothing_runs(p, jobs):
        records = read_records(p.env.door, p.owner)
        return Found(
            jobs=jobs, records=records, identity=_identity(p, records), plans=plans.load(p)
        )
    lock = read_lock(p.env.door, p.owner)  # an earlier holder has left its state by then
    chunks = [secret.metadata.name for secret in p.env.cache.state_secrets(p.owner)]
    own = read_own_secrets(p.env.door, p.owner, chunks)
    identity = _identity(p, own.records)
    return Found(
        jobs=jobs,
        records=own.records,
        identity=identity,
        plans=plans.load(p),
        lock=lock,
        state=own.state,
    )


def _identity(p: Pass, records: Records) -> Identity:
    metas = [record.metadata for record in (records.applied, records.attempt) if record]
    return Identity.in_use(p.config.identity, mutable=p.rules.mutable, records=metas)


def _nothing_runs(p: Pass, jobs: Sequence[Job]) -> bool:
    """Nothing ran since the last pass, and `check_lag` will have nothing to ask for."""
    read = all(is_finished(job) and is_bookkept(job) for job in jobs)
    shown = p.obj.status.active_job is not None or keys.BLOCK_MOVE in p.obj.metadata.annotations
    return read and not (shown or p.deleting or p.paused)
