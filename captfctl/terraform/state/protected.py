"""Secrets that a cascading deletion must not take away, and taking them away
(state.md: Protection of Secrets)."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from captfctl.cluster.door import Door
from captfctl.cluster.errors import NotFound
from captfctl.model import keys
from captfctl.model.meta import ObjectMeta, OwnerReference
from captfctl.model.owner import Owner
from captfctl.model.resources import SECRETS


def with_protection(meta: ObjectMeta) -> list[str]:
    """Its finalizers with ours; unchanged when it is being deleted: none may be added then."""
    if keys.STATE_PROTECTION in meta.finalizers or meta.deletion_timestamp is not None:
        return list(meta.finalizers)
    return [*meta.finalizers, keys.STATE_PROTECTION]


def with_owner(meta: ObjectMeta, owner: Owner) -> list[OwnerReference]:
    """Its owner references with exactly one to the object; one to an earlier namesake goes.

    Without a UID there is nothing to refer to.
    """
    others = [ref for ref in meta.owner_references if not _names(ref, owner)]
    return [*others, owner.owner_reference()] if owner.uid else others


def _names(reference: OwnerReference, owner: Owner) -> bool:
    return reference.kind == owner.kind and reference.name == owner.name


def encode_data(data: Mapping[str, bytes | None]) -> dict[str, str | None]:
    """A Secret's data for a merge patch; None removes a key."""
    return {
        key: None if value is None else base64.b64encode(value).decode()
        for key, value in data.items()
    }


def encode_references(references: Sequence[OwnerReference]) -> list[dict[str, Any]]:
    """Owner references for a merge patch."""
    return [
        {
            "apiVersion": ref.api_version,
            "kind": ref.kind,
            "name": ref.name,
            "uid": ref.uid,
            **({} if ref.controller is None else {"controller": ref.controller}),
            **(
                {}
                if ref.block_owner_deletion is None
                else {"blockOwnerDeletion": ref.block_owner_deletion}
            ),
        }
        for ref in references
    ]


def delete_protected(door: Door, meta: ObjectMeta) -> None:
    """Take the protection off and delete the Secret; one that is gone is fine."""
    try:
        if keys.STATE_PROTECTION in meta.finalizers:
            kept = [name for name in meta.finalizers if name != keys.STATE_PROTECTION]
            door.patch(
                SECRETS.metadata_only(),
                meta.name,
                meta.namespace,
                {"metadata": {"finalizers": kept}},
                resource_version=meta.resource_version,
            )
        door.delete(SECRETS, meta.name, meta.namespace, uid=meta.uid)
    except NotFound:
        return
