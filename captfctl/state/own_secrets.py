"""An object's records and state in one live read (30 §16, 40 §4)."""

from dataclasses import dataclass, field

from captfctl.cluster.door import Door
from captfctl.model import keys
from captfctl.model.core import Secret
from captfctl.model.owner import Owner
from captfctl.model.resources import SECRETS
from captfctl.state.reader import State, Unreadable, state_of
from captfctl.state.record_store import (
    Records,
    applied_name,
    attempt_name,
    read_secret,
    record_of,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnSecrets:
    """The Secrets as they were at one moment."""

    owner: Owner
    records: Records
    chunks: tuple[Secret, ...] = field(repr=False)

    def state(self) -> State | Unreadable:
        return state_of(self.chunks, self.owner)


def read_own_secrets(door: Door, owner: Owner) -> OwnSecrets:
    """Read what carries the suffix of the object's state. Raises the door's errors.

    A record without that label (restored by hand, or written before it had one) costs a request of
    its own, and so does the question whether there is one at all.
    """
    labels = f"{keys.TFSTATE_SUFFIX}={owner.suffix}"
    found = door.list(SECRETS, owner.namespace, labels=labels).items
    named = {secret.metadata.name: secret for secret in found}

    def record(name: str) -> Secret | None:
        return named.get(name) or read_secret(door, owner, name)

    attempt, applied = record(attempt_name(owner)), record(applied_name(owner))
    return OwnSecrets(
        owner=owner,
        records=Records(
            attempt=record_of(attempt) if attempt else None,
            applied=record_of(applied) if applied else None,
        ),
        chunks=tuple(secret for secret in found if _is_state(secret)),
    )


def _is_state(secret: Secret) -> bool:
    labels = secret.metadata.labels
    return labels.get(keys.TFSTATE) == keys.TRUE and labels.get(keys.TFSTATE_WORKSPACE) == "default"
