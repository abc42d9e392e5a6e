"""The runner that pods get: what the init container `runner` copies out of the manager's image."""

import shlex
import shutil
import sys
from pathlib import Path

import runner

_MODE = 0o755
_PROGRAM = """#!{interpreter}
# The runner of the Python that runs the node agent, for a pod of this machine.
import sys

sys.path.insert(0, {root!r})
sys.argv[0] = "runner"
from runner.__main__ import main

sys.exit(main())
"""
# A shell adds these to the environment of what it starts; a run gets what its pod was given.
_SHELL = """#!/bin/sh
# Starts the runner where the kernel takes no interpreter of this path.
exec env -u PWD -u OLDPWD -u SHLVL -u _ {python} -IS -c {program} "$@"
"""
_LONGEST_INTERPRETER = 120  # what every kernel takes after `#!`


def place_runner(target: Path, built: Path | None) -> None:
    """Put a runner at `target`: a copy of the self-contained one, else a launcher of the package.

    Raises `OSError`.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_name(f".{target.name}.new")
    if built is not None:
        shutil.copyfile(built, beside)
    else:
        beside.write_text(launcher(sys.executable))
    beside.chmod(_MODE)
    beside.replace(target)


def launcher(python: str) -> str:
    """A program that runs the package `runner` in `python`, with its environment as it is."""
    program = _PROGRAM.format(
        interpreter=f"{python} -IS", root=str(Path(runner.__file__).parents[1])
    )
    if len(python) <= _LONGEST_INTERPRETER and not any(mark.isspace() for mark in python):
        return program
    return _SHELL.format(python=shlex.quote(python), program=shlex.quote(program))
