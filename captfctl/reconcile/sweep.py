"""Taking the runner's rights and our Leases out of a namespace that needs them no more
(credentials.md: The namespace sweep)."""

import logging
from typing import TypeVar

from captfctl.cluster.door import Door, delete_as_read
from captfctl.cluster.errors import Conflict, NotFound
from captfctl.errors import CaptfError
from captfctl.model import keys
from captfctl.model.meta import ApiObject
from captfctl.model.resource import Resource
from captfctl.model.resources import (
    JOBS,
    LEASES,
    PODS,
    ROLE_BINDINGS,
    SERVICE_ACCOUNTS,
    TERRAFORM_CLUSTERS,
    TERRAFORM_MACHINE_POOLS,
    TERRAFORM_MACHINES,
)
from captfctl.model.terraform import JobPolicy
from captfctl.reconcile.runner_rbac import BINDING
from captfctl.runs.jobs import is_finished
from captfctl.terraform.job.policy import SERVICE_ACCOUNT, service_account

T = TypeVar("T", bound=ApiObject)

_WORKERS = (TERRAFORM_MACHINES.metadata_only(), TERRAFORM_MACHINE_POOLS.metadata_only())
_USERS = (TERRAFORM_CLUSTERS.metadata_only(), *_WORKERS)
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

    Returns how many went; 0 while any object lives there, a deleting one too: then only accounts
    that nobody uses any more lose the runner's rights. Each is deleted in the version that was
    listed before the second look, so one that was used meanwhile stays.
    """
    if _in_use(door, namespace):
        prune_subjects(door, namespace)
        return 0
    found = [(kind, item) for kind in _SWEPT for item in _listed(door, kind, namespace)]
    if not found or _in_use(door, namespace):
        return 0
    gone = sum(_delete(door, kind, item) for kind, item in found)
    log.info("namespace %s holds no more objects: %d runner objects removed", namespace, gone)
    return gone


def prune_subjects(door: Door, namespace: str) -> None:
    """Take the runner's rights from accounts that no object, Job or pod of ours uses.

    The binding is read before the users are: one that comes meanwhile changes it, and then this
    write is refused.
    """
    try:
        binding = door.get(ROLE_BINDINGS, BINDING, namespace)
    except NotFound:
        return
    if binding.metadata.labels.get(keys.MANAGED) != keys.TRUE or _has_workers(door, namespace):
        return
    used = _accounts(door, namespace)
    kept = [
        subject
        for subject in binding.subjects
        if subject.kind == "ServiceAccount"
        and subject.namespace == namespace
        and subject.name in used
    ]
    if len(kept) == len(binding.subjects):
        return
    meta = binding.metadata
    try:
        if kept:
            binding.subjects = kept
            door.update(ROLE_BINDINGS, binding)
        else:
            version = meta.resource_version
            door.delete(ROLE_BINDINGS, BINDING, namespace, uid=meta.uid, resource_version=version)
    except (NotFound, Conflict):
        return


def _has_workers(door: Door, namespace: str) -> bool:
    """Which accounts machines and pools name is not known here: nothing is taken from them."""
    return any(_any(door, kind, namespace) for kind in _WORKERS)


def _accounts(door: Door, namespace: str) -> set[str]:
    """Every account that runs something of ours, or may have to."""
    used = {SERVICE_ACCOUNT}
    for obj in door.list(TERRAFORM_CLUSTERS, namespace).items:
        used.add(service_account(obj.spec.jobs or JobPolicy()))
    for job in _listed(door, JOBS, namespace):
        if not is_finished(job):
            used.add(job.spec.template.spec.service_account_name)
    for pod in _listed(door, PODS, namespace):
        if pod.status.phase not in ("Succeeded", "Failed"):
            used.add(pod.spec.service_account_name)
    return used


def managed_namespaces(door: Door) -> set[str]:
    """The namespaces that hold anything a sweep could remove."""
    return {item.metadata.namespace for kind in _SWEPT for item in _listed(door, kind, "")}


def _in_use(door: Door, namespace: str) -> bool:
    return any(_any(door, resource, namespace) for resource in _USERS)


def _any(door: Door, resource: Resource[T], namespace: str) -> bool:
    try:
        return bool(door.list(resource, namespace, limit=1).items)
    except NotFound:
        return False  # the kind is not installed here


def _listed(door: Door, resource: Resource[T], namespace: str) -> list[T]:
    return door.list(resource, namespace, labels=_MANAGED).items


def _delete(door: Door, resource: Resource[T], item: T) -> bool:
    try:
        delete_as_read(door, resource, item)
    except (NotFound, Conflict):
        return False
    return True
