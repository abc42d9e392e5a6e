"""What the node agent can be told, and why each default is what it is."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

# What an image's own environment would hold; everything else of ours stays out of a pod.
INHERITED = (
    "PATH",
    "LANG",
    "LC_ALL",
    "TZ",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
)


def inherited_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The part of this process's environment that a pod's processes get."""
    return {name: environ[name] for name in INHERITED if name in environ}


@dataclass(frozen=True, kw_only=True)
class AgentSettings:
    """Times are in seconds."""

    base_env: Mapping[str, str] = field(default_factory=dict)
    """What stands for an image's environment, `PATH` above all: `inherited_environment(...)`."""

    runner: Path | None = None
    """The self-contained runner to place in pods. None: the package `runner` of this Python."""

    lease_duration: int = 40
    """As a kubelet's: a node is lost when its Lease was not renewed for so long."""

    renew_interval: float = 10.0
    """A quarter of the Lease's duration, as a kubelet's."""

    status_interval: float = 300.0
    """How often the Node's status is written when nothing changed, as a kubelet's."""

    image_retry: float = 10.0
    """First delay after a reference that the table does not have; doubles up to 300."""

    mount_retry: float = 1.0
    """How often a missing Secret is looked for in the end. A kubelet takes longer; a run should not
    wait."""

    kill_wait: float = 10.0
    """How long a supervisor may take to end a tree before the agent does it itself."""

    log_limit: int = 32 * 1024 * 1024
    """Bytes of one log file of a container; the file before it is kept as well."""

    kubelet_port: int | None = None
    """Serve logs over HTTPS as a kubelet does, for `kubectl logs` on a real control plane. 0: any
    free port. None: not at all."""
