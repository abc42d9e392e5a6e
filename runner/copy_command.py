"""`runner copy`: put this program where the main container can start it
(runner.md: Copying itself)."""

import os
import sys

_PIECE = 1 << 20


class CopyError(Exception):
    """The program could not be copied; the text says which file and why."""


def copy(destination: str) -> None:
    """Copy the running program to `destination`, mode 0755. Raises CopyError.

    The file is streamed: the init container has little memory.
    """
    source = _own_file()
    if os.path.exists(destination) and os.path.samefile(source, destination):
        raise CopyError(f"{destination}: is the program itself")
    try:
        with open(source, "rb") as reading:
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
            descriptor = os.open(destination, flags, 0o755)
            with os.fdopen(descriptor, "wb", buffering=0) as writing:
                while piece := reading.read(_PIECE):
                    _write_all(writing.fileno(), piece)
                os.fchmod(writing.fileno(), 0o755)
    except OSError as error:
        raise CopyError(f"{error.filename or destination}: {error.strerror}") from None


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _own_file() -> str:
    """The file this program is. Raises CopyError when it is not a single file."""
    if getattr(sys, "frozen", False):
        return "/proc/self/exe"
    archive = sys.argv[0]
    if os.path.isfile(archive) and _is_archive(archive):
        return archive
    raise CopyError(
        "this runner is a Python package, not one file that could be copied: "
        "build the executable with `make runner-binary` and run that"
    )


def _is_archive(path: str) -> bool:
    import zipfile

    return zipfile.is_zipfile(path)
