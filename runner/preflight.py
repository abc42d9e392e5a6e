"""Does the image follow the contract: a module and a runtime that can be started
(runner.md: What an image must hold)."""

import os
import stat
from collections.abc import Mapping, Sequence

from runner import wire


class LayoutError(Exception):
    """The image does not follow the contract; the text names the path and the reason."""


def check(module: str, command: Sequence[str], environ: Mapping[str, str]) -> None:
    """Check the module directory and the runtime command, in that order.

    Raises LayoutError at the first thing that is not as the contract says. File contents are not
    looked at; the runtime itself judges the module.
    """
    _check_module(module)
    _check_runtime(command, environ.get("PATH", ""))


def _check_module(module: str) -> None:
    try:
        with os.scandir(module) as entries:
            usable = any(
                entry.name.endswith(wire.MODULE_SUFFIXES)
                and not entry.is_dir(follow_symlinks=False)
                for entry in entries
            )
    except OSError as error:
        raise LayoutError(f"module directory {module}: {error.strerror}") from None
    if not usable:
        raise LayoutError(
            f"module directory {module} holds no file ending in {', '.join(wire.MODULE_SUFFIXES)}"
        )


def _check_runtime(command: Sequence[str], search_path: str) -> None:
    if not command or not command[0]:
        raise LayoutError("the runtime command (--bin) is empty")
    program = command[0]
    if "/" in program:
        _check_executable(program)
        return
    for directory in search_path.split(":"):
        candidate = os.path.join(directory or ".", program)
        if os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            return
    raise LayoutError(f"runtime {program} is not on the PATH")


def _check_executable(program: str) -> None:
    try:
        mode = os.stat(program).st_mode
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise LayoutError(f"runtime {program}: {reason}") from None
    if stat.S_ISDIR(mode):
        raise LayoutError(f"runtime {program} is a directory")
    if not mode & 0o111:
        raise LayoutError(f"runtime {program} is not executable")
