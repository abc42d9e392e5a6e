"""The beginning of a pass proper (10 §5)."""

from captfctl.jobs.reader import own_jobs
from captfctl.jobs.results import is_finished
from captfctl.model import names
from captfctl.model.conditions import FALSE, TRUE, UNKNOWN, Type
from captfctl.model.resources import LEASES, SECRETS, TERRAFORM_CLUSTER_IDENTITIES
from captfctl.reconcile.context import Pass
from captfctl.state import own_secrets
from captfctl.state.own_secrets import OwnSecrets, find_own_secrets, read_own_secrets
from captfctl.state.records import read_records


def set_up(p: Pass) -> None:
    """First-visit conditions, the suffix, the Jobs as cached, both records and the state."""
    changed = p.changed
    _first_visit(p)
    if p.deleting:
        p.conditions.set(Type.DELETING, TRUE, "Deleting")
    status = p.obj.status
    status.observed_generation = p.obj.metadata.generation
    status.state_secret_suffix = p.owner.suffix
    p.jobs = own_jobs(p.env.cache, p.owner)
    _read(p, soon=changed)
    record = p.records.attempt or p.records.applied
    p.inputs_bytes = sum(len(data) for data in record.files.values()) if record else 0


def _first_visit(p: Pass) -> None:
    p.conditions.set_default(Type.PAUSED, FALSE, "NotPaused")
    p.conditions.set_default(Type.DELETING, FALSE, "NotDeleting")
    p.conditions.set_default(Type.DRIFT_DETECTED, UNKNOWN, "DriftNotChecked")
    p.conditions.set_default(Type.DELETION_BLOCKED, FALSE, "NotBlocked")


def _read(p: Pass, *, soon: bool) -> None:
    """After the look at the Jobs: what ended before that has left its state. While a Job runs the
    state is not read, for nothing is decided."""
    if not all(is_finished(job) for job in p.jobs):
        p.records = read_records(p.env.door, p.owner)
        return
    found = _read_soon(p) if soon else None
    p.secrets = found or read_own_secrets(p.env.door, p.owner)
    p.records = p.secrets.records


def _read_soon(p: Pass) -> OwnSecrets | None:
    """In the least time rather than with the least work, where that gives the same: the cache knows
    of no further chunk. What comes later in the pass is begun, too."""
    p.shared.ahead(LEASES, p.owner.namespace, names.state_lock(p.owner.suffix))
    if not p.deleting and p.identity.name and not p.identity.local:
        p.shared.ahead(TERRAFORM_CLUSTER_IDENTITIES, "", p.identity.name)
        p.shared.ahead(SECRETS, p.owner.namespace, p.identity.secret)
    if list(p.env.cache.state_secrets(p.owner)) != [names.state_secret(p.owner.suffix)]:
        return None
    own_secrets.read_ahead(p.shared, p.owner)
    return find_own_secrets(p.shared, p.owner)
