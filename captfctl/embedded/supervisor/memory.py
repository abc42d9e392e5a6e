"""The memory limit of a container: a cgroup where this user may make one, else sampling."""

import contextlib
import os
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple


class MemoryBy(StrEnum):
    """Who holds the container to its memory limit."""

    CGROUP = "cgroup"
    """The kernel, by a cgroup of either version: also a peak of a millisecond."""
    WATCHDOG = "watchdog"
    """The supervisor adds up the resident memory of the tree twice a second."""
    NONE = "none"
    """The container has no limit."""


SAMPLE_SECONDS = 0.5


def cgroup_name(pod_uid: str, container: str = "") -> str:
    """How the cgroup of a container is named, or how those of all of a pod's begin."""
    return f"captf-{pod_uid}-{container}"


class _Files(NamedTuple):
    """The files of one version of cgroups. `optional` is what a kernel may lack."""

    limit: str
    optional: Mapping[str, str]
    events: str


# Without a limit on swap, one on memory would only push the container out there.
_VERSION_2 = _Files(
    "memory.max", {"memory.swap.max": "0", "memory.oom.group": "1"}, "memory.events"
)
_VERSION_1 = _Files(
    "memory.limit_in_bytes", {"memory.memsw.limit_in_bytes": "{limit}"}, "memory.oom_control"
)


class Cgroup:
    """A cgroup below `parent`, made for one container; of the version that `parent` is."""

    def __init__(self, parent: Path, name: str, limit: int) -> None:
        """Raises `OSError` when this user may not make one there."""
        self._files = _VERSION_1 if (parent / _VERSION_1.limit).exists() else _VERSION_2
        self._path = parent / name
        self._path.mkdir(exist_ok=True)
        (self._path / self._files.limit).write_text(str(limit))
        for file, value in self._files.optional.items():
            with contextlib.suppress(OSError):
                (self._path / file).write_text(value.format(limit=limit))

    def enter(self) -> None:
        """Put the calling process into it."""
        (self._path / "cgroup.procs").write_text(str(os.getpid()))

    @property
    def out_of_memory(self) -> bool:
        """Whether the kernel has killed something in it for memory."""
        for line in (self._path / self._files.events).read_text().splitlines():
            name, _, count = line.partition(" ")
            if name == "oom_kill":
                return int(count) > 0
        return False

    def remove(self) -> None:
        """Remove it, if nothing is in it."""
        with contextlib.suppress(OSError):
            self._path.rmdir()


def find_parent(root: Path, membership: Path) -> Path | None:
    """The nearest cgroup in which this user can limit the memory of a child.

    `root` is where cgroups are mounted, `membership` this process's `/proc/self/cgroup`.
    """
    lines = [line.split(":", 2) for line in membership.read_text().splitlines()]
    own = {names: path for _, names, path in (line for line in lines if len(line) == 3)}
    if (root / "cgroup.controllers").exists():
        return _parent_of_version_2(root, own.get(""))
    return _parent_of_version_1(root / "memory", own.get("memory"))


def _parent_of_version_1(root: Path, own: str | None) -> Path | None:
    """Our own one, or the root, where a container sees its own there."""
    if own is None:
        return None
    for path in (root / own.lstrip("/"), root):
        if (path / _VERSION_1.limit).exists() and os.access(path, os.W_OK):
            return path
    return None


def _parent_of_version_2(root: Path, own: str | None) -> Path | None:
    """Above our own one, which is no candidate: a cgroup with processes in it cannot hand out
    controllers."""
    if own is None:
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
