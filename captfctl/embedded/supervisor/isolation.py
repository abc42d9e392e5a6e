"""The host name of a container's processes, and who reaps their orphans.

Terraform writes the machine's host name into its state lock, and the manager knows its own dead
pods by it (local-mode.md: Host names and locks). A UTS namespace gives the container its pod's
name: as root directly, else inside a user namespace that maps this user onto itself.
"""

import ctypes
import os
from enum import StrEnum
from pathlib import Path

_CLONE_NEWUTS = 0x04000000
_CLONE_NEWUSER = 0x10000000
_PR_SET_CHILD_SUBREAPER = 36


class HostnameBy(StrEnum):
    """How the pod's name reaches the state lock."""

    UTS_NAMESPACE = "uts-namespace"
    USER_NAMESPACE = "user-namespace"
    LOCK_ATTRIBUTION = "lock-attribution"
    """No namespace was to be had: the node agent corrects the lock of a pod that is proven dead."""


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def become_reaper() -> None:
    """Every orphaned descendant of this process becomes its child, also after a double fork."""
    _check(_libc().prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl(PR_SET_CHILD_SUBREAPER)")


def take_hostname(name: str, way: str) -> int:
    """Give this process and its descendants the host name `name`.

    Returns the inode of the new namespace, 0 for `HostnameBy.LOCK_ATTRIBUTION`. Raises `OSError`.
    The process must have one thread only.
    """
    if way == HostnameBy.USER_NAMESPACE:
        user, group = os.geteuid(), os.getegid()
        _check(_libc().unshare(_CLONE_NEWUSER | _CLONE_NEWUTS), "unshare")
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    elif way == HostnameBy.UTS_NAMESPACE:
        _check(_libc().unshare(_CLONE_NEWUTS), "unshare")
    else:
        return 0
    raw = name.encode()
    _check(_libc().sethostname(raw, len(raw)), "sethostname")
    return Path("/proc/self/ns/uts").stat().st_ino
