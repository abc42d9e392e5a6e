"""What Cluster API adds to an object before it can be reconciled: for files, which hold what people
write (reconcile.md: Dry run)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from captfctl.cluster.door import Door
from captfctl.cluster.errors import NotFound
from captfctl.model import keys, names
from captfctl.model.capi import InfrastructureRef
from captfctl.model.kinds import CLUSTER, INFRASTRUCTURE, MACHINE, MACHINE_POOL, Kind
from captfctl.model.meta import OwnerReference
from captfctl.model.resource import Resource
from captfctl.model.resources import CLUSTERS, MACHINE_POOLS, MACHINES
from captfctl.model.terraform import TerraformObject
from captfctl.reconcile.kinds import RULES


@dataclass(frozen=True, slots=True)
class _Owners:
    """The objects of Cluster API that own a kind of ours."""

    resource: Resource[Any]
    ref: Callable[[Any], InfrastructureRef | None]
    cluster: Callable[[Any], str]


_OWNERS: Final[Mapping[str, _Owners]] = {
    CLUSTER.name: _Owners(
        CLUSTERS,
        lambda cluster: cluster.spec.infrastructure_ref,
        lambda cluster: str(cluster.metadata.name),
    ),
    MACHINE.name: _Owners(
        MACHINES,
        lambda machine: machine.spec.infrastructure_ref,
        lambda machine: str(machine.spec.cluster_name),
    ),
    MACHINE_POOL.name: _Owners(
        MACHINE_POOLS,
        lambda pool: pool.spec.template.spec.infrastructure_ref,
        lambda pool: str(pool.spec.cluster_name),
    ),
}


def adopt_as_cluster_api_does(door: Door, kind: Kind, obj: TerraformObject) -> None:
    """Set the owner reference and the label for the object of Cluster API that names `obj`, if
    there is one and `obj` has no owner yet."""
    if any(ref.kind == kind.owner for ref in obj.metadata.owner_references):
        return
    owners = _OWNERS[kind.name]
    owner = _naming(door, owners, kind, obj)
    if owner is None:
        return
    obj.metadata.owner_references.append(
        OwnerReference(
            api_version=owners.resource.api_version,
            kind=kind.owner,
            name=owner.metadata.name,
            uid=owner.metadata.uid,
        )
    )
    label = names.label_value(owners.cluster(owner))
    obj.metadata.labels.setdefault(keys.CLUSTER_NAME, label)
    door.update(RULES[kind.name].resource, obj)


def _naming(door: Door, owners: _Owners, kind: Kind, obj: TerraformObject) -> Any:
    try:
        found = door.list(owners.resource, obj.metadata.namespace).items
    except NotFound:
        return None  # the kind is not installed here
    wanted = (INFRASTRUCTURE, kind.name, obj.metadata.name)
    for owner in found:
        ref = owners.ref(owner)
        if ref is not None and (ref.api_group, ref.kind, ref.name) == wanted:
            return owner
    return None
