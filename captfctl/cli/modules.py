"""The modules of this machine: the table that says where they are, and their variables."""

import threading
from pathlib import Path

from captfctl.embedded.images import ImageTable
from captfctl.errors import InputError
from captfctl.model.kinds import Role
from captfctl.terraform.contract.module_variables import configuration_files, declared_variables
from captfctl.terraform.contract.variables_schema import VariableSchema

_Seen = tuple[tuple[Path, int, int], ...]


def image_table(images: Path | None) -> ImageTable:
    """Raises `InputError` with the line when the file cannot be used."""
    return ImageTable.from_file(images) if images is not None else ImageTable()


class ModuleSchemas:
    """The schema of an image's module, read again when one of its files was edited."""

    def __init__(self, table: ImageTable) -> None:
        self._table = table
        self._lock = threading.Lock()
        self._read: dict[tuple[Path, Role], tuple[_Seen, VariableSchema | None]] = {}

    def __call__(self, image: str, role: Role) -> VariableSchema | None:
        """None when the table has no such image, or its module cannot be read."""
        try:
            self._table.refresh()
            entry = self._table.entry(image)
            return self._schema(entry.module, role) if entry is not None else None
        except (InputError, OSError):
            return None

    def _schema(self, module: Path, role: Role) -> VariableSchema | None:
        files = configuration_files(module)
        seen = tuple(_as_it_is(file) for file in files)
        with self._lock:
            known = self._read.get((module, role))
            if known is None or known[0] != seen:
                known = self._read[module, role] = seen, declared_variables(files, role)
        return known[1]


def _as_it_is(file: Path) -> tuple[Path, int, int]:
    facts = file.stat()
    return file, facts.st_mtime_ns, facts.st_size
