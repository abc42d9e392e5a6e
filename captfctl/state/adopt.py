"""Taking a state over after a run: hash, owner references, protection (40 §7)."""

from dataclasses import dataclass

from captfctl.cluster.door import Door
from captfctl.model.owner import Owner
from captfctl.state.reader import State, Unreadable


@dataclass(frozen=True, slots=True)
class AdoptionSource:
    """The finished Job whose state this is. `inputs_hash` None: the Job carries none.

    An empty hash is that of a restored backup that had none: the state then loses its own.
    """

    job: str
    inputs_hash: str | None


def adopt(door: Door, owner: Owner, state: State, source: AdoptionSource) -> State | Unreadable:
    """Stamp the state with the Job's inputs hash; the state as it is then.

    `Unreadable` with `NO_STATE` when the Secrets went away meanwhile. Never to be called while a
    Job of the object is active. The caller reports `StateAdopted` when the hash changed.
    """
    raise NotImplementedError
