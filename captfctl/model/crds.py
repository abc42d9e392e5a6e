"""The CustomResourceDefinitions of our own kinds (api.md: Kinds).

There are no schema defaults and no conversion: every default is resolved while reconciling, so that
a changed one reaches all objects.
"""

from dataclasses import dataclass, field
from typing import Any

import msgspec

from captfctl.model.resource import Document, Resource
from captfctl.model.resources import (
    TERRAFORM_CLUSTER_IDENTITIES,
    TERRAFORM_CLUSTER_TEMPLATES,
    TERRAFORM_CLUSTERS,
    TERRAFORM_MACHINE_POOL_TEMPLATES,
    TERRAFORM_MACHINE_POOLS,
    TERRAFORM_MACHINE_TEMPLATES,
    TERRAFORM_MACHINES,
    TERRAFORM_PLANS,
)
from captfctl.model.schema import Schema, schema_of

CONTRACT_LABEL = "cluster.x-k8s.io/v1beta2"
MOVE_HIERARCHY = "clusterctl.cluster.x-k8s.io/move-hierarchy"
CATEGORY = "cluster-api"


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column of `kubectl get`. `wide`: only with `-o wide`."""

    name: str
    path: str
    type: str = "string"
    wide: bool = False
    description: str = ""

    def document(self) -> Document:
        """The column as a definition writes it."""
        column: Document = {"name": self.name, "type": self.type, "jsonPath": self.path}
        if self.wide:
            column["priority"] = 1
        if self.description:
            column["description"] = self.description
        return column


AGE = Column(name="Age", path=".metadata.creationTimestamp", type="date")
CLUSTER = Column(name="Cluster", path=r".metadata.labels.cluster\.x-k8s\.io/cluster-name")
PROVISIONED = Column(name="Provisioned", path=".status.initialization.provisioned", type="boolean")
IMAGE = Column(name="Image", path=".spec.source.image", wide=True)


def condition_column(kind: str, *, wide: bool = False) -> Column:
    """A column with the status of a condition."""
    path = f'.status.conditions[?(@.type=="{kind}")].status'
    return Column(name=kind, path=path, wide=wide)


def owner_column(kind: str) -> Column:
    """A column with the name of the owner of a kind of Cluster API."""
    return Column(name=kind, path=f'.metadata.ownerReferences[?(@.kind=="{kind}")].name')


@dataclass(frozen=True, kw_only=True)
class Definition:
    """What a CRD says beyond the schema of its kind."""

    resource: Resource[Any]
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = (CATEGORY,)
    columns: tuple[Column, ...] = (AGE,)
    labels: dict[str, str] = field(default_factory=dict)
    status: bool = True

    def document(self) -> Document:
        """The CustomResourceDefinition, as it is applied to a server."""
        res = self.resource
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": res.name, "labels": dict(self.labels)},
            "spec": {
                "group": res.group,
                "names": self._names(),
                "scope": "Namespaced" if res.namespaced else "Cluster",
                "conversion": {"strategy": "None"},
                "versions": [self._version()],
            },
        }

    def _names(self) -> Document:
        kind = self.resource.kind
        names: Document = {
            "kind": kind,
            "listKind": f"{kind}List",
            "plural": self.resource.plural,
            "singular": kind.lower(),
            "categories": list(self.categories),
        }
        if self.short_names:
            names["shortNames"] = list(self.short_names)
        return names

    def _version(self) -> Document:
        version: Document = {
            "name": self.resource.version,
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": object_schema(self.resource.type)},
            "additionalPrinterColumns": [column.document() for column in self.columns],
        }
        if self.status:
            version["subresources"] = {"status": {}}
        return version


_LABELS = {CONTRACT_LABEL: "v1alpha1"}


def _template(resource: Resource[Any], short_name: str, *, status: bool = False) -> Definition:
    return Definition(
        resource=resource,
        short_names=(short_name,),
        labels=_LABELS,
        columns=(Column(name="Image", path=".spec.template.spec.source.image"), AGE),
        status=status,
    )


DEFINITIONS: tuple[Definition, ...] = (
    Definition(
        resource=TERRAFORM_CLUSTERS,
        short_names=("tfc",),
        labels=_LABELS,
        columns=(
            CLUSTER,
            condition_column("Ready"),
            PROVISIONED,
            Column(name="Endpoint", path=".spec.controlPlaneEndpoint.host"),
            IMAGE,
            condition_column("InputsApplied", wide=True),
            AGE,
        ),
    ),
    Definition(
        resource=TERRAFORM_MACHINES,
        short_names=("tfm",),
        labels=_LABELS,
        columns=(
            CLUSTER,
            owner_column("Machine"),
            condition_column("Ready"),
            PROVISIONED,
            Column(name="ProviderID", path=".spec.providerID"),
            IMAGE,
            condition_column("InputsApplied", wide=True),
            AGE,
        ),
    ),
    Definition(
        resource=TERRAFORM_MACHINE_POOLS,
        short_names=("tfmp",),
        labels=_LABELS,
        columns=(
            CLUSTER,
            owner_column("MachinePool"),
            Column(name="Replicas", path=".status.replicas", type="integer"),
            condition_column("Ready"),
            condition_column("InputsApplied", wide=True),
            AGE,
        ),
    ),
    _template(TERRAFORM_CLUSTER_TEMPLATES, "tfct"),
    _template(TERRAFORM_MACHINE_TEMPLATES, "tfmt", status=True),
    _template(TERRAFORM_MACHINE_POOL_TEMPLATES, "tfmpt"),
    Definition(
        resource=TERRAFORM_CLUSTER_IDENTITIES,
        short_names=("tfci",),
        labels={**_LABELS, MOVE_HIERARCHY: ""},
        columns=(
            Column(name="Secret", path=".spec.secretRef.name"),
            Column(name="Namespace", path=".spec.secretRef.namespace"),
            condition_column("Ready"),
            AGE,
        ),
    ),
    Definition(
        resource=TERRAFORM_PLANS,
        short_names=("tfplan",),
        labels=_LABELS,
        columns=(
            Column(name="Target", path=".spec.targetRef.name"),
            Column(name="Reason", path=".spec.reason"),
            Column(name="Phase", path=".status.phase"),
            *(
                Column(name=action.capitalize(), path=f".spec.summary.{action}", type="integer")
                for action in ("create", "update", "replace", "delete")
            ),
            Column(name="Approved", path=".spec.approved", type="boolean"),
            AGE,
        ),
    ),
)


def crds() -> list[Document]:
    """The CustomResourceDefinitions of every kind of ours."""
    return [definition.document() for definition in DEFINITIONS]


def object_schema(kind: type[msgspec.Struct]) -> Schema:
    """The schema of a whole object: the server itself checks `metadata`."""
    schema = schema_of(kind)
    schema["properties"]["metadata"] = {"type": "object"}
    return schema
