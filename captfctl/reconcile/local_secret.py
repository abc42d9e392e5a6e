"""Keeping a Secret that objects of its own namespace name as their identity.

It is not copied, so a destroy needs the Secret itself (credentials.md: Deleting an identity).
"""

from captfctl.cluster.door import Door, find
from captfctl.cluster.errors import Conflict
from captfctl.model import keys
from captfctl.model.meta import ApiObject
from captfctl.model.resources import SECRETS

_ATTEMPTS = 5


def keep(door: Door, secret: ApiObject) -> None:
    """Give the Secret the finalizer, and the label by which it is found again.

    A Secret that is being deleted already, or is kept, stays as it is. Raises the door's errors.
    """
    found: ApiObject | None = secret
    for _ in range(_ATTEMPTS):
        if found is None or found.deleting or _kept(found):
            return
        try:
            _write(door, found, [*found.metadata.finalizers, keys.IDENTITY_PROTECTION], keys.TRUE)
        except Conflict:
            found = find(door, SECRETS, *secret.key)
        else:
            return
    raise Conflict(f"Secret {'/'.join(secret.key)} keeps changing while it is to be protected")


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
