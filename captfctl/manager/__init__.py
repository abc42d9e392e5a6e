"""The controller process: caches, queues, workers, leader election, probes and metrics
(manager.md: Caches and workers)."""

from captfctl.manager.manager import GRACEFUL_SHUTDOWN, LEASE_NAME, LeadershipLost, Manager
from captfctl.settings import ManagerSettings

__all__ = ["GRACEFUL_SHUTDOWN", "LEASE_NAME", "LeadershipLost", "Manager", "ManagerSettings"]
