"""What Cluster API adds to an object before it can be reconciled: for files, which hold what people
write (reconcile.md: Dry run)."""

from typing import Any

from captfctl.cluster.door import Door
from captfctl.cluster.errors import NotFound
from captfctl.model import keys, names
from captfctl.model.kinds import INFRASTRUCTURE, Kind
from captfctl.model.meta import OwnerReference
from captfctl.model.resource import Resource
from captfctl.model.resources import OWNERS
from captfctl.model.terraform import TerraformObject
from captfctl.reconcile.kinds import RULES


def adopt_as_cluster_api_does(door: Door, kind: Kind, obj: TerraformObject) -> None:
    """Set the owner reference and the label for the object of Cluster API that names `obj`, if
    there is one and `obj` has no owner yet."""
    if any(ref.kind == kind.owner for ref in obj.metadata.owner_references):
        return
    owners = OWNERS[kind.name]
    owner = _naming(door, owners, kind, obj)
    if owner is None:
        return
    obj.metadata.owner_references.append(
        OwnerReference(
            api_version=owners.api_version,
            kind=kind.owner,
            name=owner.metadata.name,
            uid=owner.metadata.uid,
        )
    )
    label = names.label_value(owner.cluster_name)
    obj.metadata.labels.setdefault(keys.CLUSTER_NAME, label)
    door.update(RULES[kind.name].resource, obj)


def _naming(door: Door, owners: Resource[Any], kind: Kind, obj: TerraformObject) -> Any:
    try:
        found = door.list(owners, obj.metadata.namespace).items
    except NotFound:
        return None  # the kind is not installed here
    wanted = (INFRASTRUCTURE, kind.name, obj.metadata.name)
    for owner in found:
        ref = owner.infrastructure
        if ref is not None and (ref.api_group, ref.kind, ref.name) == wanted:
            return owner
    return None
