"""The beginning of a pass proper (reconcile.md: Setup)."""

from captfctl.model import keys
from captfctl.model.reasons import Deleting, DeletionBlocked, DriftDetected, Paused
from captfctl.reconcile.context import Pass
from captfctl.runs.jobs import is_bookkept, is_finished
from captfctl.runs.reader import own_jobs
from captfctl.terraform.state.lock import read_lock
from captfctl.terraform.state.own_secrets import read_own_secrets
from captfctl.terraform.state.records import read_records


def set_up(p: Pass) -> None:
    """First-visit conditions, the suffix, the Jobs as cached, both records and the state."""
    _first_visit(p)
    if p.deleting:
        p.conditions.set_reason(Deleting.DELETING)
    status = p.obj.status
    status.observed_generation = p.obj.metadata.generation
    status.state_secret_suffix = p.owner.suffix
    p.jobs = own_jobs(p.env.cache, p.owner)
    _read(p)
    record = p.records.attempt or p.records.applied
    p.inputs_bytes = sum(len(data) for data in record.files.values()) if record else 0


def _first_visit(p: Pass) -> None:
    p.conditions.set_default(Paused.NOT_PAUSED)
    p.conditions.set_default(Deleting.NOT_DELETING)
    p.conditions.set_default(DriftDetected.DRIFT_NOT_CHECKED)
    p.conditions.set_default(DeletionBlocked.NOT_BLOCKED)


def _read(p: Pass) -> None:
    """The records; with them the state where nothing that this pass will do comes before that.

    Elsewhere Jobs are read first, and the server is asked whether the cache shows all of them: the
    state may be what one left that ended meanwhile.
    """
    if not _nothing_runs(p):
        p.records = read_records(p.env.door, p.owner)
        return
    p.lock = read_lock(p.env.door, p.owner)  # an earlier holder has left its state by then
    chunks = [secret.metadata.name for secret in p.env.cache.state_secrets(p.owner)]
    own = read_own_secrets(p.env.door, p.owner, chunks)
    p.records, p.state_read = own.records, own.state


def _nothing_runs(p: Pass) -> bool:
    """Nothing ran since the last pass, and `check_lag` will have nothing to ask for."""
    read = all(is_finished(job) and is_bookkept(job) for job in p.jobs)
    shown = p.obj.status.active_job is not None or keys.BLOCK_MOVE in p.obj.metadata.annotations
    return read and not (shown or p.deleting or p.paused)
