"""Files, directories and standard input as texts."""

import codecs
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from captfctl.embedded.described.objects import Violation
from captfctl.errors import Source

SUFFIXES = frozenset((".yaml", ".yml", ".json"))
"""What of a directory is read, as `kubectl -f` does."""

MAX_BYTES = 8 * 1024 * 1024
"""Of one file: many times what an API server takes for one object."""

STDIN = "-"
STDIN_NAME = "standard input"


@dataclass(frozen=True, slots=True)
class Text:
    """A file's name as the user gave it, and its content."""

    name: str
    content: str


def texts(
    paths: Iterable[str],
    violations: list[Violation],
    *,
    stdin: BinaryIO | None = None,
    recursive: bool = False,
) -> Iterator[Text]:
    """The texts that `paths` name; what cannot be read goes to `violations`.

    A directory stands for its `*.yaml`, `*.yml` and `*.json`, in order of name; `-` for `stdin`. A
    file named twice, also by way of its directory, is read once.
    """
    seen: set[Path] = set()
    for path in paths:
        if path == STDIN:
            yield from _stdin(stdin, violations)
            continue
        for file in _files(Path(path), violations, recursive):
            real = Path(os.path.realpath(file))  # resolve() raises for a link to itself
            if real not in seen:
                seen.add(real)
                yield from _file(file, violations)


def _files(path: Path, violations: list[Violation], recursive: bool) -> list[Path]:
    # Path.is_dir() and is_file() raise where nobody may look; reading tells what is wrong.
    if not os.path.isdir(path):  # noqa: PTH112
        return [path]
    try:
        entries = sorted(path.rglob("*") if recursive else path.iterdir())
    except OSError as error:
        violations.append(_unreadable(path, error))
        return []
    before = len(violations)
    described = (entry for entry in entries if entry.suffix in SUFFIXES)
    files = [entry for entry in described if _is_file(entry, violations)]
    if not files and len(violations) == before:
        hint = "" if recursive else " (directories in it are not read)"
        message = f"the directory holds no *.yaml, *.yml or *.json{hint}"
        violations.append(Violation(Source(str(path)), message))
    return files


def _is_file(entry: Path, violations: list[Violation]) -> bool:
    """Of something in a directory. What cannot be told goes to `violations`."""
    try:
        return stat.S_ISREG(entry.stat().st_mode)
    except FileNotFoundError:
        target = f": it links to {entry.readlink()}" if entry.is_symlink() else ""
        violations.append(Violation(Source(str(entry)), f"the file does not exist{target}"))
    except OSError as error:
        violations.append(_unreadable(entry, error))
    return False


def _file(file: Path, violations: list[Violation]) -> Iterator[Text]:
    try:
        with file.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        violations.append(Violation(Source(str(file)), "the file does not exist"))
    except OSError as error:
        violations.append(_unreadable(file, error))
    else:
        yield from _text(str(file), content, violations)


def _stdin(stdin: BinaryIO | None, violations: list[Violation]) -> Iterator[Text]:
    if stdin is None:
        violations.append(Violation(Source(STDIN_NAME), "it was read already or is closed"))
    else:
        yield from _text(STDIN_NAME, stdin.read(MAX_BYTES + 1), violations)


def _text(name: str, content: bytes, violations: list[Violation]) -> Iterator[Text]:
    if len(content) > MAX_BYTES:
        limit = MAX_BYTES // (1024 * 1024)
        violations.append(Violation(Source(name), f"it is larger than {limit} MiB: split it"))
        return
    try:
        yield Text(name, content.decode(_encoding(content)))
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        violations.append(Violation(Source(name, line), "it is not UTF-8 text"))


def _encoding(content: bytes) -> str:
    """UTF-8, or UTF-16 where a byte order mark says so: some programs of Windows write that."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    return "utf-8-sig"


def _unreadable(path: Path, error: OSError) -> Violation:
    return Violation(Source(str(path)), f"it cannot be read: {error.strerror or error}")
