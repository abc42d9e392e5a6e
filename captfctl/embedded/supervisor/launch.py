"""What a supervisor is told. It comes on its standard input: it holds secrets of the environment,
which belong neither on disk nor into process arguments.
"""

import json
from pathlib import Path
from typing import NamedTuple

MARKER = "CAPTF_POD_UID"
"""The environment variable that marks every process of a pod."""


class Launch(NamedTuple):
    """One container. `hostname_by` and `memory_by` are values of `isolation` and `memory`.

    `holds_stop`: the program lets SIGTERM through itself, once it can tell what that interrupted.
    """

    directory: str
    argv: list[str]
    env: dict[str, str]
    cwd: str
    pod_uid: str
    hostname: str = ""
    hostname_by: str = ""
    memory_limit: int = 0
    memory_by: str = ""
    cgroup: str = ""
    holds_stop: bool = False
    log_limit: int = 32 * 1024 * 1024

    @property
    def path(self) -> Path:
        """The container's directory."""
        return Path(self.directory)

    def encode(self) -> bytes:
        """For the supervisor's standard input."""
        return json.dumps(self._asdict()).encode()

    @staticmethod
    def decode(body: bytes) -> "Launch":
        """What `encode` wrote."""
        return Launch(**json.loads(body))
