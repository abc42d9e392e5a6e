"""The two inputs records: what the last started and the last successful apply ran
(state.md: Inputs records).

The attempt record also carries the marks that outlive Jobs: what may have been applied, what was
never confirmed, which images cannot be pulled (state.md: Marks of the attempt record).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from captfctl.cluster.door import Door
from captfctl.cluster.errors import NotFound
from captfctl.cluster.retry import retry_on_conflict
from captfctl.model import keys, names
from captfctl.model.core import Secret
from captfctl.model.meta import ObjectMeta
from captfctl.model.owner import Owner
from captfctl.model.resources import SECRETS
from captfctl.model.terraform import IdentityKind
from captfctl.terraform.state.protected import (
    encode_data,
    encode_references,
    with_owner,
    with_protection,
)
from runner import wire

Patch = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInputs:
    """What a run rendered. `identity_kind` None is a `TerraformClusterIdentity`."""

    job: str
    files: Mapping[str, bytes] = field(repr=False)
    inputs_hash: str
    image: str
    identity: str = ""
    identity_kind: IdentityKind | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One record as stored. `digest` is `repo@sha256:…`, empty when unknown."""

    inputs: RunInputs
    digest: str
    metadata: ObjectMeta

    @property
    def job(self) -> str:
        """The Job that ran these inputs; empty for a per-run Secret."""
        return self.inputs.job

    @property
    def files(self) -> Mapping[str, bytes]:
        """The rendered files by name."""
        return self.inputs.files

    @property
    def inputs_hash(self) -> str:
        """The hash of the inputs."""
        return self.inputs.inputs_hash

    @property
    def image(self) -> str:
        """The image as it was named."""
        return self.inputs.image

    @property
    def identity(self) -> str:
        return self.inputs.identity

    @property
    def identity_kind(self) -> IdentityKind | None:
        return self.inputs.identity_kind

    def annotation(self, key: str) -> str:
        """An annotation of the Secret; empty when it is not set."""
        return self.metadata.annotations.get(key, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptMarks:
    """The marks on the attempt record.

    `may_have_applied`: an attempt since the last success may have changed resources. `applied`: an
    apply succeeded once. `interrupted_apply`: the apply Job whose outcome is unconfirmed, or empty.
    `state_not_saved`: the Job whose last state was neither stored nor kept. `partial_exports`: the
    first Job that may have applied a part of changed exports of the cluster.
    `first_apply`: the object's applies began without any state, so that what is there is their own.
    """

    may_have_applied: bool = False
    applied: bool = False
    interrupted_apply: str = ""
    first_apply: bool = False
    state_not_saved: str = ""
    partial_exports: str = ""

    @classmethod
    def of(cls, record: Record) -> "AttemptMarks":
        """The marks that a record carries."""
        return cls(
            may_have_applied=record.annotation(keys.MAY_HAVE_APPLIED) == keys.TRUE,
            applied=record.annotation(keys.APPLIED) == keys.TRUE,
            interrupted_apply=record.annotation(keys.INTERRUPTED_APPLY)
            or record.annotation(keys.UNCONFIRMED_APPLY),
            first_apply=record.annotation(keys.FIRST_APPLY) == keys.TRUE,
            state_not_saved=record.annotation(keys.STATE_NOT_SAVED),
            partial_exports=record.annotation(keys.PARTIAL_CLUSTER_OUTPUTS),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """Both records as read at the beginning of a pass; either may be missing."""

    attempt: Record | None = None
    applied: Record | None = None

    @property
    def marks(self) -> AttemptMarks:
        """The marks of the attempt record; none without one."""
        return AttemptMarks.of(self.attempt) if self.attempt else AttemptMarks()

    @property
    def first_apply_unfinished(self) -> bool:
        """The object's own first apply began, and none has succeeded since."""
        return self.marks.first_apply and not self.marks.applied and self.applied is None

    def for_run(self, state_hash: str) -> Record | None:
        """The record that a destroy renders for a state with that inputs hash
        (state.md: Which record a destroy renders)."""
        attempt, applied = self.attempt, self.applied
        newer = attempt is not None and (applied is None or applied.job != attempt.job)
        if newer and self.marks.may_have_applied:
            return attempt
        for record in (applied, attempt):
            if record and state_hash and record.inputs_hash == state_hash:
                return record
        return applied or attempt


def record_of(secret: Secret) -> Record:
    """A record, or a per-run Secret, which has the same annotations but names no Job."""
    notes = secret.metadata.annotations
    inputs = RunInputs(
        job=notes.get(keys.JOB, ""),
        files={
            name: secret.data[name]
            for name in (wire.MAIN_FILE, wire.VARIABLES_FILE)
            if name in secret.data
        },
        inputs_hash=notes.get(keys.INPUTS_HASH, ""),
        image=notes.get(keys.IMAGE, ""),
        identity=notes.get(keys.IDENTITY, ""),
        identity_kind=IdentityKind.SECRET if notes.get(keys.IDENTITY_KIND) == "Secret" else None,
    )
    digest = notes.get(keys.IMAGE_DIGEST, "")
    return Record(inputs=inputs, digest=digest, metadata=secret.metadata)


def attempt_name(owner: Owner) -> str:
    """The name of the attempt record."""
    return names.attempt_record(owner.kind, owner.name)


def applied_name(owner: Owner) -> str:
    """The name of the applied record."""
    return names.applied_record(owner.kind, owner.name)


def read_records(door: Door, owner: Owner) -> Records:
    """Read both records, live."""
    attempt = read_secret(door, owner, attempt_name(owner))
    applied = read_secret(door, owner, applied_name(owner))
    return records_of(attempt, applied)


def records_of(attempt: Secret | None, applied: Secret | None) -> Records:
    """Both records, from their Secrets as they were read."""
    return Records(
        attempt=record_of(attempt) if attempt else None,
        applied=record_of(applied) if applied else None,
    )


def read_secret(door: Door, owner: Owner, name: str) -> Secret | None:
    """The Secret, read live; None when there is none."""
    try:
        return door.get(SECRETS, name, owner.namespace)
    except NotFound:
        return None


def write_attempt(
    door: Door,
    owner: Owner,
    inputs: RunInputs,
    *,
    first_apply: bool = False,
    lock_version: str = "",
    exports_hash: str = "",
) -> Record:
    """Record a started apply. Marks of earlier attempts stay.

    `first_apply`: there was neither a state nor a record before it. `lock_version`: of the state
    lock before its Job, which tells what became of a Job that is gone. `exports_hash`: of the
    exports that it renders, where it is guarded because they are others than those applied.
    """
    notes = _attempt_annotations(inputs)
    notes[keys.CLUSTER_OUTPUTS_HASH] = exports_hash or None
    notes[keys.STATE_LOCK_VERSION] = lock_version or None
    if first_apply:
        notes[keys.FIRST_APPLY] = keys.TRUE
    return _write(door, owner, attempt_name(owner), inputs, notes)


def write_applied(door: Door, owner: Owner, inputs: RunInputs, digest: str) -> Record:
    """Record a successful apply; `digest` is empty when the image's is unknown."""
    annotations = {**_attempt_annotations(inputs), keys.IMAGE_DIGEST: digest or None}
    return _write(door, owner, applied_name(owner), inputs, annotations)


def _attempt_annotations(inputs: RunInputs) -> dict[str, str | None]:
    kind = inputs.identity_kind.value if inputs.identity_kind == "Secret" else None
    return {
        keys.IMAGE: inputs.image,
        keys.IDENTITY: inputs.identity or None,
        keys.IDENTITY_KIND: kind,
        keys.INPUTS_HASH: inputs.inputs_hash,
        keys.JOB: inputs.job,
    }


def _write(
    door: Door, owner: Owner, name: str, inputs: RunInputs, notes: Mapping[str, str | None]
) -> Record:
    """Create the record, or bring it to these inputs."""

    def write() -> Secret:
        found = read_secret(door, owner, name)
        if found is None:
            return door.create(SECRETS, _new(owner, name, inputs, notes), owner.namespace)
        return door.patch(
            SECRETS,
            name,
            owner.namespace,
            _update(found, owner, inputs, notes),
            resource_version=found.metadata.resource_version,
        )

    return record_of(retry_on_conflict(f"Secret {owner.namespace}/{name}", write))


def record_labels(owner: Owner) -> dict[str, str]:
    """With the label of the state's Secrets, so that one request reads all of them."""
    return {keys.MANAGED: keys.TRUE, **owner.labels, keys.TFSTATE_SUFFIX: owner.suffix}


def _new(owner: Owner, name: str, inputs: RunInputs, notes: Mapping[str, str | None]) -> Secret:
    meta = ObjectMeta(
        name=name,
        namespace=owner.namespace,
        labels=record_labels(owner),
        annotations={key: value for key, value in notes.items() if value is not None},
        finalizers=[keys.STATE_PROTECTION],
    )
    meta.owner_references = with_owner(meta, owner)
    return Secret(
        api_version="v1", kind="Secret", metadata=meta, type="Opaque", data=dict(inputs.files)
    )


def _update(
    found: Secret, owner: Owner, inputs: RunInputs, notes: Mapping[str, str | None]
) -> Patch:
    data: dict[str, bytes | None] = dict.fromkeys(found.data)
    data.update(inputs.files)
    only_owner = [ref for ref in with_owner(found.metadata, owner) if ref.uid == owner.uid]
    return {
        "metadata": {
            "labels": record_labels(owner),
            "annotations": dict(notes),
            "finalizers": with_protection(found.metadata),
            "ownerReferences": encode_references(only_owner),
        },
        "data": encode_data(data),
    }


Change = Callable[[Record], dict[str, str | None]]


def change_marks(door: Door, owner: Owner, change: Change) -> Record | None:
    """Change annotations of the attempt record, read live; None when there is no record.

    `change` gives the annotations to set, None removes one; nothing is written when it gives
    nothing that differs.
    """
    name = attempt_name(owner)

    def write() -> Record | None:
        found = read_secret(door, owner, name)
        if found is None:
            return None
        record = record_of(found)
        wanted = change(record)
        present = record.metadata.annotations
        if all(present.get(key) == value for key, value in wanted.items()):
            return record
        patched = door.patch(
            SECRETS,
            name,
            owner.namespace,
            {"metadata": {"annotations": wanted}},
            resource_version=found.metadata.resource_version,
        )
        return record_of(patched)

    return retry_on_conflict(f"Secret {owner.namespace}/{name}", write)
