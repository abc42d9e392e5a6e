"""The agent itself: a Node, its Lease, and one worker for every pod bound to it."""

from collections.abc import Iterator
from pathlib import Path

from captfctl.clock import Clock
from captfctl.cluster.door import Door
from captfctl.local.agent.access import ApiAccess
from captfctl.local.agent.settings import AgentSettings
from captfctl.local.images import ImageTable


class NodeAgent:
    """Runs the pods of one node as process groups of this machine.

    `data_dir` belongs to one agent at a time. `api=None` with an embedded server that starts later:
    set `agent.api` before `start`.
    """

    def __init__(
        self,
        door: Door,
        node_name: str,
        images: ImageTable,
        data_dir: Path,
        api: ApiAccess,
        clock: Clock,
        settings: AgentSettings | None = None,
    ) -> None: ...

    def start(self) -> None:
        """Take the data directory, adopt what still runs, register the node.

        Raises `EnvironmentFault` when another agent has the directory or it cannot be written.
        """

    def stop(self, timeout: float = 10.0) -> bool:
        """Leave the pods running, as a kubelet does; a later start adopts them."""

    def shut_down(self, grace: float) -> None:
        """End all pods before the machine or its API goes away: SIGTERM, then after at most `grace`
        seconds (a pod's own grace period when that is shorter) SIGKILL; their status is written.
        """

    def open(self, namespace: str, pod: str, container: str, options: object) -> Iterator[bytes]:
        """`captfctl.local.apiserver.LogSource`."""
