"""Taking a state over after a run: inputs hash, owner references, protection
(state.md: Adopting a state)."""

from dataclasses import dataclass, replace
from typing import Any

from captfctl.cluster.door import Door
from captfctl.cluster.errors import NotFound
from captfctl.model import keys
from captfctl.model.meta import ObjectMeta
from captfctl.model.owner import Owner
from captfctl.model.resources import SECRETS
from captfctl.terraform.state.protected import encode_references, with_owner, with_protection
from captfctl.terraform.state.reader import State, StateProblem, Unreadable


@dataclass(frozen=True, slots=True)
class AdoptionSource:
    """The finished Job whose state this is. `inputs_hash` None: the Job carries none.

    An empty hash is that of a restored backup that had none: the state then loses its own.
    """

    job: str
    inputs_hash: str | None


def adopt(door: Door, owner: Owner, state: State, source: AdoptionSource) -> State | Unreadable:
    """Stamp the state with the Job's inputs hash; gives the state as it is then.

    `Unreadable` with `NO_STATE` when its Secrets went away meanwhile. Never to be called while a
    Job of the object is active. The caller reports `StateAdopted` when the hash changed.
    A `Conflict` is raised: the next pass reads and stamps again.
    """
    wanted = source.inputs_hash
    if wanted is None or wanted == state.inputs_hash:
        return state
    chunks = []
    try:
        # The base last: its hash tells that the others are done.
        for index in reversed(range(len(state.chunks))):
            chunk = state.chunks[index]
            chunks.append(_stamp(door, owner, chunk, None if index else wanted))
    except NotFound:
        return Unreadable(StateProblem.NO_STATE, "the state Secrets were deleted meanwhile")
    return replace(state, inputs_hash=wanted, chunks=tuple(reversed(chunks)))


def _stamp(door: Door, owner: Owner, chunk: ObjectMeta, base_hash: str | None) -> ObjectMeta:
    metadata: dict[str, Any] = {"ownerReferences": encode_references(with_owner(chunk, owner))}
    if base_hash is not None:
        metadata["finalizers"] = with_protection(chunk)
        metadata["annotations"] = {keys.INPUTS_HASH: base_hash or None}
    patched = door.patch(
        SECRETS.metadata_only(),
        chunk.name,
        chunk.namespace,
        {"metadata": metadata},
        resource_version=chunk.resource_version,
    )
    return patched.metadata
