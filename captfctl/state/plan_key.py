"""The key that plan fingerprints are made with (41 §6.2)."""

from collections.abc import Callable

from captfctl.cluster.door import Door
from captfctl.cluster.errors import AlreadyExists, NotFound
from captfctl.model import keys, names
from captfctl.model.core import Secret
from captfctl.model.meta import ObjectMeta
from captfctl.model.owner import Owner
from captfctl.model.resources import SECRETS

KEY_BYTES = 32
KEY_FIELD = "key"


def ensure_plan_key(door: Door, owner: Owner, random_bytes: Callable[[int], bytes]) -> None:
    """Create the Secret unless it exists. It is never rotated: waiting plans depend on it."""
    name = names.plan_key(owner.kind, owner.name)
    try:
        door.get(SECRETS.metadata_only(), name, owner.namespace)
    except NotFound:
        pass
    else:
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
        data={KEY_FIELD: random_bytes(KEY_BYTES)},
    )
    try:
        door.create(SECRETS, secret, owner.namespace)
    except AlreadyExists:
        return
