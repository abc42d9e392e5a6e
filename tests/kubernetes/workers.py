"""A machine and a pool beside the cluster of a story, as Cluster API has them."""

from collections.abc import Mapping
from types import MappingProxyType

from captfctl.model import keys
from captfctl.model.capi import Machine, MachinePool
from captfctl.model.conditions import find
from captfctl.model.machine import TerraformMachine, TerraformMachinePool
from captfctl.model.resources import (
    MACHINE_POOLS,
    MACHINES,
    TERRAFORM_MACHINE_POOLS,
    TERRAFORM_MACHINES,
)
from captfctl.model.terraform import TerraformObject
from tests.e2e.scenarios import NAME, Story
from tests.e2e.site import eventually

MACHINE_IMAGE = "registry.example.com/machine/module:v1"
POOL_IMAGE = "registry.example.com/pool/module:v1"

WORKER = "worker-0"
POOL = "workers"


def bootstrap(name: str) -> str:
    return f"""---
apiVersion: v1
kind: Secret
metadata: {{name: {name}-bootstrap}}
type: cluster.x-k8s.io/secret
stringData: {{value: "#cloud-config", format: cloud-config}}
"""


def machine(
    name: str = WORKER, labels: Mapping[str, str] = MappingProxyType({}), **variables: str
) -> str:
    """A Machine of its own, its infrastructure and its bootstrap data."""
    tags = ", ".join(f'{key}: "{value}"' for key, value in labels.items())
    chosen = ", ".join(f"{key}: {value}" for key, value in variables.items())
    return f"""{bootstrap(name)}---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Machine
metadata: {{name: {name}, labels: {{{tags}}}}}
spec:
  clusterName: {NAME}
  version: v1.34.0
  bootstrap: {{dataSecretName: {name}-bootstrap}}
  infrastructureRef:
    apiGroup: infrastructure.cluster.x-k8s.io
    kind: TerraformMachine
    name: {name}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1
kind: TerraformMachine
metadata:
  name: {name}
  # As by a manager that died before it created its Job: the object itself is read again.
  annotations: {{{keys.BLOCK_MOVE}: "true"}}
spec:
  source: {{image: {MACHINE_IMAGE}}}
  remediation: {{annotateMachine: true, unhealthyThreshold: 1}}
{f"  variables: {{{chosen}}}" if chosen else ""}
"""


def machine_template(name: str, *, signals: str) -> str:
    """A machine of it reports to be gone once there is a file of its name in `signals`."""
    return f"""---
apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1
kind: TerraformMachineTemplate
metadata: {{name: {name}}}
spec:
  capacity: {{cpu: 2, memory: 4Gi}}
  template:
    spec:
      source: {{image: {MACHINE_IMAGE}}}
      variables: {{signals: {signals}}}
      remediation: {{annotateMachine: true, unhealthyThreshold: 1}}
"""


def pool(replicas: int = 1, most: int = 0) -> str:
    """A MachinePool and its infrastructure. `most`: an autoscaler may make so many of it."""
    scaling = {keys.AUTOSCALER_MIN: "1", keys.AUTOSCALER_MAX: f"{most}"} if most else {}
    annotations = ", ".join(f'{key}: "{value}"' for key, value in scaling.items())
    return f"""{bootstrap(POOL)}---
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachinePool
metadata: {{name: {POOL}, annotations: {{{annotations}}}}}
spec:
  clusterName: {NAME}
  replicas: {replicas}
  template:
    spec:
      clusterName: {NAME}
      version: v1.34.0
      bootstrap: {{dataSecretName: {POOL}-bootstrap}}
      infrastructureRef:
        apiGroup: infrastructure.cluster.x-k8s.io
        kind: TerraformMachinePool
        name: {POOL}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1
kind: TerraformMachinePool
metadata: {{name: {POOL}, annotations: {{{keys.BLOCK_MOVE}: "true"}}}}
spec:
  source: {{image: {POOL_IMAGE}}}
"""


class Workers:
    """The machines and the pool of a story."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self._door, self._namespace = story.door, story.namespace

    def apply(self, text: str) -> None:
        self._story.site.kubectl("apply", "-n", self._namespace, "-f", "-", text=text)

    def machine(self, name: str = WORKER) -> Machine:
        return self._door.get(MACHINES, name, self._namespace)

    def infrastructure(self, name: str = WORKER) -> TerraformMachine:
        return self._door.get(TERRAFORM_MACHINES, name, self._namespace)

    def machine_pool(self) -> MachinePool:
        return self._door.get(MACHINE_POOLS, POOL, self._namespace)

    def pool(self) -> TerraformMachinePool:
        return self._door.get(TERRAFORM_MACHINE_POOLS, POOL, self._namespace)

    def wait_machine_ready(self, name: str = WORKER) -> TerraformMachine:
        eventually(lambda: _ready(self.infrastructure(name)), lambda: self.explain(name), 120)
        return self.infrastructure(name)

    def wait_pool_ready(self) -> TerraformMachinePool:
        eventually(lambda: _ready(self.pool()), lambda: _conditions(self.pool()), 120)
        return self.pool()

    def explain(self, name: str = WORKER) -> str:
        return _conditions(self.infrastructure(name))


def _ready(obj: TerraformObject) -> bool:
    found = find(obj.status.conditions, "Ready")
    return found is not None and found.status == "True" and obj.status.active_job is None


def _conditions(obj: TerraformObject) -> str:
    return "; ".join(f"{c.type}={c.status}/{c.reason}: {c.message}" for c in obj.status.conditions)
