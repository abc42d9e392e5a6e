"""Small CustomResourceDefinitions for the kinds of Cluster API that captfctl reads, and the rule of
its admission that what stands in for it relies on.

They describe only the fields of `captfctl.model.capi`; whatever else an object holds is kept as it
is. A cluster with Cluster API has its own, larger ones: these are for a control plane without it.
"""

from captfctl.install.policy_parts import Policy, Rule
from captfctl.model.crds import AGE, Column, Definition, condition_column
from captfctl.model.names import LABEL_VALUE_MAX
from captfctl.model.resource import Document
from captfctl.model.resources import CLUSTERS, MACHINE_POOLS, MACHINES
from captfctl.model.schema import Schema

_PHASE = Column(name="Phase", path=".status.phase")
_VERSION = Column(name="Version", path=".spec.version")
_OWN_CLUSTER = Column(name="Cluster", path=".spec.clusterName")

DEFINITIONS: tuple[Definition, ...] = (
    Definition(
        resource=CLUSTERS,
        short_names=("cl",),
        columns=(
            condition_column("InfrastructureReady"),
            Column(name="Paused", path=".spec.paused", type="boolean", wide=True),
            _PHASE,
            AGE,
        ),
    ),
    Definition(
        resource=MACHINES,
        short_names=("ma",),
        columns=(
            _OWN_CLUSTER,
            condition_column("Ready"),
            Column(name="ProviderID", path=".spec.providerID", wide=True),
            _PHASE,
            _VERSION,
            AGE,
        ),
    ),
    Definition(
        resource=MACHINE_POOLS,
        short_names=("mp",),
        columns=(
            _OWN_CLUSTER,
            Column(name="Desired", path=".spec.replicas", type="integer"),
            Column(name="Replicas", path=".status.replicas", type="integer"),
            _PHASE,
            Column(name="Version", path=".spec.template.spec.version"),
            AGE,
        ),
    ),
)


# As Cluster API's webhook: what was stored without it can still be changed and deleted.
_NAME_IS_A_LABEL = Policy(
    resource=CLUSTERS.untyped(),
    rules=(
        Rule(
            name="name",
            items=(
                "oldObject == null ? [object.metadata.name].filter(item, "
                f"item.size() > {LABEL_VALUE_MAX}) : []"
            ),
            field="'metadata.name'",
            message=(
                "'the name of a Cluster is a label of everything that belongs to it, so it has at "
                f"most {LABEL_VALUE_MAX} characters, not ' + string(item.size())"
            ),
        ),
    ),
)


def capi_policies() -> list[Document]:
    """What Cluster API refuses that no schema can."""
    return _NAME_IS_A_LABEL.documents()


def capi_crds() -> list[Document]:
    """The definitions of Cluster, Machine and MachinePool."""
    return [_open(definition) for definition in DEFINITIONS]


def _open(definition: Definition) -> Document:
    """The definition with spec and status open for fields that we do not know."""
    document = definition.document()
    for version in document["spec"]["versions"]:
        properties = version["schema"]["openAPIV3Schema"]["properties"]
        properties.setdefault("status", {"type": "object"})
        _keep_unknown(properties["spec"])
        _keep_unknown(properties["status"])
    return document


def _keep_unknown(schema: Schema) -> None:
    if schema.get("type") == "object" and "additionalProperties" not in schema:
        schema["x-kubernetes-preserve-unknown-fields"] = True
    children = list(schema.get("properties", {}).values())
    if "items" in schema:
        children.append(schema["items"])
    for child in children:
        _keep_unknown(child)
