"""Files of one owner, written whole or not at all."""

import os
import tempfile
from pathlib import Path


def write_private(path: Path, content: bytes, *, durable: bool = True) -> None:
    """Put `content` into the file in one step, mode 0600. Raises `OSError`.

    `durable`: it also survives a crash of the machine.
    """
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:  # mkstemp made it with mode 0600
            file.write(content)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
