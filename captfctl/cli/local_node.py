"""Running the node agent alone, against any API server."""

import os
from pathlib import Path

from captfctl.cli import logs
from captfctl.cli.local_session import image_table
from captfctl.cli.options import data_dir
from captfctl.cli.signals import end_requested
from captfctl.clock import SystemClock
from captfctl.cluster.live import LiveDoor
from captfctl.local.agent import AgentSettings, NodeAgent
from captfctl.local.agent.settings import inherited_environment

STOP_SECONDS = 10.0


def local_node(
    images: Path | None, data: Path | None, kubeconfig: Path | None, name: str, verbosity: int
) -> int:
    """Returns the exit code. Pods go on running when the agent ends, as under a kubelet."""
    logs.set_up(verbosity)
    ending = end_requested()
    clock = SystemClock()
    table = image_table(images)
    door = LiveDoor.from_kubeconfig(kubeconfig, field_owner="captfctl-node")
    agent = NodeAgent(
        door,
        name,
        table,
        data_dir(data) / "node",
        door.access_for_pods(data_dir(data) / "node"),
        clock,
        AgentSettings(base_env=inherited_environment(os.environ), kubelet_port=0),
    )
    agent.start()
    print(f"node {name} is up on {door.server}; Ctrl-C ends it, pods go on", flush=True)
    while not ending.wait(3600.0):
        pass
    agent.stop(STOP_SECONDS)
    door.close()
    return 0
