"""A stand-in for the Cluster API core provider: only what our objects read of it
(local-mode.md: The stand-in for Cluster API).

Left out: everything else of Cluster API. Deployments, sets and control planes, bootstrap, Nodes,
topology, templates, health checks, moves, other providers and other conditions.
"""

from captfctl.embedded.capi.definitions import capi_crds, capi_policies
from captfctl.embedded.capi.stand_in import CapiStandIn

__all__ = ["CapiStandIn", "capi_crds", "capi_policies"]
