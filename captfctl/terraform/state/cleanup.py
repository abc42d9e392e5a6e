"""Removing what an object's runs left behind (deletion.md: Cleaning up).

Everything here can be repeated, finds nothing the second time, and raises any error but
`NotFound`: the object's finalizer stays until all of it is gone.
"""

from captfctl.cluster.door import Door, delete_as_read
from captfctl.cluster.errors import Conflict, NotFound
from captfctl.model import keys, names
from captfctl.model.owner import Owner
from captfctl.model.resources import LEASES, SECRETS
from captfctl.terraform.state.backups import backup_selector
from captfctl.terraform.state.protected import delete_protected
from captfctl.terraform.state.reader import state_selector
from captfctl.terraform.state.unsaved import delete_kept


def delete_state(door: Door, owner: Owner) -> None:
    """Every state Secret, every backup and a kept state one by one, then the lock Lease (C1).

    A later object of the name would take a backup for a sign of a lost state of its own.
    """
    _delete_selected(door, owner, state_selector(owner))
    _delete_selected(door, owner, backup_selector(owner))
    delete_kept(door, owner)
    delete_lock(door, owner)


def _delete_selected(door: Door, owner: Owner, selector: str) -> None:
    found = door.list(SECRETS.metadata_only(), owner.namespace, labels=selector).items
    for secret in found:
        delete_protected(door, secret.metadata)


def delete_lock(door: Door, owner: Owner) -> None:
    """The state lock Lease."""
    try:
        door.delete(LEASES, names.state_lock(owner.suffix), owner.namespace)
    except NotFound:
        return


def delete_records(door: Door, owner: Owner) -> None:
    """Both inputs records (C2)."""
    for name in (
        names.attempt_record(owner.kind, owner.name),
        names.applied_record(owner.kind, owner.name),
    ):
        try:
            secret = door.get(SECRETS.metadata_only(), name, owner.namespace)
        except NotFound:
            continue
        delete_protected(door, secret.metadata)


def delete_plan_key(door: Door, owner: Owner) -> None:
    """The key of the plan fingerprint (R1)."""
    try:
        door.delete(SECRETS, names.plan_key(owner.kind, owner.name), owner.namespace)
    except NotFound:
        return


def delete_leases(door: Door, owner: Owner) -> None:
    """Every run or cluster Lease with the object's labels, also a held one (R2).

    The state lock Lease has no lease label and is not among them.
    """
    leases = door.list(LEASES, owner.namespace, labels=f"{owner.selector},{keys.LEASE}").items
    for lease in leases:
        try:
            delete_as_read(door, LEASES, lease)
        except (NotFound, Conflict):
            continue
