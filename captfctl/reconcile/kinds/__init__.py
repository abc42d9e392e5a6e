"""The kinds that are reconciled: what is particular about each, and nothing else
(reconcile.md: Kinds)."""

from collections.abc import Mapping
from typing import Final

from captfctl.model.kinds import CLUSTER, MACHINE, MACHINE_POOL
from captfctl.reconcile.kinds.cluster import ClusterRules
from captfctl.reconcile.kinds.machine import MachineRules
from captfctl.reconcile.kinds.machine_pool import MachinePoolRules
from captfctl.reconcile.kinds.rules import (
    Applied,
    Built,
    GuardedChange,
    KindRules,
    Mapped,
    OwnerLookup,
    effective,
    owner_of,
    paused_by,
)

__all__ = [
    "RULES",
    "Applied",
    "Built",
    "GuardedChange",
    "KindRules",
    "Mapped",
    "OwnerLookup",
    "effective",
    "owner_of",
    "paused_by",
]

RULES: Final[Mapping[str, type[KindRules]]] = {
    CLUSTER.name: ClusterRules,
    MACHINE.name: MachineRules,
    MACHINE_POOL.name: MachinePoolRules,
}
"""By the kind's name."""
