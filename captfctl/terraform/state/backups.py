"""Backups of a state: the sets as their Secrets tell of them, and whether one is intact
(state.md: Backups)."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from captfctl.cluster.door import Door, find
from captfctl.model import keys, names
from captfctl.model.meta import ObjectMeta, parse_time
from captfctl.model.owner import Owner
from captfctl.model.resources import SECRETS
from captfctl.terraform.state.reader import Content, Unreadable, content_of, digest_of
from runner import wire

_NUMBER = re.compile(r"[0-9]{1,19}")
_LARGEST_SERIAL = 2**63 - 1
_NEVER = 0.0
_LISTED = 16
_NO_SERIAL = "its serial is no number of 1 or more"


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupSet:
    """One backup, complete or not, as the metadata of its Secrets tells.

    `job` is the newest Job of the object when it was taken, `bytes` the compressed size,
    `resources` counts managed resource blocks, `inputs_hash` is the state's. `defect` says why it
    is not complete. `replaced`: it is what a restore replaced, which may be what was wrong.
    `chunks` are its Secrets in chunk order as far as they are there; `secrets` are all that carry
    its name.
    """

    name: str
    serial: int
    taken_at: datetime | None
    bytes: int
    resources: int
    lineage: str
    job: str
    digest: str
    inputs_hash: str
    defect: str
    count: int
    chunks: Mapping[int, ObjectMeta] = field(repr=False)
    secrets: tuple[ObjectMeta, ...] = field(repr=False)
    replaced: bool = False

    @property
    def complete(self) -> bool:
        """Whether every part is there. Only such a set counts as a backup."""
        return not self.defect

    @property
    def secret_names(self) -> tuple[str, ...]:
        """The names of its Secrets in chunk order."""
        return tuple(names.backup_chunk(self.name, chunk) for chunk in range(self.count))


@dataclass(frozen=True, slots=True)
class Damage:
    """Why a backup cannot be restored. `why` never holds anything of the state itself."""

    why: str


def backup_selector(owner: Owner) -> str:
    """What selects the backups of an object's state."""
    return f"{keys.STATE_BACKUP}=true,{keys.STATE_BACKUP_SUFFIX}={owner.suffix}"


def read_backups(door: Door, owner: Owner) -> tuple[BackupSet, ...]:
    """The backup sets of an object, newest first; read live, without their content."""
    selector = backup_selector(owner)
    found = door.list(SECRETS.metadata_only(), owner.namespace, labels=selector).items
    return backup_sets(secret.metadata for secret in found)


def backup_sets(secrets: Iterable[ObjectMeta]) -> tuple[BackupSet, ...]:
    """The sets that these Secrets make up, newest first."""
    grouped: dict[str, list[ObjectMeta]] = {}
    for meta in secrets:
        grouped.setdefault(meta.annotations.get(keys.BACKUP_SET) or meta.name, []).append(meta)
    found = [_set_of(name, metas) for name, metas in grouped.items()]
    return tuple(sorted(found, key=_newest_first))


def _newest_first(backup: BackupSet) -> tuple[float, int, str]:
    moment = backup.taken_at.timestamp() if backup.taken_at else _NEVER
    return -moment, -backup.serial, backup.name


def newest_complete(backups: Sequence[BackupSet], serial: int | None = None) -> BackupSet | None:
    """The newest complete set, of the serial where one is given. What a restore replaced is chosen
    only where there is nothing else."""
    good = [b for b in backups if b.complete and serial in (None, b.serial)]
    return min(good, key=lambda backup: backup.replaced, default=None)


def _set_of(name: str, metas: Sequence[ObjectMeta]) -> BackupSet:
    chunks = _chunks(name, metas)
    first = chunks[min(chunks)] if chunks else metas[0]
    notes = first.annotations
    serial = parse_serial(notes.get(keys.BACKUP_SERIAL, "")) or 0
    count = _number(notes.get(keys.BACKUP_CHUNKS, "")) if chunks else 0
    strangers = [meta.name for meta in metas if meta.name not in {m.name for m in chunks.values()}]
    return BackupSet(
        name=name,
        serial=serial,
        taken_at=parse_time(notes.get(keys.BACKUP_TAKEN_AT, "")) or first.creation_timestamp,
        bytes=_number(notes.get(keys.BACKUP_BYTES, "")),
        resources=_number(notes.get(keys.BACKUP_RESOURCES, "")),
        lineage=notes.get(keys.BACKUP_LINEAGE, ""),
        job=notes.get(keys.BACKUP_SOURCE_JOB, ""),
        digest=notes.get(keys.BACKUP_DIGEST, ""),
        inputs_hash=chunks[0].annotations.get(keys.INPUTS_HASH, "") if 0 in chunks else "",
        defect=notes.get(keys.BACKUP_DAMAGE) or _defect(serial, count, chunks, strangers),
        count=count,
        chunks=chunks,
        secrets=tuple(metas),
        replaced=keys.BACKUP_REPLACED in notes,
    )


def _chunks(name: str, metas: Iterable[ObjectMeta]) -> dict[int, ObjectMeta]:
    """The Secrets that have the name that their number must have."""
    found = {}
    for meta in metas:
        text = meta.annotations.get(keys.BACKUP_CHUNK, "")
        index = _number(text, missing=-1)
        if 0 <= index < wire.MOST_CHUNKS and meta.name == names.backup_chunk(name, index):
            found[index] = meta
    return found


def _defect(
    serial: int, count: int, chunks: Mapping[int, ObjectMeta], strangers: Sequence[str]
) -> str:
    if strangers:
        return f"Secret {min(strangers)} does not belong to it"
    if not 1 <= count <= wire.MOST_CHUNKS:
        return "it does not say of how many Secrets it is"
    missing = [str(index) for index in range(count) if index not in chunks]
    if missing:
        return f"chunk {', '.join(missing)} of {count} is missing (the first is chunk 0)"
    if len(chunks) > count:
        return f"chunk {max(chunks)} is too many: it says that it has {count}"
    return "" if serial else _NO_SERIAL


def parse_serial(text: str) -> int | None:
    """A serial as written by anybody; None when it is no decimal number of 1 or more."""
    number = _number(text.strip())
    return number if 1 <= number <= _LARGEST_SERIAL else None


def requested_serial(meta: ObjectMeta) -> int | None:
    """The serial that an object asks to have restored; None when it asks for none, or writes no
    serial."""
    return parse_serial(meta.annotations.get(keys.RESTORE_STATE, ""))


def serials_of(backups: Iterable[BackupSet]) -> str:
    """The serials of these backups, each once, as messages list them; empty for none."""
    serials = list(dict.fromkeys(str(backup.serial) for backup in backups))
    return ", ".join(serials[:_LISTED])


def _number(text: str, missing: int = 0) -> int:
    return int(text) if _NUMBER.fullmatch(text) else missing


def read_backup(door: Door, owner: Owner, backup: BackupSet) -> Content | Damage:
    """What a set holds, read live and compared with what is recorded of it."""
    if backup.defect:
        return Damage(backup.defect)
    pieces = []
    for name in backup.secret_names:
        secret = find(door, SECRETS, owner.namespace, name)
        if secret is None:
            return Damage(f"Secret {name} is gone")
        if keys.TFSTATE not in secret.data:
            return Damage(f"Secret {name} has no key {keys.TFSTATE}")
        pieces.append(secret.data[keys.TFSTATE])
    return _verified(backup, b"".join(pieces))


def _verified(backup: BackupSet, payload: bytes) -> Content | Damage:
    if digest_of(payload) != backup.digest:
        return Damage("its content is not the one that was recorded: the digest differs")
    content = content_of(payload)
    if isinstance(content, Unreadable):
        return Damage(content.message)
    for what, holds, says in (
        ("serial", content.serial, backup.serial),
        ("lineage", content.lineage, backup.lineage),
        ("number of resources", content.resources, backup.resources),
    ):
        if holds != says:
            return Damage(f"its {what} is {holds}, and {says} was recorded")
    return content
