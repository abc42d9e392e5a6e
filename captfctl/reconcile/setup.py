"""The beginning of a pass proper (10 §5)."""

from captfctl.jobs.reader import own_jobs
from captfctl.jobs.results import is_finished
from captfctl.model.conditions import FALSE, TRUE, UNKNOWN, Type
from captfctl.reconcile.context import Pass
from captfctl.state.own_secrets import read_own_secrets
from captfctl.state.records import read_records


def set_up(p: Pass) -> None:
    """First-visit conditions, the suffix, both records."""
    _first_visit(p)
    if p.deleting:
        p.conditions.set(Type.DELETING, TRUE, "Deleting")
    status = p.obj.status
    status.observed_generation = p.obj.metadata.generation
    status.state_secret_suffix = p.owner.suffix
    _read_secrets(p)
    record = p.records.attempt or p.records.applied
    p.inputs_bytes = sum(len(data) for data in record.files.values()) if record else 0


def _read_secrets(p: Pass) -> None:
    """The records, and with the same request the state, which a running Job keeps from being used:
    nothing is decided from it before the Job has ended."""
    if all(is_finished(job) for job in own_jobs(p.env.cache, p.owner)):
        p.secrets = read_own_secrets(p.env.door, p.owner)
        p.records = p.secrets.records
    else:
        p.records = read_records(p.env.door, p.owner)


def _first_visit(p: Pass) -> None:
    p.conditions.set_default(Type.PAUSED, FALSE, "NotPaused")
    p.conditions.set_default(Type.DELETING, FALSE, "NotDeleting")
    p.conditions.set_default(Type.DRIFT_DETECTED, UNKNOWN, "DriftNotChecked")
    p.conditions.set_default(Type.DELETION_BLOCKED, FALSE, "NotBlocked")
