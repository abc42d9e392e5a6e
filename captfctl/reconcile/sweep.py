"""Taking the runner's rights and our Leases out of a namespace that needs them no more (50 §14)."""

import logging
from typing import TypeVar

from captfctl.cluster.door import Door
from captfctl.cluster.errors import Conflict, NotFound
from captfctl.errors import CaptfError
from captfctl.model import keys
from captfctl.model.meta import ApiObject
from captfctl.model.resource import Resource
from captfctl.model.resources import (
    LEASES,
    ROLE_BINDINGS,
    SERVICE_ACCOUNTS,
    TERRAFORM_CLUSTERS,
    TERRAFORM_MACHINE_POOLS,
    TERRAFORM_MACHINES,
)

T = TypeVar("T", bound=ApiObject)

_USERS = (TERRAFORM_CLUSTERS.metadata_only(), TERRAFORM_MACHINES, TERRAFORM_MACHINE_POOLS)
_SWEPT = (
    SERVICE_ACCOUNTS.metadata_only(),
    ROLE_BINDINGS.metadata_only(),
    LEASES.metadata_only(),
)
_MANAGED = f"{keys.MANAGED}={keys.TRUE}"

log = logging.getLogger(__name__)


def sweep_quietly(door: Door, namespace: str) -> None:
    """`sweep` for a caller that must not fail by it."""
    try:
        sweep(door, namespace)
    except CaptfError as problem:
        log.warning("namespace %s was not swept: %s", namespace, problem)


def sweep(door: Door, namespace: str) -> int:
    """Delete the managed ServiceAccounts, RoleBindings and Leases of a namespace without objects.

    Returns how many went; 0 while any object lives there, a deleting one too. Each is deleted in
    the version that was listed before the second look, so one that was used meanwhile stays.
    """
    if _in_use(door, namespace):
        return 0
    found = [(kind, item) for kind in _SWEPT for item in _listed(door, kind, namespace)]
    if not found or _in_use(door, namespace):
        return 0
    gone = sum(_delete(door, kind, item) for kind, item in found)
    log.info("namespace %s holds no more objects: %d runner objects removed", namespace, gone)
    return gone


def managed_namespaces(door: Door) -> set[str]:
    """The namespaces that hold anything a sweep could remove."""
    return {item.metadata.namespace for kind in _SWEPT for item in _listed(door, kind, "")}


def _in_use(door: Door, namespace: str) -> bool:
    for resource in _USERS:
        try:
            if door.list(resource, namespace, limit=1).items:
                return True
        except NotFound:
            continue  # the kind is not installed here
    return False


def _listed(door: Door, resource: Resource[T], namespace: str) -> list[T]:
    return door.list(resource, namespace, labels=_MANAGED).items


def _delete(door: Door, resource: Resource[T], item: T) -> bool:
    meta = item.metadata
    try:
        door.delete(
            resource,
            meta.name,
            meta.namespace,
            uid=meta.uid,
            resource_version=meta.resource_version,
        )
    except (NotFound, Conflict):
        return False
    return True
