"""What this machine grants the agent: found out once, by trying, in a process of its own."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import captfctl
from captfctl.embedded.supervisor.isolation import HostnameBy
from captfctl.embedded.supervisor.memory import find_parent

_ROOT = Path(captfctl.__file__).parents[1]
_TRIAL_SECONDS = 20


def hostname_way() -> HostnameBy:
    """How the processes of a pod can be given its name."""
    first = HostnameBy.UTS_NAMESPACE if os.geteuid() == 0 else HostnameBy.USER_NAMESPACE
    ways = dict.fromkeys((first, HostnameBy.USER_NAMESPACE))
    return next((way for way in ways if _grants(way)), HostnameBy.LOCK_ATTRIBUTION)


def _grants(way: HostnameBy) -> bool:
    name = "captf-trial"
    program = (
        f"import sys; sys.path.insert(0, {str(_ROOT)!r})\n"
        "from captfctl.embedded.supervisor.isolation import take_hostname\n"
        f"take_hostname({name!r}, {str(way)!r})\n"
        "import os; print(os.uname().nodename)\n"
    )
    try:
        trial = subprocess.run(
            [sys.executable, "-IS", "-c", program],
            capture_output=True,
            text=True,
            timeout=_TRIAL_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return trial.returncode == 0 and trial.stdout.strip() == name


def cgroup_parent() -> Path | None:
    """The cgroup below which containers' memory can be limited; None when there is none."""
    parent = find_parent(Path("/sys/fs/cgroup"), Path("/proc/self/cgroup"))
    return parent if parent is not None and _can_move_into(parent) else None


def _can_move_into(parent: Path) -> bool:
    """Whether a process of ours may be put below `parent`: tried with one that does nothing."""
    program = (
        f"import sys; sys.path.insert(0, {str(_ROOT)!r})\n"
        "from pathlib import Path\n"
        "from captfctl.embedded.supervisor.memory import Cgroup\n"
        f"Cgroup(Path({str(parent)!r}), 'captf-trial-{os.getpid()}', 1 << 30).enter()\n"
    )
    try:
        trial = subprocess.run(
            [sys.executable, "-IS", "-c", program],
            capture_output=True,
            timeout=_TRIAL_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    finally:
        with contextlib.suppress(OSError):
            (parent / f"captf-trial-{os.getpid()}").rmdir()
    return trial.returncode == 0
