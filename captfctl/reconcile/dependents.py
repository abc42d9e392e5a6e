"""What must be gone before a cluster may be destroyed (deletion.md: Order of a deletion)."""

from captfctl.cluster.errors import NotFound
from captfctl.model import keys, names
from captfctl.model.meta import PartialObject
from captfctl.model.resource import Resource
from captfctl.model.resources import TERRAFORM_MACHINE_POOLS, TERRAFORM_MACHINES
from captfctl.reconcile.context import Pass

_NAMED = 3


def dependents(p: Pass) -> str:
    """The machines and pools of the cluster that still exist, in words; empty when none does.

    Read live and whatever their watch filter. Without a cluster name nothing blocks.
    """
    if not p.owner.cluster:
        return ""
    found = [_listed(p, resource) for resource in (TERRAFORM_MACHINES, TERRAFORM_MACHINE_POOLS)]
    blocking = [text for text in found if text]
    if not blocking:
        return ""
    return f"{' and '.join(blocking)} of cluster {p.owner.cluster} must be deleted first"


def _listed(p: Pass, resource: Resource[PartialObject]) -> str:
    labels = f"{keys.CLUSTER_NAME}={names.label_value(p.owner.cluster)}"
    try:
        page = p.env.door.list(resource, p.owner.namespace, labels=labels)
    except NotFound:
        return ""  # the kind is not installed here
    found = sorted(item.metadata.name for item in page.items)
    if not found:
        return ""
    more = len(found) - _NAMED
    tail = f" and {more} more" if more > 0 else ""
    return f"{len(found)} {resource.kind} ({', '.join(found[:_NAMED])}{tail})"
