"""Whose runs these are: the identity that names, labels and owner references come from."""

from dataclasses import dataclass

import msgspec

from captfctl.model import keys, names
from captfctl.model.kinds import CLUSTER, INFRASTRUCTURE, KINDS, VERSION
from captfctl.model.meta import ApiObject, ObjectMeta, OwnerReference
from captfctl.model.ops import MUTATING
from captfctl.model.resource import Resource
from captfctl.model.status import CommonStatus
from captfctl.model.subject import Group

API_VERSION = f"{INFRASTRUCTURE}/{VERSION}"


class RunsObject(ApiObject):
    """What every object with runs has, whatever its kind. For reading; writes are patches."""

    status: CommonStatus = msgspec.field(default_factory=CommonStatus)


@dataclass(frozen=True, slots=True)
class Owner:
    """An object whose runs are Jobs. `cluster` is empty when its Cluster's name is unknown.

    Only immutable identity is in here: the backend finds a state by labels made of it
    (state.md: Backend configuration).
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
        """The constant part of the names of its state (state.md: Names of a state)."""
        return names.state_suffix(self.kind, self.namespace, self.name)

    @property
    def run_lease(self) -> str:
        """The name of the Lease that keeps its runs apart
        (leases.md: Run lease and cluster lease)."""
        return names.run_lease(self.suffix)

    @property
    def group(self) -> Group | None:
        """The Cluster it belongs to, whose own operations and its machines' exclude each other."""
        if not self.cluster:
            return None
        lease = names.cluster_lease(self.namespace, self.cluster)
        return Group(self.cluster, lease, CLUSTER.name, MUTATING)

    @property
    def resource(self) -> Resource[RunsObject]:
        """Where the object itself is served."""
        return KINDS[self.kind].resource(RunsObject)

    @property
    def labels(self) -> dict[str, str]:
        """The two labels by which its Secrets, Jobs and Leases are found
        (metadata.md: On Jobs, pods, Secrets and Leases)."""
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
        """The labels of Jobs, pods and Leases without their own additions."""
        return {
            **self.labels,
            keys.MANAGED: keys.TRUE,
            keys.CLUSTER_NAME: names.label_value(self.cluster),
        }

    @property
    def backend_labels(self) -> dict[str, str]:
        """The labels that Terraform's backend writes on the state and selects it by."""
        return {**self.run_labels, keys.MOVE: ""}

    @property
    def event_target(self) -> str:
        """The runner's `--event-object` (runs.md: Arguments of the runner)."""
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
