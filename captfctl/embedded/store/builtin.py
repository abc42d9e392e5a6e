"""The built-in resources: what a cluster has before anything is installed."""

from collections.abc import Callable, Sequence

from captfctl.embedded.schemas import node_of
from captfctl.embedded.store.kinds.admission_policies import (
    PolicyBindingStrategy,
    PolicyStrategy,
)
from captfctl.embedded.store.kinds.data import ConfigMapStrategy, SecretStrategy
from captfctl.embedded.store.kinds.definitions import DefinitionStrategy
from captfctl.embedded.store.kinds.events import CoreEventStrategy, EventStrategy
from captfctl.embedded.store.kinds.jobs import JobStrategy
from captfctl.embedded.store.kinds.leases import LeaseStrategy
from captfctl.embedded.store.kinds.namespaces import NamespaceStrategy
from captfctl.embedded.store.kinds.pods import PodStrategy
from captfctl.embedded.store.kinds.rbac import BindingStrategy, RoleStrategy
from captfctl.embedded.store.registry import Served
from captfctl.embedded.store.strategy import Typed
from captfctl.embedded.store.views import EventView, VersionView, View
from captfctl.model import resources
from captfctl.model.resource import Document, Resource

CORE_EVENTS = Resource("", "v1", "Event", "events", True, Document)
EVENT_STORAGE = "events"

_POD_FIELDS = (
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.nominatedNodeName",
)
_REFERENCE = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_EVENT_FIELDS = ("reason", "reportingComponent", "source", "type")


class NodeStrategy(Typed):
    """Nodes."""

    has_status = True


class PlainStrategy(Typed):
    """A kind with metadata and little else."""


class _Kinds:
    """Collects the descriptions."""

    def __init__(self) -> None:
        self.served: list[Served] = []

    def add(
        self,
        resource: Resource[Document],
        strategy: type[Typed] | Typed,
        *,
        short: Sequence[str] = (),
        categories: Sequence[str] = (),
        selectable: Sequence[str] = (),
        storage: str = "",
        view: View | None = None,
    ) -> None:
        if not isinstance(strategy, Typed):
            strategy = strategy(resource)
        self.served.append(
            Served(
                resource=resource,
                storage=storage or resource.name,
                singular=resource.kind.lower(),
                strategy=strategy,
                view=view or VersionView(resource.api_version, resource.api_version),
                short_names=tuple(short),
                categories=tuple(categories),
                schema=node_of(strategy.struct),
                list_kind=f"{resource.kind}List",
                selectable=tuple(selectable),
            )
        )


def builtin_resources(taken: Callable[[str, str], dict[str, str]]) -> list[Served]:
    """`taken`: see `DefinitionStrategy`."""
    kinds = _Kinds()
    add, r = kinds.add, resources
    config_maps, namespaces = r.CONFIG_MAPS.untyped(), r.NAMESPACES.untyped()
    add(config_maps, ConfigMapStrategy, short=["cm"])
    add(
        CORE_EVENTS,
        CoreEventStrategy,
        short=["ev"],
        selectable=(*(f"involvedObject.{part}" for part in _REFERENCE), *_EVENT_FIELDS),
    )
    add(namespaces, NamespaceStrategy, short=["ns"], selectable=("status.phase",))
    add(
        r.NODES.untyped(),
        NodeStrategy,
        short=["no"],
        selectable=("spec.unschedulable",),
    )
    add(
        r.PODS.untyped(),
        PodStrategy,
        short=["po"],
        categories=["all"],
        selectable=_POD_FIELDS,
    )
    add(r.SECRETS.untyped(), SecretStrategy, selectable=("type",))
    add(r.SERVICE_ACCOUNTS.untyped(), PlainStrategy, short=["sa"])
    add(
        r.ADMISSION_POLICIES.untyped(),
        PolicyStrategy,
        categories=["api-extensions"],
    )
    add(
        r.ADMISSION_POLICY_BINDINGS.untyped(),
        PolicyBindingStrategy,
        categories=["api-extensions"],
    )
    add(
        r.CRDS.untyped(),
        DefinitionStrategy(r.CRDS.untyped(), taken),
        short=["crd", "crds"],
        categories=["api-extensions"],
    )
    add(
        r.JOBS.untyped(),
        JobStrategy,
        categories=["all"],
        selectable=("status.successful",),
    )
    add(r.LEASES.untyped(), LeaseStrategy)
    add(
        r.EVENTS.untyped(),
        EventStrategy,
        short=["ev"],
        storage=EVENT_STORAGE,
        view=EventView(),
        selectable=(
            *(f"regarding.{part}" for part in _REFERENCE),
            "reason",
            "reportingController",
            "type",
        ),
    )
    add(r.CLUSTER_ROLE_BINDINGS.untyped(), BindingStrategy)
    add(r.CLUSTER_ROLES.untyped(), RoleStrategy)
    add(r.ROLE_BINDINGS.untyped(), BindingStrategy)
    add(r.ROLES.untyped(), RoleStrategy)
    return kinds.served
