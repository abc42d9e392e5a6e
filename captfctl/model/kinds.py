"""The kinds of objects that have runs, in one table: a new kind is a row here.

What a kind does in a pass is in `captfctl.reconcile`; its fields and schema are in
`captfctl.model.terraform`.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeVar

from captfctl.model.resource import Resource

T = TypeVar("T")

INFRASTRUCTURE: Final = "infrastructure.cluster.x-k8s.io"
VERSION: Final = "v1alpha1"
CONTRACT_VERSION: Final = "v1alpha1"


class Role(StrEnum):
    """What a module makes (module-contract.md: Roles)."""

    CLUSTER = "cluster"
    MACHINE = "machine"
    MACHINE_POOL = "machinepool"

    @property
    def kind(self) -> str:
        """The kind whose image holds a module of this role."""
        return _BY_ROLE[self].name


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind.

    `short` stands for it in the names of Jobs, Secrets and Leases. `owner` is the kind of Cluster
    API that owns such an object. A kind that `leads` has operations that exclude those of all other
    objects of its Cluster; its applies are always guarded against plans that destroy something.
    """

    name: str
    plural: str
    short: str
    role: Role
    owner: str
    leads: bool = False

    @property
    def finalizer(self) -> str:
        """What keeps a deleted object until its infrastructure is gone."""
        return f"{self.name.lower()}.{INFRASTRUCTURE}"

    def resource(self, holds: type[T]) -> Resource[T]:
        """Where its objects are served, as structs of type `holds`."""
        return Resource(INFRASTRUCTURE, VERSION, self.name, self.plural, True, holds)


CLUSTER = Kind("TerraformCluster", "terraformclusters", "c", Role.CLUSTER, "Cluster", leads=True)
MACHINE = Kind("TerraformMachine", "terraformmachines", "m", Role.MACHINE, "Machine")
MACHINE_POOL = Kind(
    "TerraformMachinePool", "terraformmachinepools", "mp", Role.MACHINE_POOL, "MachinePool"
)

KINDS: Final = {kind.name: kind for kind in (CLUSTER, MACHINE, MACHINE_POOL)}
"""By name."""

_BY_ROLE = {kind.role: kind for kind in KINDS.values()}
