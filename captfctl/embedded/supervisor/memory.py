"""The memory limit of a container: a cgroup where this user may make one, else sampling."""

import contextlib
import os
from enum import StrEnum
from pathlib import Path


class MemoryBy(StrEnum):
    """Who holds the container to its memory limit."""

    CGROUP = "cgroup"
    WATCHDOG = "watchdog"
    """The supervisor adds up the resident memory of the tree twice a second."""
    NONE = "none"
    """The container has no limit."""


SAMPLE_SECONDS = 0.5


def cgroup_name(pod_uid: str, container: str = "") -> str:
    """How the cgroup of a container is named, or how those of all of a pod's begin."""
    return f"captf-{pod_uid}-{container}"


class Cgroup:
    """A cgroup (version 2) below `parent`, made for one container."""

    def __init__(self, parent: Path, name: str, limit: int) -> None:
        """Raises `OSError` when this user may not make one there."""
        self._path = parent / name
        self._path.mkdir(exist_ok=True)
        (self._path / "memory.max").write_text(str(limit))
        # Without this a limit would only push the container into swap.
        with contextlib.suppress(OSError):
            (self._path / "memory.swap.max").write_text("0")
        with contextlib.suppress(OSError):
            (self._path / "memory.oom.group").write_text("1")

    def enter(self) -> None:
        """Put the calling process into it."""
        (self._path / "cgroup.procs").write_text(str(os.getpid()))

    @property
    def out_of_memory(self) -> bool:
        """Whether the kernel has killed something in it for memory."""
        for line in (self._path / "memory.events").read_text().splitlines():
            name, _, count = line.partition(" ")
            if name == "oom_kill":
                return int(count) > 0
        return False

    def remove(self) -> None:
        """Remove it, if nothing is in it."""
        with contextlib.suppress(OSError):
            self._path.rmdir()


def find_parent(root: Path, membership: Path) -> Path | None:
    """The nearest cgroup above our own in which this user can limit the memory of a child.

    `root` is where cgroups version 2 are mounted, `membership` this process's `/proc/self/cgroup`.
    Our own one is no candidate: a cgroup with processes in it cannot hand out controllers.
    """
    own = next(
        (line[3:] for line in membership.read_text().splitlines() if line.startswith("0::")), None
    )
    if own is None or not (root / "cgroup.controllers").exists():
        return None
    here = root / own.lstrip("/")
    candidates = [path for path in here.parents if path == root or root in path.parents]
    if here == root:
        candidates = [root]
    for path in candidates:
        with contextlib.suppress(OSError):
            enabled = (path / "cgroup.subtree_control").read_text().split()
            if "memory" in enabled and os.access(path, os.W_OK):
                return path
    return None
