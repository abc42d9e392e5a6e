"""States that a run made and could not store (state.md: A state that a run could not store)."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from captfctl.cluster.door import Door, find
from captfctl.cluster.errors import NotFound
from captfctl.model import keys
from captfctl.model.core import Secret
from captfctl.model.meta import ObjectMeta
from captfctl.model.owner import Owner
from captfctl.model.resources import SECRETS
from captfctl.terraform.state.reader import Content, State, StateProblem, Unreadable, state_in
from runner import wire

_METADATA = SECRETS.metadata_only()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptState:
    """A state in Secrets of its own. `secrets` are their names in the order of their content."""

    job: str
    serial: str
    resources: str
    secrets: tuple[str, ...]

    def __str__(self) -> str:
        return f"serial {self.serial} with {self.resources} resources"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsaved:
    """What is known of a state that was not stored; false when there is none.

    `kept`: the next run stores it. `lost` is the Job whose state is nowhere.
    """

    kept: KeptState | None = None
    lost: str = ""

    def __bool__(self) -> bool:
        return self.kept is not None or bool(self.lost)

    @property
    def job(self) -> str:
        """The Job whose state it is."""
        return self.kept.job if self.kept is not None else self.lost

    @property
    def secrets(self) -> tuple[str, ...]:
        """The Secrets that the next run is given."""
        return self.kept.secrets if self.kept is not None else ()


def kept_selector(owner: Owner) -> str:
    """What selects the Secrets that keep the object's unsaved state."""
    return f"{keys.UNSAVED_STATE}={owner.suffix}"


def find_kept(door: Door, owner: Owner) -> KeptState | None:
    """The state that is kept for the object, read live. Its base is written last: where that is,
    the others are."""
    found = find(door, _METADATA, owner.namespace, wire.kept_secret(owner.suffix))
    if found is None or found.deleting or _of_another(found.metadata, owner):
        return None
    notes = found.metadata.annotations
    parts = notes.get(wire.KEPT_PARTS, "")
    count = int(parts) if parts.isascii() and parts.isdigit() else 1
    count = min(max(count, 1), wire.MOST_CHUNKS)
    return KeptState(
        job=notes.get(wire.KEPT_JOB, ""),
        serial=notes.get(wire.KEPT_SERIAL, "unknown"),
        resources=notes.get(wire.KEPT_RESOURCES, "unknown"),
        secrets=tuple(wire.kept_secret(owner.suffix, part) for part in range(count)),
    )


def kept_chunks(door: Door, owner: Owner, kept: KeptState) -> list[Secret]:
    """The Secrets of a kept state, read live, as far as they are there."""
    found = (find(door, SECRETS, owner.namespace, name) for name in kept.secrets)
    return [secret for secret in found if secret is not None]


def read_kept(kept: KeptState, chunks: Sequence[Secret]) -> tuple[State, Content] | Unreadable:
    """What a kept state holds, from its Secrets as they were read."""
    if len(chunks) < len(kept.secrets):
        text = f"only {len(chunks)} of its {len(kept.secrets)} Secrets are there"
        return Unreadable(StateProblem.INCONSISTENT, text)
    return state_in(chunks)


def _of_another(meta: ObjectMeta, owner: Owner) -> bool:
    """Whether an earlier object of the name kept it for itself (state.md: Retained state)."""
    return meta.labels.get(keys.RETAINED_FROM_UID, owner.uid) != owner.uid


def delete_kept(door: Door, owner: Owner) -> None:
    """Give the kept state up, the base first: without it the others mean nothing."""
    listed = door.list(_METADATA, owner.namespace, labels=kept_selector(owner)).items
    base = wire.kept_secret(owner.suffix)
    for secret in sorted(listed, key=lambda one: one.metadata.name != base):
        with suppress(NotFound):
            door.delete(SECRETS, secret.metadata.name, owner.namespace)
