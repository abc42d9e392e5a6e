"""The three roles of a module (module-contract.md: Roles)."""

from enum import StrEnum
from typing import Final

CONTRACT_VERSION: Final = "v1alpha1"


class Role(StrEnum):
    CLUSTER = "cluster"
    MACHINE = "machine"
    MACHINE_POOL = "machinepool"

    @property
    def kind(self) -> str:
        """The kind whose image holds a module of this role."""
        return _KINDS[self]

    @classmethod
    def of_kind(cls, kind: str) -> "Role":
        """Raises `KeyError` for a kind that has no module."""
        return _ROLES[kind]


_KINDS = {
    Role.CLUSTER: "TerraformCluster",
    Role.MACHINE: "TerraformMachine",
    Role.MACHINE_POOL: "TerraformMachinePool",
}
_ROLES = {kind: role for role, kind in _KINDS.items()}
