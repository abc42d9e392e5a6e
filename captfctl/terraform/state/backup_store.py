"""Taking backups of a state and deleting those that are not kept any more (state.md: Backups)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from captfctl.cluster.door import Door, find
from captfctl.cluster.errors import AlreadyExists, Conflict
from captfctl.model import keys, names
from captfctl.model.core import Secret
from captfctl.model.meta import ObjectMeta, seconds_stamp
from captfctl.model.owner import Owner
from captfctl.model.resources import SECRETS
from captfctl.terraform.state.backups import BackupSet, backup_sets, read_backups
from captfctl.terraform.state.lock import read_lock
from captfctl.terraform.state.protected import delete_protected, with_owner
from captfctl.terraform.state.reader import (
    State,
    StateProblem,
    Unreadable,
    chunk_index,
    digest_of,
    state_of,
    state_selector,
)
from captfctl.terraform.state.unsaved import find_kept, kept_chunks, read_kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """When a backup is taken, and after which Job of the object. None: as its Secrets tell.
    `replaced`: it is taken because a restore replaces the state."""

    now: datetime | None = None
    job: str = ""
    replaced: bool = False


def backup_of(backups: Sequence[BackupSet], state: State) -> BackupSet | None:
    """The complete set that holds exactly this state."""
    for backup in backups:
        same = backup.serial == state.serial and backup.digest == state.digest
        if same and backup.complete:
            return backup
    return None


def take_backup(
    door: Door, owner: Owner, state: State, moment: Moment, backups: Sequence[BackupSet]
) -> BackupSet | None:
    """Copy the state, which no complete set holds yet, Secret by Secret.

    A set that an earlier pass did not finish is completed. None: the state is gone meanwhile.
    Raises the door's errors, and `Conflict` when the state was changed meanwhile.
    """
    chunks = []
    for meta in state.chunks:
        chunk = find(door, SECRETS, owner.namespace, meta.name)
        if chunk is None:
            return None
        chunks.append(chunk)
    if digest_of(b"".join(chunk.data.get(keys.TFSTATE, b"") for chunk in chunks)) != state.digest:
        raise Conflict(f"the state of {owner.namespace}/{owner.name} changed while it was copied")
    name = _free_name(owner, state, backups)
    copies = (_copy(owner, state, moment, name, *pair) for pair in enumerate(chunks))
    return backup_sets([_create(door, copy) for copy in copies])[0]


def _free_name(owner: Owner, state: State, backups: Sequence[BackupSet]) -> str:
    """A second set of the serial has another name; one of the same content is completed."""
    name = names.state_backup(owner.suffix, state.serial)
    taken = any(b.name == name and b.digest != state.digest for b in backups)
    return names.state_backup(owner.suffix, state.serial, state.digest) if taken else name


def _copy(
    owner: Owner, state: State, moment: Moment, name: str, index: int, chunk: Secret
) -> Secret:
    notes = {
        keys.BACKUP_SERIAL: str(state.serial),
        keys.BACKUP_LINEAGE: state.lineage,
        keys.BACKUP_TAKEN_AT: seconds_stamp(moment.now),
        keys.BACKUP_SOURCE_JOB: moment.job,
        keys.BACKUP_DIGEST: state.digest,
        keys.BACKUP_RESOURCES: str(state.resources),
        keys.BACKUP_BYTES: str(state.bytes),
        keys.BACKUP_SET: name,
        keys.BACKUP_CHUNK: str(index),
        keys.BACKUP_CHUNKS: str(len(state.chunks)),
        keys.INPUTS_HASH: "" if index else state.inputs_hash,
        keys.BACKUP_REPLACED: keys.TRUE if moment.replaced else "",
    }
    return _backup_secret(owner, names.backup_chunk(name, index), notes, chunk)


def _backup_secret(owner: Owner, name: str, notes: Mapping[str, str], chunk: Secret) -> Secret:
    meta = ObjectMeta(
        name=name,
        namespace=owner.namespace,
        labels={
            **owner.backend_labels,
            keys.STATE_BACKUP: keys.TRUE,
            keys.STATE_BACKUP_SUFFIX: owner.suffix,
        },
        annotations={key: value for key, value in notes.items() if value},
        finalizers=[keys.STATE_PROTECTION],
    )
    meta.owner_references = with_owner(meta, owner)
    return Secret(
        api_version="v1", kind="Secret", metadata=meta, type="Opaque", data=dict(chunk.data)
    )


def _create(door: Door, secret: Secret) -> ObjectMeta:
    meta = secret.metadata
    try:
        return door.create(SECRETS, secret, meta.namespace).metadata
    except AlreadyExists:
        found = find(door, SECRETS.metadata_only(), meta.namespace, meta.name)
        notes = found.metadata.annotations if found is not None else {}
        if found is None or notes.get(keys.BACKUP_DIGEST) != meta.annotations[keys.BACKUP_DIGEST]:
            raise Conflict(f"Secret {meta.namespace}/{meta.name} holds something else") from None
        return found.metadata


def make_room(door: Door, owner: Owner) -> None:
    """Keep the states that a restore is about to replace: the stored one, and one that a run could
    not store.

    One that can be read becomes a backup, unless it is one. One that cannot be read is copied as
    it is, and removed where the runtime would refuse to write over it. Every step may be repeated.
    Raises `Conflict` when somebody may work with what would have to be removed.
    """
    copy_kept(door, owner)
    listed = door.list(SECRETS, owner.namespace, labels=state_selector(owner)).items
    secrets = sorted(listed, key=lambda secret: _place(secret, owner))
    found = state_of(secrets, owner)
    if isinstance(found, State):
        _back_up(door, owner, found, secrets)
    elif found.problem is StateProblem.TOO_LARGE:  # the runtime can work with it
        _copy_unreadable(door, owner, secrets, found.message)
    elif found.problem is not StateProblem.NO_STATE:
        _refuse_locked(door, owner)
        _copy_unreadable(door, owner, secrets, found.message)
        for secret in secrets:
            delete_protected(door, secret.metadata)


def _place(secret: Secret, owner: Owner) -> tuple[bool, int]:
    """Where a Secret of a state belongs: by its number; what is called otherwise comes last."""
    index = chunk_index(secret.metadata.name, owner.suffix)
    return index is None, index or 0


def copy_kept(door: Door, owner: Owner) -> None:
    """Make a backup of the state that a run could not store, if there is one."""
    kept = find_kept(door, owner)
    if kept is None:
        return
    chunks = kept_chunks(door, owner, kept)
    found = read_kept(kept, chunks)
    if isinstance(found, Unreadable):
        _copy_unreadable(door, owner, chunks, f"Job {kept.job} could not store it; {found.message}")
    else:
        _back_up(door, owner, found[0], chunks, job=kept.job)


def _back_up(
    door: Door, owner: Owner, state: State, chunks: Sequence[Secret], *, job: str = ""
) -> None:
    """A state without a serial cannot be restored by it: it is copied where it has anything."""
    if state.serial < 1:
        if state.resources:
            _copy_unreadable(door, owner, chunks, "it has no serial")
        return
    backups = read_backups(door, owner)
    if backup_of(backups, state) is None:
        take_backup(door, owner, state, Moment(job=job, replaced=True), backups)


def _refuse_locked(door: Door, owner: Owner) -> None:
    lock = read_lock(door, owner)
    if lock.in_use:
        who = lock.who or "somebody"
        raise Conflict(
            f"the state of {owner.namespace}/{owner.name} cannot be read and would be removed for "
            f"the restore, but {who} holds its lock"
        )


def _copy_unreadable(door: Door, owner: Owner, secrets: Sequence[Secret], why: str) -> None:
    """A set that cannot be restored, and that has all of it in this order."""
    payload = b"".join(secret.data.get(keys.TFSTATE, b"") for secret in secrets)
    digest = digest_of(payload)
    name = names.damaged_state(owner.suffix, digest)
    for index, secret in enumerate(secrets):
        notes = {
            keys.BACKUP_DAMAGE: f"a state that was set aside: {why}",
            keys.BACKUP_DIGEST: digest,
            keys.BACKUP_BYTES: str(len(payload)),
            keys.BACKUP_SET: name,
            keys.BACKUP_CHUNK: str(index),
            keys.BACKUP_CHUNKS: str(len(secrets)),
        }
        _create(door, _backup_secret(owner, names.backup_chunk(name, index), notes, secret))


def unmark_replaced(door: Door, backup: BackupSet) -> None:
    """The set is not only what a restore replaced: it is the state again. The first chunk, which
    tells of the set, comes last."""
    patch = {"metadata": {"annotations": {keys.BACKUP_REPLACED: None}}}
    for _, meta in sorted(backup.chunks.items(), reverse=True):
        door.patch(SECRETS.metadata_only(), meta.name, meta.namespace, patch)


def surplus(
    backups: Sequence[BackupSet], state: State, *, keep: int, pending: int | None
) -> list[BackupSet]:
    """The sets to delete, of all, newest first.

    What is asked to be restored stays and does not count. The state that is there now counts as
    the newest, whenever it was taken. An incomplete set goes, unless it is the newest of all, which
    may be about to be completed.
    """
    others = [backup for backup in backups if backup.serial != pending]
    current = backup_of(others, state)
    complete = sorted((b for b in others if b.complete), key=lambda backup: backup is not current)
    broken = [backup for backup in others[1:] if not backup.complete]
    return [*complete[keep:], *broken]


def delete_backup(door: Door, backup: BackupSet) -> None:
    """Every Secret of the set; what is gone is fine. The first chunk goes last: it tells what the
    others are."""
    for meta in sorted(backup.secrets, key=lambda meta: meta.name, reverse=True):
        delete_protected(door, meta)
