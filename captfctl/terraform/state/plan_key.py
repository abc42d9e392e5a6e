"""The key that plan fingerprints are made with (state.md: The plan key)."""

from collections.abc import Callable

from captfctl.cluster.door import Door, find
from captfctl.cluster.errors import AlreadyExists
from captfctl.model import keys, names
from captfctl.model.core import Secret
from captfctl.model.meta import ObjectMeta
from captfctl.model.owner import Owner
from captfctl.model.resources import SECRETS
from runner import wire

PLAN_KEYS = SECRETS.metadata_only()
"""Whether there is one is all that is read of it."""


def ensure_plan_key(door: Door, owner: Owner, random_bytes: Callable[[int], bytes]) -> None:
    """Create the Secret unless it exists. It is never rotated: waiting plans depend on it."""
    name = names.plan_key(owner.kind, owner.name)
    if find(door, PLAN_KEYS, owner.namespace, name) is not None:
        return
    secret = Secret(
        api_version="v1",
        kind="Secret",
        metadata=ObjectMeta(
            name=name,
            namespace=owner.namespace,
            labels={keys.MANAGED: keys.TRUE, **owner.labels},
            owner_references=[owner.owner_reference()] if owner.uid else [],
        ),
        type="Opaque",
        data={wire.PLAN_KEY_NAME: random_bytes(wire.PLAN_KEY_BYTES)},
    )
    try:
        door.create(SECRETS, secret, owner.namespace)
    except AlreadyExists:
        return
