"""The copy of an identity's Secret in a namespace that uses it
(credentials.md: The copy of the credentials)."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from captfctl.cluster.door import Door, delete_as_read, find
from captfctl.cluster.errors import NotFound
from captfctl.cluster.retry import retry_on_conflict
from captfctl.errors import CaptfError
from captfctl.model import keys
from captfctl.model.core import Secret
from captfctl.model.meta import ApiObject, ObjectMeta, OwnerReference, PartialObject
from captfctl.model.names import credentials_mirror
from captfctl.model.owner import Owner
from captfctl.model.resources import SECRETS


class ForeignMirror(CaptfError):
    """A Secret that is not this identity's mirror has the mirror's name; it is left alone."""

    code = "ForeignMirror"


@dataclass(frozen=True, slots=True)
class Mirrored:
    """What `ensure` did. `repaired`: a reference to an earlier object of the name was replaced."""

    created: bool = False
    repaired: bool = False


def source_hash(data: Mapping[str, bytes]) -> str:
    """SHA-256 of the sorted keys and values, each after its length in eight bytes."""
    digest = hashlib.sha256()
    for key in sorted(data, key=str.encode):
        for part in (key.encode(), data[key]):
            digest.update(len(part).to_bytes(8, "big"))
            digest.update(part)
    return digest.hexdigest()


def ensure(door: Door, identity: str, source: Secret, owner: Owner) -> Mirrored:
    """Bring the mirror in the owner's namespace up to date and add the owner to its users.

    Writes nothing when nothing differs. Raises `ForeignMirror`, and the door's errors.
    """
    name = credentials_mirror(identity)
    reference = _reference(owner)

    def write() -> Mirrored:
        existing = find(door, SECRETS, owner.namespace, name)
        if existing is not None:
            return _update(door, existing, identity, source, reference)
        fresh = _fresh(name, identity, source, owner.namespace, reference)
        door.create(SECRETS, fresh, owner.namespace)
        return Mirrored(created=True)

    return retry_on_conflict(f"Secret {owner.namespace}/{name}", write)


def is_up_to_date(seen: PartialObject, identity: str, source: Secret, owner: Owner) -> bool:
    """Whether the mirror, as cached, is one that `ensure` would leave as it is.

    It may be gone since: a copy with this user in it goes only when its user or its right does.
    """
    meta = seen.metadata
    return (
        _is_ours(seen, identity)
        and not seen.deleting
        and meta.labels.get(keys.MANAGED) == keys.TRUE
        and meta.annotations.get(keys.SOURCE_HASH) == source_hash(source.data)
        and serves(seen, owner)
    )


def _reference(owner: Owner) -> OwnerReference:
    # Written out as false: it says that the mirror never holds its user's deletion back.
    bare = owner.owner_reference()
    return OwnerReference(
        api_version=bare.api_version,
        kind=bare.kind,
        name=bare.name,
        uid=bare.uid,
        block_owner_deletion=False,
    )


def _fresh(
    name: str, identity: str, source: Secret, namespace: str, reference: OwnerReference
) -> Secret:
    return Secret(
        api_version=SECRETS.api_version,
        kind=SECRETS.kind,
        type="Opaque",
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            labels={keys.MIRRORED: keys.TRUE, keys.MANAGED: keys.TRUE},
            annotations={keys.SOURCE_HASH: source_hash(source.data), keys.IDENTITY: identity},
            owner_references=[reference],
        ),
        data=dict(source.data),
    )


def _update(
    door: Door, mirror: Secret, identity: str, source: Secret, reference: OwnerReference
) -> Mirrored:
    _require_ours(mirror, identity)
    meta, wanted = mirror.metadata, source_hash(source.data)
    changed = repaired = False
    if meta.annotations.get(keys.SOURCE_HASH) != wanted:
        mirror.data = dict(source.data)
        meta.annotations[keys.SOURCE_HASH] = wanted
        changed = True
    if meta.labels.get(keys.MANAGED) != keys.TRUE:
        meta.labels[keys.MANAGED] = keys.TRUE
        changed = True
    if reference.uid:
        added, repaired = _adopt(meta.owner_references, reference)
        changed = changed or added or repaired
    if changed:
        door.update(SECRETS, mirror)
    return Mirrored(repaired=repaired)


def _is_ours(mirror: ApiObject, identity: str) -> bool:
    meta = mirror.metadata
    marked = meta.labels.get(keys.MIRRORED) == keys.TRUE
    return marked and meta.annotations.get(keys.IDENTITY) == identity


def _require_ours(mirror: Secret, identity: str) -> None:
    if not _is_ours(mirror, identity):
        raise ForeignMirror(
            f"Secret {mirror.metadata.namespace}/{mirror.metadata.name} is not the copy of "
            f"identity {identity}",
            why="it was made by somebody else, so it is not overwritten",
            do="rename or delete that Secret",
        )


def existing(door: Door, namespace: str, identity: str) -> Secret | None:
    """The identity's mirror in a namespace; None also when a Secret of its name is another's."""
    mirror = find(door, SECRETS, namespace, credentials_mirror(identity))
    return mirror if mirror is not None and _is_ours(mirror, identity) else None


def serves(mirror: ApiObject, owner: Owner) -> bool:
    """Whether the owner is among the mirror's users."""
    return any(reference.uid == owner.uid for reference in mirror.metadata.owner_references)


def _adopt(references: list[OwnerReference], mine: OwnerReference) -> tuple[bool, bool]:
    """Add `mine`, or put it in the place of an earlier object's of the same name."""
    for index, other in enumerate(references):
        if other.uid == mine.uid:
            return False, False
        if (other.kind, other.name) == (mine.kind, mine.name):
            references[index] = mine
            return False, True
    references.append(mine)
    return True, False


def revoke(door: Door, namespace: str, identity: str) -> bool:
    """Delete the mirror, also while it has users. False when there is none, or it is not ours."""
    mirror = existing(door, namespace, identity)
    if mirror is None:
        return False
    try:
        door.delete(SECRETS, mirror.metadata.name, namespace, uid=mirror.metadata.uid)
    except NotFound:
        return False
    return True


def drop_user(door: Door, identity: str, owner: Owner) -> bool:
    """Take the owner off the mirror's users; tell whether the mirror went with its last one.

    Raises `Conflict` when the mirror changed meanwhile: another user may have come.
    """
    mirror = existing(door, owner.namespace, identity)
    if mirror is None:
        return False
    meta = mirror.metadata
    left = [ref for ref in meta.owner_references if ref.uid != owner.uid]
    if len(left) == len(meta.owner_references):
        return False
    try:
        return _write_users(door, mirror, left)
    except NotFound:
        return False


def _write_users(door: Door, mirror: Secret, users: list[OwnerReference]) -> bool:
    meta = mirror.metadata
    if users:
        meta.owner_references = users
        door.update(SECRETS, mirror)
        return False
    delete_as_read(door, SECRETS, mirror)
    return True
