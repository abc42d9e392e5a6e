"""The files of a module's directory, as an image takes them: links are followed."""

import errno
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from captfctl.errors import CaptfError

_LEFT_OUT = frozenset({".terraform", ".git"})
"""Directories that a working copy has and an image has not."""

_MOST_FILES = 10_000
_MOST_BYTES = 256 * 1024 * 1024


class ModuleProblem(CaptfError):
    """A directory holds something that no image can take."""

    code = "ImagePull"


def module_files(directory: Path) -> list[Path]:
    """The files below `directory`, relative to it, in a fixed order.

    Raises `ModuleProblem`, and `OSError` for what cannot be read.
    """
    if not directory.is_dir():
        raise ModuleProblem(
            f"its module directory {directory} is not a directory", do="correct the image table"
        )
    found: list[Path] = []
    size = 0
    for path, facts in _walk(directory, (_identity(directory.stat()),)):
        found.append(path.relative_to(directory))
        size += facts.st_size
        if len(found) > _MOST_FILES or size > _MOST_BYTES:
            raise ModuleProblem(
                f"its module directory {directory} is larger than an image should be",
                why=f"more than {_MOST_FILES} files or {_MOST_BYTES >> 20} MiB",
                do="name the directory that holds only the module",
            )
    return found


def digest_of(directory: Path, files: Iterable[Path]) -> str:
    """SHA-256 over names, execute bits and contents. Raises `OSError`."""
    total = hashlib.sha256()
    for name in files:
        path = directory / name
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        executable = "x" if path.stat().st_mode & 0o111 else "-"
        total.update(f"{executable} {content} {name.as_posix()}\n".encode())
    return total.hexdigest()


def _walk(
    directory: Path, above: tuple[tuple[int, int], ...]
) -> Iterator[tuple[Path, os.stat_result]]:
    """Every file below, those of a directory before those of its directories.

    `above` are the directories on the way here: a link back to one of them has no end.
    """
    folders = []
    for path in sorted(directory.iterdir()):
        facts = _followed(path)
        if stat.S_ISREG(facts.st_mode):
            yield path, facts
        elif not stat.S_ISDIR(facts.st_mode):
            raise ModuleProblem(
                f"{path} is neither a file nor a directory", do="take it out of the module"
            )
        elif path.name not in _LEFT_OUT:
            folders.append((path, _identity(facts)))
    for path, identity in folders:
        if identity in above:
            raise ModuleProblem(
                f"{path} is a link to a directory that it lies in",
                do="take the link out of the module",
            )
        yield from _walk(path, (*above, identity))


def _followed(path: Path) -> os.stat_result:
    try:
        return path.stat()
    except OSError as problem:
        if problem.errno not in (errno.ENOENT, errno.ELOOP) or not path.is_symlink():
            raise
        raise ModuleProblem(
            f"{path} is a link to {path.readlink()}, which leads nowhere",
            do="put the file there, or take the link out of the module",
        ) from None


def _identity(facts: os.stat_result) -> tuple[int, int]:
    return facts.st_dev, facts.st_ino
