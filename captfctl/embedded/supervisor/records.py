"""The files a supervisor leaves in a container's directory, each whole or absent.

`supervisor.json` is the claim: the supervisor that links it into place runs the container, any
other does not, so a container starts at most once, whatever crashes when. `exit.json` is the proof
that nothing of it runs any more.
"""

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

CLAIM = "supervisor.json"
RUNNING = "running.json"
EXIT = "exit.json"
LOG = "0.log"
ERRORS = "supervisor.err"


class Claim(NamedTuple):
    """The supervisor that has the container: `start` in clock ticks since the boot `boot`.

    `uts` is the inode of the UTS namespace made for the container, 0 when there is none.
    """

    pid: int
    start: int
    boot: str
    uts: int = 0


class Running(NamedTuple):
    """The container's main process; `at` is a Unix time."""

    pid: int
    start: int
    at: float


class Ended(NamedTuple):
    """How the container ended. `reason` is set when it is not told by the exit code."""

    exit_code: int
    signal: int = 0
    reason: str = ""
    message: str = ""
    started_at: float = 0.0
    finished_at: float = 0.0
    left_over: int = 0
    dropped_log_bytes: int = 0


def _fsync_directory(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _write_beside(path: Path, record: Claim | Running | Ended) -> Path:
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(handle, json.dumps(record._asdict()).encode())
        os.fsync(handle)
    finally:
        os.close(handle)
    return beside


def write(path: Path, record: Claim | Running | Ended) -> None:
    """Replace `path`, durably."""
    beside = _write_beside(path, record)
    beside.replace(path)
    _fsync_directory(path.parent)


def claim(path: Path, record: Claim) -> bool:
    """Create `path`, durably; False when somebody else has."""
    beside = _write_beside(path, record)
    try:
        os.link(beside, path)
    except FileExistsError:
        return False
    finally:
        beside.unlink(missing_ok=True)
    _fsync_directory(path.parent)
    return True


def read_claim(directory: Path) -> Claim | None:
    """Who has the container; None when nobody has."""
    found = _read(directory / CLAIM)
    return None if found is None else Claim(**found)


def read_running(directory: Path) -> Running | None:
    """The container's main process; None when there is no record."""
    found = _read(directory / RUNNING)
    return None if found is None else Running(**found)


def read_ended(directory: Path) -> Ended | None:
    """How the container ended; None when there is no record."""
    found = _read(directory / EXIT)
    return None if found is None else Ended(**found)


def _read(path: Path) -> dict[str, Any] | None:
    """None when the file is absent, or was cut short by a crash of the whole machine."""
    try:
        found = json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return None
    return found if isinstance(found, dict) else None
