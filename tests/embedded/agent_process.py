"""The node agent as a process of its own: `python -m tests.embedded.agent_process KUBECONFIG …`."""

import os
import sys
from pathlib import Path

from captfctl.clock import SystemClock
from captfctl.cluster.live import LiveDoor
from captfctl.embedded.agent import AgentSettings, ApiAccess, NodeAgent
from captfctl.embedded.images import Entry, ImageTable


def main(kubeconfig: str, base: str, image: str, ca: str) -> None:
    door = LiveDoor.from_kubeconfig(kubeconfig)
    agent = NodeAgent(
        door,
        "node",
        ImageTable({image: Entry(module=Path(base) / "module")}),
        Path(base) / "node",
        ApiAccess(server=door.server, ca_path=Path(ca)),
        SystemClock(),
        AgentSettings(base_env={"PATH": os.environ["PATH"]}, kubelet_port=0),
    )
    agent.start()
    print("up", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
