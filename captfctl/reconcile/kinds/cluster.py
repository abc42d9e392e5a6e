"""What is particular about a `TerraformCluster` (reconcile.md: Kinds)."""

from collections.abc import Sequence
from typing import ClassVar

from captfctl.cluster.door import Door
from captfctl.cluster.errors import NotFound
from captfctl.model import keys, names
from captfctl.model.conditions import ConditionValue, Type
from captfctl.model.events import Note
from captfctl.model.kinds import CLUSTER, Kind
from captfctl.model.meta import PartialObject
from captfctl.model.resource import Resource
from captfctl.model.resources import (
    TERRAFORM_CLUSTERS,
    TERRAFORM_MACHINE_POOLS,
    TERRAFORM_MACHINES,
)
from captfctl.model.terraform import ControlPlaneEndpoint, TerraformCluster
from captfctl.reconcile.cache import CacheReader
from captfctl.reconcile.kinds.rules import (
    Applied,
    Built,
    Mapped,
    OwnerLookup,
    WithPlans,
    owner_gate,
    owner_reference,
    previous_tfvars,
    values_of,
)
from captfctl.terraform.contract.build import (
    SOURCE_MODULE,
    SOURCE_USER,
    EndpointSourceChange,
    build_cluster_inputs,
    endpoint_input_was_null,
)
from captfctl.terraform.contract.effective import Config, Flags, cluster_config
from captfctl.terraform.contract.mapping import map_cluster
from captfctl.terraform.contract.outputs import decode_cluster
from captfctl.terraform.state.reader import State
from captfctl.terraform.state.records import Records

_NAMED = 3
_DEPENDENTS = (TERRAFORM_MACHINES.metadata_only(), TERRAFORM_MACHINE_POOLS.metadata_only())
_ENDPOINT_SOURCES: dict[EndpointSourceChange, dict[str, str | None]] = {
    EndpointSourceChange.KEEP: {},
    EndpointSourceChange.RECORD_USER: {keys.ENDPOINT_SOURCE: SOURCE_USER},
    EndpointSourceChange.REMOVE: {keys.ENDPOINT_SOURCE: None},
}


class ClusterRules(WithPlans):
    """See `KindRules`."""

    kind: ClassVar[Kind] = CLUSTER
    resource: ClassVar[Resource[TerraformCluster]] = TERRAFORM_CLUSTERS
    mutable: ClassVar[bool] = True
    counted_by: ClassVar[str] = keys.INPUTS_HASH
    refresh_after_apply: ClassVar[bool] = False
    ready_with_apply: ClassVar[bool] = False
    converging: ClassVar[bool] = False

    obj: TerraformCluster

    def __init__(self, obj: TerraformCluster, cache: CacheReader) -> None:
        self.obj = obj
        self.lookup = _look_up(cache, obj)

    def config(self, flags: Flags) -> Config:
        """A cluster inherits nothing."""
        return cluster_config(self.obj, flags)

    def dependents(self, door: Door) -> str:
        """The machines and pools of the cluster that still exist (deletion.md: Order of a
        deletion).

        Read live and whatever their watch filter. Without a cluster name nothing blocks.
        """
        cluster = self.obj.metadata.labels.get(keys.CLUSTER_NAME, "") or self.lookup.cluster_name
        if not cluster:
            return ""
        labels = f"{keys.CLUSTER_NAME}={names.label_value(cluster)}"
        namespace = self.obj.metadata.namespace
        found = [_listed(door, resource, namespace, labels) for resource in _DEPENDENTS]
        blocking = [text for text in found if text]
        if not blocking:
            return ""
        return f"{' and '.join(blocking)} of cluster {cluster} must be deleted first"

    def build(self, _door: Door, records: Records, _applied: Applied) -> Built | ConditionValue:
        """Who decides the endpoint is settled by the first apply
        (module-contract.md: The control plane endpoint)."""
        if self.lookup.cluster is None:
            return self.lookup.missing
        built = build_cluster_inputs(self.obj, self.lookup.cluster, previous_tfvars(records))
        return Built(built.inputs, _ENDPOINT_SOURCES[built.endpoint_source])

    def map_outputs(self, state: State, records: Records) -> Mapped:
        """Endpoint, failure domains and exports (module-contract.md: What outputs change)."""
        obj = self.obj
        mapped = map_cluster(
            obj,
            self.lookup.cluster,
            decode_cluster(values_of(state)),
            state_has_hash=bool(state.inputs_hash),
            endpoint_input_was_null=endpoint_input_was_null(previous_tfvars(records)),
        )
        if mapped.endpoint is not None:
            obj.spec.control_plane_endpoint = ControlPlaneEndpoint(
                host=mapped.endpoint.host, port=mapped.endpoint.port
            )
            obj.metadata.annotations[keys.ENDPOINT_SOURCE] = SOURCE_MODULE
        obj.status.failure_domains = list(mapped.failure_domains)
        obj.status.exports = mapped.exports
        available = mapped.endpoint_available
        return Mapped(
            outputs_valid=mapped.outputs_valid,
            healthy=mapped.infrastructure_healthy,
            provisioned=mapped.provisioned,
            conditions=((Type.ENDPOINT_AVAILABLE, available),) if available is not None else (),
            notes=mapped.notes,
        )

    def sample(self, _health: str) -> None:
        """Nothing is counted."""

    def follow_up(self, _door: Door, _health: str, _config: Config) -> Sequence[Note]:
        """Nothing."""
        return ()

    def depends_on(self, _door: Door) -> object | None:
        """The Cluster: only the fields that are read are decoded."""
        cluster = self.lookup.cluster
        if cluster is None:
            return None
        meta = cluster.metadata
        return meta.uid, meta.deletion_timestamp, cluster.spec, cluster.status.initialization


def _look_up(cache: CacheReader, obj: TerraformCluster) -> OwnerLookup:
    """Find and check the owning Cluster (reconcile.md: The owning Cluster). A Cluster that is gone
    is not a gate here."""
    reference = owner_reference(obj, CLUSTER)
    if reference is None:
        return OwnerLookup(None)
    cluster = cache.cluster(obj.metadata.namespace, reference.name)
    if cluster is None:
        return OwnerLookup(reference, cluster_name=reference.name)
    gate = owner_gate(CLUSTER, obj, reference, cluster)
    owned = cluster if gate is None else None
    return OwnerLookup(reference, owned, gate, reference.name)


def _listed(door: Door, resource: Resource[PartialObject], namespace: str, labels: str) -> str:
    try:
        page = door.list(resource, namespace, labels=labels)
    except NotFound:
        return ""  # the kind is not installed here
    found = sorted(item.metadata.name for item in page.items)
    if not found:
        return ""
    more = len(found) - _NAMED
    tail = f" and {more} more" if more > 0 else ""
    return f"{len(found)} {resource.kind} ({', '.join(found[:_NAMED])}{tail})"
