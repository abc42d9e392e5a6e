"""What all pods of one node share."""

from dataclasses import dataclass
from pathlib import Path

from captfctl.clock import Clock
from captfctl.cluster.door import Door
from captfctl.embedded.agent.access import ApiAccess
from captfctl.embedded.agent.settings import AgentSettings
from captfctl.embedded.events import Events
from captfctl.embedded.images import ImageStore
from captfctl.embedded.supervisor.isolation import HostnameBy


@dataclass(frozen=True, kw_only=True)
class Node:
    """`hostname` is this machine's own; `cgroup` the cgroup below which containers' go, if any."""

    door: Door
    name: str
    images: ImageStore
    access: ApiAccess
    clock: Clock
    settings: AgentSettings
    events: Events
    hostname: str
    address: str
    hostname_by: HostnameBy
    cgroup: Path | None
