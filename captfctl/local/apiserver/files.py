"""Files that hold keys, tokens and access: written whole or not at all, for the owner only."""

import os
import tempfile
from pathlib import Path

from captfctl.errors import EnvironmentFault

PRIVATE = 0o600


def make_private_directory(path: Path) -> None:
    """Raises `EnvironmentFault` when it cannot be made."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as problem:
        raise _fault(path, problem) from None


def write_private(path: Path, content: bytes) -> None:
    """Put the content into the file at once, mode 0600. Raises `EnvironmentFault`."""
    try:
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "wb") as file:  # mkstemp made it with mode 0600
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as problem:
        raise _fault(path, problem) from None


def read_private(path: Path) -> bytes | None:
    """The file's content; None when there is none. Others' access to it is taken away."""
    try:
        content = path.read_bytes()
        if path.stat().st_mode & 0o077:
            path.chmod(PRIVATE)
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise _fault(path, problem) from None
    return content


def _fault(path: Path, problem: OSError) -> EnvironmentFault:
    return EnvironmentFault(
        "the embedded API server cannot keep its files",
        where=str(path),
        why=problem.strerror or type(problem).__name__,
        do="choose another data directory with --data, or make this one writable",
    )
