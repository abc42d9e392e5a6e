"""The node agent: one node of a control plane, which runs its pods as processes of this machine."""

from captfctl.embedded.agent.access import ApiAccess
from captfctl.embedded.agent.agent import NodeAgent
from captfctl.embedded.agent.settings import AgentSettings

__all__ = ["AgentSettings", "ApiAccess", "NodeAgent"]
