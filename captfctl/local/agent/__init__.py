"""The node agent: one node of a control plane, which runs its pods as processes of this machine."""

from captfctl.local.agent.access import ApiAccess
from captfctl.local.agent.agent import NodeAgent
from captfctl.local.agent.settings import AgentSettings

__all__ = ["AgentSettings", "ApiAccess", "NodeAgent"]
