"""A MachineDeployment of real Cluster API whose Machines are made from our template."""

from collections import Counter
from collections.abc import Iterator

import pytest

from captfctl.model import keys
from captfctl.model.machine import TerraformMachine
from captfctl.model.ops import Op
from captfctl.model.resource import Document, Resource
from captfctl.model.resources import CLUSTERS, JOBS, MACHINES, TERRAFORM_MACHINES
from tests.e2e.scenarios import NAME, Story, leftovers, nothing_left
from tests.e2e.site import eventually
from tests.kubernetes.nodes import joining
from tests.kubernetes.workers import Workers, bootstrap, machine, machine_template

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(600)]

DEPLOYMENTS: Resource[Document] = Resource(
    "cluster.x-k8s.io", "v1beta2", "MachineDeployment", "machinedeployments", True, dict
)
WORKERS = "workers"
CONTROL_PLANE = "control-plane-0"
SELECTED = f"cluster.x-k8s.io/deployment-name={WORKERS}"


DEPLOYMENT = f"""---
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineDeployment
metadata: {{name: {WORKERS}}}
spec:
  clusterName: {NAME}
  replicas: 0
  selector: {{matchLabels: {{cluster.x-k8s.io/deployment-name: {WORKERS}}}}}
  rollout: {{strategy: {{type: RollingUpdate, rollingUpdate: {{maxSurge: 2, maxUnavailable: 0}}}}}}
  template:
    metadata: {{labels: {{cluster.x-k8s.io/deployment-name: {WORKERS}}}}}
    spec:
      clusterName: {NAME}
      version: v1.34.0
      bootstrap: {{dataSecretName: {WORKERS}-bootstrap}}
      infrastructureRef:
        apiGroup: infrastructure.cluster.x-k8s.io
        kind: TerraformMachineTemplate
        name: first
"""

HEALTH_CHECK = f"""---
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineHealthCheck
metadata: {{name: {WORKERS}}}
spec:
  clusterName: {NAME}
  selector: {{matchLabels: {{cluster.x-k8s.io/deployment-name: {WORKERS}}}}}
"""


class Deployment:
    """The MachineDeployment of a story."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self._door, self._namespace = story.door, story.namespace

    def apply(self, text: str) -> None:
        self._story.site.kubectl("apply", "-n", self._namespace, "-f", "-", text=text)

    def scale(self, replicas: int) -> None:
        self._change({"replicas": replicas})

    def roll(self, name: str) -> None:
        self._change({"template": {"spec": {"infrastructureRef": {"name": name}}}})

    def look_at(self, name: str) -> None:
        """Let its infrastructure be looked at now."""
        drift = {"spec": {"drift": {"intervalSeconds": 1}}}
        self._door.patch(TERRAFORM_MACHINES, name, self._namespace, drift)

    def _change(self, spec: Document) -> None:
        self._door.patch(DEPLOYMENTS, WORKERS, self._namespace, {"spec": spec})

    def phases(self) -> Counter[str]:
        """How many of its Machines are in each phase."""
        found = self._door.list(MACHINES.untyped(), self._namespace, labels=SELECTED).items
        return Counter(machine.get("status", {}).get("phase", "") for machine in found)

    def infrastructure(self) -> list[TerraformMachine]:
        return self._door.list(TERRAFORM_MACHINES, self._namespace, labels=SELECTED).items

    def templates(self) -> set[str]:
        """Those that its infrastructure was made from."""
        return {obj.metadata.annotations[keys.CLONED_FROM_NAME] for obj in self.infrastructure()}

    def names(self) -> set[str]:
        return {obj.metadata.name for obj in self.infrastructure()}

    def wait_running(self, count: int) -> set[str]:
        """So many Machines have a Node, and nothing else is left; the names."""
        eventually(
            lambda: self.phases() == {"Running": count} and len(self.names()) == count,
            self.explain,
            180,
        )
        return self.names()

    def explain(self) -> str:
        said = [
            f"{obj.metadata.name}: "
            + ", ".join(f"{c.type}={c.status}/{c.reason}" for c in obj.status.conditions)
            for obj in self.infrastructure()
        ]
        return "\n".join([f"{dict(self.phases())}", *said])

    def applies(self) -> list[str]:
        """The machines that were applied, once for each time."""
        labels = f"{keys.OP}={Op.APPLY},{keys.OWNER_KIND}={TERRAFORM_MACHINES.kind}"
        jobs = self._door.list(JOBS, self._namespace, labels=labels).items
        names = (job.metadata.labels[keys.OWNER_NAME] for job in jobs)
        return sorted(name for name in names if name != CONTROL_PLANE)


def has_control_plane(story: Story) -> bool:
    conditions = story.door.get(CLUSTERS, NAME, story.namespace).status.conditions
    return any(c.type == "ControlPlaneInitialized" and c.status == "True" for c in conditions)


@pytest.fixture
def deployment(site) -> Iterator[Deployment]:
    story = Story(site, "deployment")
    story.create()
    story.wait_settled()
    with joining(story):
        # Machines of workers count as healthy once there is a control plane.
        workers = Workers(story)
        workers.apply(machine(CONTROL_PLANE, {keys.CONTROL_PLANE: ""}))
        eventually(lambda: has_control_plane(story), lambda: workers.explain(CONTROL_PLANE), 90)
        yield Deployment(story)
        site.kubectl("delete", "cluster", NAME, "-n", story.namespace, "--timeout=100s")
        eventually(lambda: nothing_left(story), lambda: f"nothing left: {leftovers(story)}", 30)
    story.close()


def test_a_deployment_grows_shrinks_rolls_and_replaces_what_reports_to_be_gone(
    deployment, tmp_path
):
    deployment.apply(
        bootstrap(WORKERS) + machine_template("first", signals=str(tmp_path)) + DEPLOYMENT
    )
    deployment.scale(5)
    five = deployment.wait_running(5)
    assert deployment.applies() == sorted(five)

    deployment.scale(2)
    two = deployment.wait_running(2)
    assert two < five

    deployment.apply(machine_template("second", signals=str(tmp_path)))
    deployment.roll("second")
    eventually(lambda: deployment.templates() == {"second"}, deployment.explain, 180)
    rolled = deployment.wait_running(2)
    assert rolled.isdisjoint(two)
    assert deployment.applies() == sorted(rolled)

    deployment.apply(HEALTH_CHECK)
    sick = min(rolled)
    (tmp_path / sick).touch()
    deployment.look_at(sick)
    eventually(lambda: sick not in deployment.names(), deployment.explain, 180)
    left = deployment.wait_running(2)
    assert len(left & rolled) == 1
