"""An object's records and state in one live read (state.md: Inputs records)."""

from collections.abc import Sequence
from dataclasses import dataclass

from captfctl.cluster.door import Door, find
from captfctl.model import keys
from captfctl.model.core import Secret
from captfctl.model.owner import Owner
from captfctl.model.resources import SECRETS
from captfctl.terraform.state.reader import State, Unreadable, read_state, state_of
from captfctl.terraform.state.record_store import Records, applied_name, attempt_name, records_of


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnSecrets:
    """What the Secrets say that a pass read, one after the other or all at once."""

    records: Records
    state: State | Unreadable


def read_own_secrets(door: Door, owner: Owner, chunks: Sequence[str]) -> OwnSecrets:
    """Read the records and the state. Raises the door's errors.

    `chunks` are the names of the state's Secrets as cached: each is read by its name, which takes
    an API server a millisecond or two. Only when these are no whole state is it asked for a list,
    which it answers once it has seen everything that was written to it, up to 100 ms later.
    """

    def read(name: str) -> Secret | None:
        return find(door, SECRETS, owner.namespace, name)

    named = [secret for name in chunks if (secret := read(name)) is not None]
    state = state_of([secret for secret in named if _is_state(secret)], owner)
    records = records_of(read(attempt_name(owner)), read(applied_name(owner)))
    if not isinstance(state, State):
        state = read_state(door, owner)
    return OwnSecrets(records=records, state=state)


def _is_state(secret: Secret) -> bool:
    labels = secret.metadata.labels
    return labels.get(keys.TFSTATE) == keys.TRUE and labels.get(keys.TFSTATE_WORKSPACE) == "default"
