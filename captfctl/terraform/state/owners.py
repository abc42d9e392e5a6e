"""Owner references of an object's Secrets, after a move or a re-creation
(state.md: Owner references)."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass

from captfctl.cluster.door import Door
from captfctl.cluster.errors import BadRequest, Forbidden, Invalid, NotFound
from captfctl.model import keys, names
from captfctl.model.meta import ObjectMeta
from captfctl.model.owner import Owner
from captfctl.model.resources import SECRETS
from captfctl.terraform.state.backups import backup_selector
from captfctl.terraform.state.protected import encode_references, with_owner
from captfctl.terraform.state.reader import State
from captfctl.terraform.state.unsaved import kept_selector

log = logging.getLogger(__name__)

# A write that the server refuses for good must not keep the object from going on.
_REFUSED = (Forbidden, Invalid, BadRequest)


@dataclass(frozen=True, slots=True)
class Repair:
    """How many references were written, and how many of them replaced an earlier object's."""

    written: int = 0
    replaced: int = 0


def repair_owner_references(door: Door, owner: Owner, state: State | None) -> Repair:
    """Give every Secret of the object exactly one reference to it.

    Without `state` its chunks are left out, as they must be while a Job holds the run lease. What
    is retained for another object stays as it is. What the server refuses for good is logged. Any
    other error is raised: the Secrets by which a pass sees that there is something to repair come
    last, so that the rest is tried again.
    """
    if not owner.uid:
        return Repair()
    written = replaced = 0
    for meta in _secrets(door, owner, state):
        if meta.labels.get(keys.RETAINED_FROM_UID) or meta.deletion_timestamp is not None:
            continue
        wanted = with_owner(meta, owner)
        if wanted == meta.owner_references or _has_own(meta, owner):
            continue
        try:
            _write(door, meta, encode_references(wanted))
        except NotFound:
            continue
        except _REFUSED as error:
            log.warning("owner references of %s/%s: %s", meta.namespace, meta.name, error)
            continue
        written += 1
        replaced += any(_earlier(ref.kind, ref.name, owner) for ref in meta.owner_references)
    return Repair(written, replaced)


def _earlier(kind: str, name: str, owner: Owner) -> bool:
    return kind == owner.kind and name == owner.name


def _has_own(meta: ObjectMeta, owner: Owner) -> bool:
    own = [ref for ref in meta.owner_references if _earlier(ref.kind, ref.name, owner)]
    return len(own) == 1 and own[0].uid == owner.uid


def _secrets(door: Door, owner: Owner, state: State | None) -> Iterable[ObjectMeta]:
    partial = SECRETS.metadata_only()
    backups = door.list(partial, owner.namespace, labels=backup_selector(owner)).items
    yield from (backup.metadata for backup in backups)
    kept = door.list(partial, owner.namespace, labels=kept_selector(owner)).items
    yield from (secret.metadata for secret in kept)
    for name in (
        names.plan_key(owner.kind, owner.name),
        names.attempt_record(owner.kind, owner.name),
        names.applied_record(owner.kind, owner.name),
    ):
        try:
            yield door.get(partial, name, owner.namespace).metadata
        except NotFound:
            continue
    if state is not None:
        yield from state.chunks


def _write(door: Door, meta: ObjectMeta, references: list[dict[str, object]]) -> None:
    door.patch(
        SECRETS.metadata_only(),
        meta.name,
        meta.namespace,
        {"metadata": {"ownerReferences": references}},
        resource_version=meta.resource_version,
    )
