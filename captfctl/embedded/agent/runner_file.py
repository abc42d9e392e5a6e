"""The runner that pods get: what the init container `runner` copies out of the manager's image."""

import shlex
import shutil
import sys
from pathlib import Path

import runner

_MODE = 0o755
_SOURCE = """#!/bin/sh
# The runner of the Python that runs the node agent, for a pod of this machine.
exec {python} -IS -c {program} "$@"
"""


def place_runner(target: Path, built: Path | None) -> None:
    """Put a runner at `target`: a copy of the self-contained one, else a launcher of the package.

    Raises `OSError`.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_name(f".{target.name}.new")
    if built is not None:
        shutil.copyfile(built, beside)
    else:
        beside.write_text(_launcher())
    beside.chmod(_MODE)
    beside.replace(target)


def _launcher() -> str:
    root = str(Path(runner.__file__).parents[1])
    program = (
        f"import sys; sys.path.insert(0, {root!r}); sys.argv[0] = 'runner'; "
        "from runner.__main__ import main; sys.exit(main())"
    )
    return _SOURCE.format(python=shlex.quote(sys.executable), program=shlex.quote(program))
