"""The controller process: caches, queues, workers, leader election, probes and metrics (50 §16)."""

from captfctl.manager.manager import LeadershipLost, Manager
from captfctl.manager.settings import GRACEFUL_SHUTDOWN, LEASE_NAME, ManagerSettings

__all__ = ["GRACEFUL_SHUTDOWN", "LEASE_NAME", "LeadershipLost", "Manager", "ManagerSettings"]
