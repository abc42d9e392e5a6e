"""Whose runs these are: the identity that names, labels and owner references come from."""

from dataclasses import dataclass

import msgspec

from captfctl.model import keys, names
from captfctl.model.meta import ApiObject, ObjectMeta, OwnerReference
from captfctl.model.ops import Op
from captfctl.model.resource import Resource
from captfctl.model.resources import INFRASTRUCTURE
from captfctl.model.status import CommonStatus
from captfctl.model.subject import Group

API_VERSION = f"{INFRASTRUCTURE}/v1alpha1"

_PLURALS = {
    "TerraformCluster": "terraformclusters",
    "TerraformMachine": "terraformmachines",
    "TerraformMachinePool": "terraformmachinepools",
}


_EXCLUSIVE = frozenset(op.value for op in Op if op.mutating)


class RunsObject(ApiObject):
    """What every object with runs has, whatever its kind. For reading; writes are patches."""

    status: CommonStatus = msgspec.field(default_factory=CommonStatus)


@dataclass(frozen=True, slots=True)
class Owner:
    """An object whose runs are Jobs. `cluster` is empty when its Cluster's name is unknown.

    Only immutable identity is in here: the backend finds a state by labels made of it (40 §2.5).
    """

    kind: str
    namespace: str
    name: str
    uid: str
    cluster: str = ""

    @property
    def short(self) -> str:
        """`c`, `m` or `mp`."""
        return names.kind_short(self.kind)

    @property
    def suffix(self) -> str:
        """The constant part of the names of its state (40 §1)."""
        return names.state_suffix(self.kind, self.namespace, self.name)

    @property
    def run_lease(self) -> str:
        """The name of the Lease that keeps its runs apart (11 §10.1)."""
        return names.run_lease(self.suffix)

    @property
    def group(self) -> Group | None:
        """The Cluster it belongs to, whose own operations and its machines' exclude each other."""
        if not self.cluster:
            return None
        lease = names.cluster_lease(self.namespace, self.cluster)
        return Group(self.cluster, lease, "TerraformCluster", _EXCLUSIVE)

    @property
    def resource(self) -> Resource[RunsObject]:
        """Where the object itself is served."""
        return Resource(
            INFRASTRUCTURE, "v1alpha1", self.kind, _PLURALS[self.kind], True, RunsObject
        )

    @property
    def labels(self) -> dict[str, str]:
        """The two labels by which its Secrets, Jobs and Leases are found (31 §6.3)."""
        return {
            keys.OWNER_KIND: self.kind,
            keys.OWNER_NAME: names.label_value(self.name),
        }

    @property
    def selector(self) -> str:
        """`labels` in selector notation."""
        return ",".join(f"{key}={value}" for key, value in self.labels.items())

    @property
    def run_labels(self) -> dict[str, str]:
        """The labels of Jobs, pods and Leases without their own additions (11 §3)."""
        return {
            **self.labels,
            keys.MANAGED: keys.TRUE,
            keys.CLUSTER_NAME: names.label_value(self.cluster),
        }

    @property
    def backend_labels(self) -> dict[str, str]:
        """The labels that Terraform's backend writes on the state and selects it by (40 §2.4)."""
        return {**self.run_labels, keys.MOVE: ""}

    @property
    def event_target(self) -> str:
        """The runner's `--event-object` (11 §4.2)."""
        return "/".join((API_VERSION, self.kind, self.namespace, self.name, self.uid))

    def owner_reference(self, *, controller: bool = False) -> OwnerReference:
        """A Job's is the controller's and blocks the owner's deletion; any other does neither."""
        return OwnerReference(
            api_version=API_VERSION,
            kind=self.kind,
            name=self.name,
            uid=self.uid,
            controller=True if controller else None,
            block_owner_deletion=True if controller else None,
        )

    def controls(self, metadata: ObjectMeta) -> bool:
        """Whether exactly this object, not an earlier one of the name, is the controller."""
        controller = metadata.controller
        return controller is not None and bool(self.uid) and controller.uid == self.uid
