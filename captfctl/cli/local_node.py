"""Running the node agent alone, against any API server."""

import os
import time
from pathlib import Path
from threading import Event

from captfctl.cli import logs
from captfctl.cli.modules import image_table
from captfctl.cli.options import data_dir
from captfctl.cli.signals import end_requested
from captfctl.clock import SystemClock
from captfctl.cluster.door import find
from captfctl.cluster.live import LiveDoor
from captfctl.embedded.agent import AgentSettings, ApiAccess, NodeAgent
from captfctl.embedded.agent.access import ROOT_CA
from captfctl.embedded.agent.settings import inherited_environment
from captfctl.embedded.layout import NODE
from captfctl.errors import EnvironmentFault, InputError
from captfctl.model import keys
from captfctl.model.names import LABEL_VALUE_MAX
from captfctl.model.resources import CONFIG_MAPS

STOP_SECONDS = 10.0
PUBLISHED_SECONDS = 30.0


def local_node(
    images: Path | None, data: Path | None, kubeconfig: Path | None, name: str, verbosity: int
) -> int:
    """Returns the exit code. Pods go on running when the agent ends, as under a kubelet."""
    if len(name) > LABEL_VALUE_MAX:
        raise InputError(
            "--name cannot be used",
            why=f"a node's name is also its label {keys.HOSTNAME}, which has at most "
            f"{LABEL_VALUE_MAX} characters",
            do="name the node more briefly",
        )
    logs.set_up(verbosity)
    ending = end_requested()
    clock = SystemClock()
    table = image_table(images)
    door = LiveDoor.from_kubeconfig(kubeconfig, field_owner="captfctl-node")
    agent = NodeAgent(
        door,
        name,
        table,
        data_dir(data) / NODE,
        _access(door, data_dir(data), ending),
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


def _published_authority(door: LiveDoor, ending: Event) -> str:
    """A control plane that was just started publishes it a moment later."""
    until = time.monotonic() + PUBLISHED_SECONDS
    while True:
        found = find(door, CONFIG_MAPS, "kube-system", ROOT_CA)
        published = found.data.get("ca.crt", "") if found is not None else ""
        if published or time.monotonic() > until or ending.wait(0.2):
            return published


def _access(door: LiveDoor, data: Path, ending: Event) -> ApiAccess:
    """How pods reach the same server: with tokens of their own ServiceAccounts."""
    published = _published_authority(door, ending)
    if not published:
        raise EnvironmentFault(
            "the certificate authority of the API server is not published",
            where=f"ConfigMap kube-system/{ROOT_CA}",
            why="it does not exist or has no ca.crt, which pods verify the server with",
            do="see that kube-controller-manager runs with --root-ca-file",
        )
    authority = data / "ca.crt"
    try:
        data.mkdir(parents=True, exist_ok=True)
        authority.write_text(published)
    except OSError as error:
        raise EnvironmentFault(
            "the data directory cannot be used", where=str(data), why=str(error)
        ) from None
    return ApiAccess(server=door.server, ca_path=authority)
