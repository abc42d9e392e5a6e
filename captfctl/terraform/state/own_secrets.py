"""An object's records and state in one live read (state.md: Inputs records)."""

from collections.abc import Sequence
from dataclasses import dataclass

from captfctl.cluster.door import Door
from captfctl.cluster.reads import Window
from captfctl.model import keys, names
from captfctl.model.core import Secret
from captfctl.model.owner import Owner
from captfctl.model.resources import SECRETS
from captfctl.terraform.state.reader import State, Unreadable, state_of
from captfctl.terraform.state.record_store import (
    Records,
    applied_name,
    attempt_name,
    read_secret,
    records_of,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnSecrets:
    """What the Secrets say that a pass read, one after the other or all at once."""

    records: Records
    state: State | Unreadable


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
    return _own(owner, attempt, applied, [secret for secret in found if _is_state(secret)])


def find_own_secrets(reads: Window, owner: Owner) -> OwnSecrets | None:
    """The same by the names of the Secrets, for a state of one chunk; None when it is not that.

    An API server lists only when it has seen everything that was written to it meanwhile, which
    takes it up to 100 ms; these reads take one or two.
    """
    base = reads.find(SECRETS, owner.namespace, names.state_secret(owner.suffix))
    if base is None or not _is_state(base):
        return None
    attempt = reads.find(SECRETS, owner.namespace, attempt_name(owner))
    applied = reads.find(SECRETS, owner.namespace, applied_name(owner))
    found = _own(owner, attempt, applied, [base])
    return None if isinstance(found.state, Unreadable) else found


def records_ahead(reads: Window, owner: Owner) -> None:
    """Begin what `find_own_secrets` reads besides the state."""
    for name in (attempt_name(owner), applied_name(owner)):
        reads.ahead(SECRETS, owner.namespace, name)


def _own(
    owner: Owner, attempt: Secret | None, applied: Secret | None, chunks: Sequence[Secret]
) -> OwnSecrets:
    return OwnSecrets(records=records_of(attempt, applied), state=state_of(chunks, owner))


def _is_state(secret: Secret) -> bool:
    labels = secret.metadata.labels
    return labels.get(keys.TFSTATE) == keys.TRUE and labels.get(keys.TFSTATE_WORKSPACE) == "default"
