"""The state lock of a dead pod whose processes could not be given its host name.

Terraform writes `user@host` into the lock. Without a UTS namespace the host is this machine, so the
manager would take the lock for a foreign one and never clear it
(local-mode.md: Host names and locks). Once the pod is proven dead, the agent puts the pod's name in
the host's place; clearing the lock stays the manager's business.

Only a lock that can be nobody else's is touched: made by this machine, while this pod ran, on the
state this pod was started for, and with no other Terraform running on this machine.
"""

import json
import logging
from pathlib import Path

from captfctl.cluster.door import Door
from captfctl.cluster.errors import NotFound
from captfctl.embedded.supervisor.launch import MARKER
from captfctl.errors import CaptfError
from captfctl.model import keys
from captfctl.model.core import Container, Pod
from captfctl.model.meta import parse_time
from captfctl.model.resources import LEASES

_SUFFIX = "--backend-config=secret_suffix="
_RUNTIMES = frozenset({"terraform", "tofu"})

log = logging.getLogger(__name__)


def attribute_lock(
    door: Door, pod: Pod, container: Container, hostname: str, began: float, ended: float
) -> bool:
    """Attribute what the dead `pod` left; tell whether a lock was changed. Never raises.

    `began` and `ended` are the Unix times between which the container ran; `hostname` is this
    machine's.
    """
    suffix = next((a[len(_SUFFIX) :] for a in container.args if a.startswith(_SUFFIX)), "")
    if not suffix:
        return False
    try:
        return _attribute(door, pod, suffix, hostname, began, ended)
    except CaptfError as problem:
        log.warning("lock of state %s not attributed to %s: %s", suffix, pod.metadata.name, problem)
        return False


def _attribute(
    door: Door, pod: Pod, suffix: str, hostname: str, began: float, ended: float
) -> bool:
    name, namespace = f"lock-tfstate-default-{suffix}", pod.metadata.namespace
    try:
        lease = door.get(LEASES, name, namespace)
    except NotFound:
        return False
    if not lease.spec.holder_identity:
        return False
    try:
        info = json.loads(lease.metadata.annotations.get(keys.LOCK_INFO, ""))
        user, at, host = str(info["Who"]).rpartition("@")
        created = parse_time(str(info["Created"]))
    except (ValueError, KeyError, TypeError):
        return False
    if not at or host != hostname or created is None:
        return False
    if not began <= created.timestamp() <= ended or _other_runtime_lives():
        return False
    info["Who"] = f"{user}@{pod.metadata.name}"
    door.patch(
        LEASES,
        name,
        namespace,
        {"metadata": {"annotations": {keys.LOCK_INFO: json.dumps(info)}}},
        resource_version=lease.metadata.resource_version,
    )
    return True


def _other_runtime_lives() -> bool:
    """Whether any Terraform or OpenTofu runs here outside of this machine's pods."""
    return any(
        _comm(entry) in _RUNTIMES and not _of_a_pod(entry)
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit()
    )


def _comm(process: Path) -> str:
    try:
        return (process / "comm").read_text().strip()
    except OSError:
        return ""


def _of_a_pod(process: Path) -> bool:
    try:
        return f"{MARKER}=".encode() in (process / "environ").read_bytes()
    except OSError:
        return False  # another user's
