"""Keeping a Secret that objects of its own namespace name as their identity.

It is not copied, so a destroy needs the Secret itself (credentials.md: Deleting an identity).
"""

from captfctl.cluster.door import Door, find
from captfctl.cluster.retry import retry_on_conflict
from captfctl.model import keys
from captfctl.model.meta import ApiObject
from captfctl.model.resources import SECRETS


def keep(door: Door, secret: ApiObject) -> None:
    """Give the Secret the finalizer, and the label by which it is found again.

    A Secret that is being deleted already, or is kept, stays as it is. Raises the door's errors.
    """

    def write() -> None:
        found = find(door, SECRETS.metadata_only(), *secret.key)
        if found is not None and not (found.deleting or _kept(found)):
            _write(door, found, [*found.metadata.finalizers, keys.IDENTITY_PROTECTION], keys.TRUE)

    if not (secret.deleting or _kept(secret)):
        retry_on_conflict(f"Secret {'/'.join(secret.key)}", write)


def release(door: Door, secret: ApiObject) -> None:
    """Take off what `keep` put on. Raises `Conflict` when the Secret has changed."""
    finalizers = [f for f in secret.metadata.finalizers if f != keys.IDENTITY_PROTECTION]
    _write(door, secret, finalizers, None)


def _kept(secret: ApiObject) -> bool:
    meta = secret.metadata
    labelled = meta.labels.get(keys.IDENTITY_IN_USE) == keys.TRUE
    return labelled and keys.IDENTITY_PROTECTION in meta.finalizers


def _write(door: Door, secret: ApiObject, finalizers: list[str], label: str | None) -> None:
    meta = secret.metadata
    wanted = list(dict.fromkeys(finalizers))
    change = {"metadata": {"finalizers": wanted, "labels": {keys.IDENTITY_IN_USE: label}}}
    door.patch(
        SECRETS.metadata_only(),
        meta.name,
        meta.namespace,
        change,
        resource_version=meta.resource_version,
    )
