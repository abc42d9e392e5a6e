"""The controller process, from its settings to its end."""

import gc
import logging
import os
import socket
import uuid
from pathlib import Path

from captfctl.cli import logs
from captfctl.cli.memory import give_back_large_blocks
from captfctl.cli.signals import end_requested
from captfctl.clock import SystemClock
from captfctl.cluster.live import LiveDoor
from captfctl.errors import InputError
from captfctl.manager import GRACEFUL_SHUTDOWN, Manager
from captfctl.manager.manager import LeadershipLost
from captfctl.model import keys
from captfctl.reconcile.kinds import RULES
from captfctl.settings import ManagerSettings

_YOUNG_OBJECTS = 50_000

log = logging.getLogger(__name__)


def own_namespace() -> str:
    """The manager's own namespace, which a pod is told; where its Lease is."""
    return os.environ.get("POD_NAMESPACE", "")


def manager_identity() -> str:
    """This process among several managers: never the same twice, also on one host."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


def run_manager(
    settings: ManagerSettings, kubeconfig: Path | None, logging_format: str, verbosity: int
) -> int:
    """Returns the exit code: 0 after an orderly end, 1 when workers did not end in time.

    Raises `InputError`, `EnvironmentFault`, and what the first request to the API server raises.
    """
    settings.validate()
    logs.set_up(verbosity, _format(logging_format))
    ending = end_requested()
    connections = settings.workers + 8
    door = LiveDoor.from_kubeconfig(kubeconfig, field_owner=keys.FIELD_OWNER, pool_size=connections)
    # First of all: a server that is not there, or lacks a kind, is told at once.
    for rules in RULES.values():
        door.list(rules.resource, settings.namespace, limit=1)
    give_back_large_blocks()
    _collect_garbage_seldom()
    manager = Manager(door, settings, SystemClock(), door.abandon)
    manager.start()
    log.info("manager started on %s", door.server)
    try:
        while not ending.wait(0.2):
            manager.wait(0.0)
        log.info("ending: waiting for running passes")
        return 0 if manager.stop(GRACEFUL_SHUTDOWN) else 1
    except LeadershipLost:
        manager.stop(0.0)
        raise
    finally:
        door.close()


def _collect_garbage_seldom() -> None:
    """A pass makes thousands of objects and hardly a cycle: with the defaults, a tenth of its time
    goes into looking for some, also among everything that was imported."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG_OBJECTS, 20, 20)


def _format(text: str) -> logs.LogFormat:
    try:
        return logs.LogFormat(text)
    except ValueError:
        raise InputError(
            f"Unsupported log format: {text!r}", where="--logging-format", do="use text or json"
        ) from None
