"""A Cluster from a ClusterClass of real Cluster API, whose infrastructure is made from our
templates."""

from collections.abc import Iterator
from typing import Any

import pytest

from captfctl.model import keys
from captfctl.model.ops import Op
from captfctl.model.resource import Document, Resource
from captfctl.model.resources import (
    CLUSTERS,
    CRDS,
    JOBS,
    TERRAFORM_CLUSTERS,
    TERRAFORM_MACHINE_POOLS,
    TERRAFORM_MACHINE_TEMPLATES,
    TERRAFORM_MACHINES,
)
from captfctl.model.terraform import TerraformObject
from tests.e2e.scenarios import NAME, Story, leftovers, nothing_left
from tests.e2e.site import IMAGE, eventually
from tests.kubernetes.nodes import joining
from tests.kubernetes.workers import MACHINE_IMAGE, POOL_IMAGE, bootstrap

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(600)]

CONTROL_PLANES: Resource[Document] = Resource(
    "controlplane.cluster.x-k8s.io",
    "v1",
    "HandmadeControlPlane",
    "handmadecontrolplanes",
    True,
    dict,
)
BOOTSTRAPS: Resource[Document] = Resource(
    "bootstrap.cluster.x-k8s.io", "v1", "HandmadeConfig", "handmadeconfigs", True, dict
)


def definitions() -> Iterator[Document]:
    """A control plane provider and a bootstrap provider of nothing but objects."""
    for resource in (CONTROL_PLANES, BOOTSTRAPS):
        for kind in (resource.kind, f"{resource.kind}Template"):
            version = {
                "name": resource.version,
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
                "subresources": {"status": {}} if kind == resource.kind else {},
            }
            yield {
                "apiVersion": CRDS.api_version,
                "kind": CRDS.kind,
                "metadata": {
                    "name": f"{kind.lower()}s.{resource.group}",
                    "labels": {"cluster.x-k8s.io/v1beta2": resource.version},
                },
                "spec": {
                    "group": resource.group,
                    "names": {"kind": kind, "plural": f"{kind.lower()}s"},
                    "scope": "Namespaced",
                    "versions": [version],
                },
            }


def template_of(resource: Resource[Document]) -> str:
    return f"""---
apiVersion: {resource.api_version}
kind: {resource.kind}Template
metadata: {{name: class}}
spec: {{template: {{spec: {{}}}}}}
"""


def template(role: str, image: str, variables: str = "") -> str:
    return f"""---
apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1
kind: Terraform{role}Template
metadata: {{name: class}}
spec: {{template: {{spec: {{source: {{image: {image}}}{variables}}}}}}}
"""


def reference(role: str) -> str:
    api_version = "infrastructure.cluster.x-k8s.io/v1alpha1"
    return f"{{apiVersion: {api_version}, kind: Terraform{role}Template, name: class}}"


def handmade(resource: Resource[Document]) -> str:
    return f"{{apiVersion: {resource.api_version}, kind: {resource.kind}Template, name: class}}"


def cluster_class(identity: str) -> str:
    """Its patches set what the templates leave out: the identity, and a variable."""
    return f"""---
apiVersion: cluster.x-k8s.io/v1beta2
kind: ClusterClass
metadata: {{name: class}}
spec:
  infrastructure: {{templateRef: {reference("Cluster")}}}
  controlPlane: {{templateRef: {handmade(CONTROL_PLANES)}}}
  workers:
    machineDeployments:
      - class: workers
        bootstrap: {{templateRef: {handmade(BOOTSTRAPS)}}}
        infrastructure: {{templateRef: {reference("Machine")}}}
        rollout:
          strategy: {{type: RollingUpdate, rollingUpdate: {{maxSurge: 1, maxUnavailable: 0}}}}
    machinePools:
      - class: pool
        bootstrap: {{templateRef: {handmade(BOOTSTRAPS)}}}
        infrastructure: {{templateRef: {reference("MachinePool")}}}
  variables:
    - {{name: region, required: true, schema: {{openAPIV3Schema: {{type: string}}}}}}
  patches:
    - name: cluster
      definitions:
        - selector:
            apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1
            kind: TerraformClusterTemplate
            matchResources: {{infrastructureCluster: true}}
          jsonPatches:
            - {{op: add, path: /spec/template/spec/identityRef, value: {{name: {identity}}}}}
            - op: add
              path: /spec/template/spec/variables/region
              valueFrom: {{variable: region}}
    - name: workers
      definitions:
        - selector:
            apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1
            kind: TerraformMachineTemplate
            matchResources: {{machineDeploymentClass: {{names: [workers]}}}}
          jsonPatches:
            - op: add
              path: /spec/template/spec/variables/region
              valueFrom: {{variable: region}}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {{name: {NAME}}}
spec:
  clusterNetwork: {{pods: {{cidrBlocks: [192.168.0.0/16]}}}}
  topology:
    classRef: {{name: class}}
    version: v1.34.0
    variables: [{{name: region, value: eu-north}}]
    workers:
      machineDeployments: [{{class: workers, name: md, replicas: 1}}]
      machinePools: [{{class: pool, name: mp, replicas: 2}}]
"""


class Topology:
    """What Cluster API made of the class in the namespace of a story."""

    def __init__(self, story: Story) -> None:
        self.story = story
        self._door, self._namespace = story.door, story.namespace

    def play_providers(self) -> None:
        """The control plane is up, and the bootstrap data of everything is there."""
        for plane in self._door.list(CONTROL_PLANES, self._namespace).items:
            version = plane["spec"]["version"]
            if plane.get("status", {}).get("version") != version:
                self._say(
                    CONTROL_PLANES,
                    plane,
                    version=version,
                    initialization={"controlPlaneInitialized": True},
                )
        for config in self._door.list(BOOTSTRAPS, self._namespace).items:
            if "status" not in config:
                self._say(
                    BOOTSTRAPS,
                    config,
                    dataSecretName="class-bootstrap",
                    initialization={"dataSecretCreated": True},
                )

    def _say(self, resource: Resource[Document], obj: Document, **status: Any) -> None:
        name = obj["metadata"]["name"]
        patch = {"status": status}
        self._door.patch(resource, name, self._namespace, patch, subresource="status")

    def one(self, resource: Resource[Any]) -> TerraformObject | None:
        """The only object of a kind."""
        found = self._door.list(resource, self._namespace).items
        return found[0] if len(found) == 1 else None

    def is_up(self, region: str) -> bool:
        """Cluster and machine are there once, of that region, and Ready with everything applied."""
        self.play_providers()
        for kind in (TERRAFORM_CLUSTERS, TERRAFORM_MACHINES):
            obj = self.one(kind)
            if obj is None or not _settled(obj):
                return False
            if f'"{region}"' not in bytes(obj.spec.variables or b"").decode():
                return False
        return self.reconciled()

    def reconciled(self) -> bool:
        cluster = self._door.get(CLUSTERS, NAME, self._namespace)
        return any(
            c.type == "TopologyReconciled" and c.status == "True" for c in cluster.status.conditions
        )

    def explain(self) -> str:
        said = []
        for kind in (TERRAFORM_CLUSTERS, TERRAFORM_MACHINES, TERRAFORM_MACHINE_POOLS):
            for obj in self._door.list(kind, self._namespace).items:
                conditions = obj.status.conditions
                reasons = ", ".join(f"{c.type}={c.status}/{c.reason}" for c in conditions)
                said.append(f"{obj.metadata.name}: {bytes(obj.spec.variables or b'')!r} {reasons}")
        cluster = self._door.get(CLUSTERS, NAME, self._namespace)
        said += [f"{c.type}={c.status}: {c.message}" for c in cluster.status.conditions]
        return "\n".join(said)

    def applies(self, kind: Resource[Any]) -> int:
        labels = f"{keys.OP}={Op.APPLY},{keys.OWNER_KIND}={kind.kind}"
        return len(self._door.list(JOBS, self._namespace, labels=labels).items)


def _settled(obj: TerraformObject) -> bool:
    good = {c.type for c in obj.status.conditions if c.status == "True"}
    fresh = obj.status.observed_generation == obj.metadata.generation
    return fresh and {"Ready", "InputsApplied"} <= good and obj.status.active_job is None


@pytest.fixture
def topology(site) -> Iterator[Topology]:
    story = Story(site, "class")
    # Without the Cluster and its infrastructure: those are made from the class.
    story.objects = "---\n".join(story.objects.split("---\n")[:2])
    site.apply(list(definitions()))
    story.create()
    with joining(story):
        yield Topology(story)
        site.kubectl("delete", "cluster", NAME, "-n", story.namespace, "--timeout=100s")
        eventually(lambda: nothing_left(story), lambda: f"nothing left: {leftovers(story)}", 30)
    story.close()


def test_a_cluster_from_a_class_comes_up_and_follows_a_variable_of_its_topology(site, topology):
    story = topology.story
    objects = (
        bootstrap("class")
        + template("Cluster", IMAGE, ", variables: {subnets: 2}")
        + template("Machine", MACHINE_IMAGE, ", variables: {state: running}")
        + template("MachinePool", POOL_IMAGE)
        + template_of(CONTROL_PLANES)
        + template_of(BOOTSTRAPS)
        + cluster_class(story.namespace)
    )
    site.kubectl("apply", "-n", story.namespace, "-f", "-", text=objects)
    eventually(lambda: topology.is_up("eu-north"), topology.explain, 180)
    machine = topology.one(TERRAFORM_MACHINES)
    eventually(lambda: _settled(topology.one(TERRAFORM_MACHINE_POOLS)), topology.explain, 90)
    pool = topology.one(TERRAFORM_MACHINE_POOLS)
    assert len(pool.spec.provider_id_list) == 2
    templates = {t.metadata.name for t in templates_of(story)}

    change = {"spec": {"topology": {"variables": [{"name": "region", "value": "eu-south"}]}}}
    story.door.patch(CLUSTERS, NAME, story.namespace, change)
    eventually(lambda: topology.is_up("eu-south"), topology.explain, 180)
    # The cluster was changed in place; the machine is another one, from another template.
    assert topology.applies(TERRAFORM_CLUSTERS) >= 2
    assert topology.one(TERRAFORM_MACHINES).metadata.name != machine.metadata.name
    assert {t.metadata.name for t in templates_of(story)} - templates
    assert topology.one(TERRAFORM_MACHINE_POOLS).metadata.uid == pool.metadata.uid


def templates_of(story: Story):
    return story.door.list(TERRAFORM_MACHINE_TEMPLATES, story.namespace).items
