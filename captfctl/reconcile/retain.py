"""Keeping the state of an object that goes; finding what an earlier one kept
(state.md: Retained state)."""

from collections import Counter
from collections.abc import Iterable

from captfctl.cluster.errors import NotFound
from captfctl.model import keys, names
from captfctl.model.meta import ObjectMeta
from captfctl.model.resources import SECRETS
from captfctl.reconcile.context import Pass
from captfctl.terraform.state.cleanup import delete_leases, delete_lock, delete_plan_key
from captfctl.terraform.state.protected import with_protection
from captfctl.terraform.state.reader import State, Unreadable
from captfctl.terraform.state.records import Records, mark_adopted

_METADATA = SECRETS.metadata_only()


def retain(p: Pass) -> str:
    """Disown and label state, backups and records, then remove what nobody needs any more.

    Returns what was kept, in words. Each step may be repeated.
    """
    kept: Counter[str] = Counter()
    for meta in _secrets(p):
        what = _kept_as(p, meta)
        if what and meta.labels.get(keys.RETAINED_FROM_UID, p.owner.uid) == p.owner.uid:
            _disown(p, meta)
            kept[what] += 1
    delete_lock(p.env.door, p.owner)
    delete_plan_key(p.env.door, p.owner)
    delete_leases(p.env.door, p.owner)
    unsaved = f", {kept['unsaved state']} of a state not stored" if kept["unsaved state"] else ""
    return (
        f"kept {kept['state']} state, {kept['backup']} backup and {kept['inputs']} inputs Secrets"
        f"{unsaved}, labelled {keys.RETAINED_FROM_UID}={p.owner.uid}"
    )


_ORDER = ("inputs", "state")


def _secrets(p: Pass, label: str = "") -> list[ObjectMeta]:
    """The object's Secrets, those first that every pass reads: they tell that a Retain was cut
    short. Taken back is all of it in the other order."""
    labels = ",".join(part for part in (p.owner.selector, label) if part)
    found = p.env.door.list(_METADATA, p.owner.namespace, labels=labels).items
    metas = [secret.metadata for secret in found]
    return sorted(metas, key=lambda meta: _kept_as(p, meta) not in _ORDER)


def _kept_as(p: Pass, meta: ObjectMeta) -> str:
    if (
        meta.labels.get(keys.TFSTATE) == keys.TRUE
        and meta.labels.get(keys.TFSTATE_SUFFIX) == p.owner.suffix
    ):
        return "state"
    if meta.labels.get(keys.STATE_BACKUP_SUFFIX) == p.owner.suffix:
        return "backup"
    if meta.labels.get(keys.UNSAVED_STATE) == p.owner.suffix:
        return "unsaved state"
    owner = p.owner
    records = (
        names.attempt_record(owner.kind, owner.name),
        names.applied_record(owner.kind, owner.name),
    )
    return "inputs" if meta.name in records else ""


def _disown(p: Pass, meta: ObjectMeta) -> None:
    """Without the protection: a person may delete the Secret to discard what it stands for."""
    _patch(
        p,
        meta,
        owners=[ref for ref in meta.owner_references if ref.uid != p.owner.uid],
        finalizers=[f for f in meta.finalizers if f != keys.STATE_PROTECTION],
        label=p.owner.uid,
    )


def retained_uid(p: Pass, records: Records, found: State | Unreadable) -> str:
    """The UID of an earlier object that kept one of this object's Secrets; empty when none did."""
    return next(iter(_foreign(p, _labelled(p, records, found))), "")


def _foreign(p: Pass, metas: Iterable[ObjectMeta]) -> list[str]:
    uids = {meta.labels.get(keys.RETAINED_FROM_UID, "") for meta in metas}
    return sorted(uids - {"", p.owner.uid})


def _labelled(p: Pass, records: Records, found: State | Unreadable) -> list[ObjectMeta]:
    """What this pass read anyway where that is enough, else every labelled Secret."""
    read = [r.metadata for r in (records.attempt, records.applied) if r is not None]
    if isinstance(found, State):
        return [*read, *found.chunks]
    return _secrets(p, keys.RETAINED_FROM_UID)


def adopt_retained(p: Pass) -> int:
    """Take the label off every Secret of the object; the number that carried another's."""
    mark_adopted(p.env.door, p.owner)  # first: with the labels gone this is not come back to
    carried = [meta for meta in _secrets(p) if _foreign(p, [meta])]
    for meta in reversed(carried):
        _take_back(p, meta)
    return len(carried)


def drop_own_label(p: Pass, records: Records, found: State | Unreadable) -> None:
    """A Retain that was cut short and then called off leaves no trace."""
    own = p.owner.uid
    if any(m.labels.get(keys.RETAINED_FROM_UID) == own for m in _labelled(p, records, found)):
        for meta in reversed(_secrets(p, f"{keys.RETAINED_FROM_UID}={own}")):
            _take_back(p, meta)


def _take_back(p: Pass, meta: ObjectMeta) -> None:
    """Without the label it is the object's again, and what cannot be made again is protected. Its
    owner reference follows with those of all others."""
    part = meta.name.startswith(f"{names.state_secret(p.owner.suffix)}-")
    protected = _kept_as(p, meta) in ("inputs", "state", "backup") and not part
    finalizers = with_protection(meta) if protected else None
    _patch(p, meta, owners=None, finalizers=finalizers, label=None)


def _patch(
    p: Pass,
    meta: ObjectMeta,
    *,
    owners: list[object] | None,
    finalizers: list[str] | None,
    label: str | None,
) -> None:
    change: dict[str, object] = {"labels": {keys.RETAINED_FROM_UID: label}}
    if owners is not None and len(owners) != len(meta.owner_references):
        change["ownerReferences"] = owners
    if finalizers is not None and finalizers != meta.finalizers:
        change["finalizers"] = finalizers
    if label == meta.labels.get(keys.RETAINED_FROM_UID) and len(change) == 1:
        return
    try:
        p.env.door.patch(
            _METADATA,
            meta.name,
            p.owner.namespace,
            {"metadata": change},
            resource_version=meta.resource_version,
        )
    except NotFound:
        return
