"""Which variables a module declares, read from its files
(module-contract.md: Variables that a module declares).

Wherever it is not certain what a run would see, a variable counts as declared and as optional: what
is said to be wrong must be wrong.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from captfctl.model.interface import input_names
from captfctl.model.kinds import Role
from captfctl.terraform.contract.hcl import NotHcl, blocks
from captfctl.terraform.contract.variables_schema import SchemaType, VariableSchema

SchemaOf = Callable[[str, Role], VariableSchema | None]
"""The schema of a module image's user variables; None where the module is not known."""

_JSON = ".json"
_OPEN_TOFU = (".tofu", ".tofu.json")
_SUFFIXES = (".tf", ".tf.json", *_OPEN_TOFU)


class Declaration(NamedTuple):
    """One block that declares a variable, or overrides a declaration."""

    name: str
    has_default: bool


def no_schema(_image: str, _role: Role) -> VariableSchema | None:
    """Where modules are inside images."""
    return None


def configuration_files(directory: Path) -> list[Path]:
    """The files of the module itself, not of modules below it, sorted. Raises `OSError`."""
    return sorted(path for path in directory.iterdir() if _counts(path.name) and path.is_file())


def declared_variables(files: Iterable[Path], role: Role) -> VariableSchema | None:
    """The schema of a module of this role. None for one that cannot be read: the run will tell what
    is wrong with it."""
    names = {file.name for file in files}
    declared: set[str] = set()
    wanted: set[str] = set()
    optional = set(input_names(role))
    try:
        for file in files:
            for name, has_default in _declarations(file):
                declared.add(name)
                if has_default:
                    optional.add(name)
                elif not _only_for_one_runtime(file.name, names):
                    wanted.add(name)
    except (NotHcl, OSError, ValueError, RecursionError):
        return None
    return VariableSchema(
        type=SchemaType.OBJECT,
        properties={name: VariableSchema() for name in sorted(declared - input_names(role))},
        required=tuple(sorted(wanted - optional)),
        additional=False,
    )


def _counts(name: str) -> bool:
    """As the runtimes choose them: hidden files and editors' copies do not count."""
    return name.endswith(_SUFFIXES) and not name.startswith((".", "#"))


def _only_for_one_runtime(name: str, names: set[str]) -> bool:
    """OpenTofu reads `x.tofu` in place of `x.tf`, and Terraform does not read it."""
    return name.endswith(_OPEN_TOFU) or name.replace(".tf", ".tofu") in names


def _declarations(file: Path) -> Iterator[Declaration]:
    text = file.read_text(encoding="utf-8")
    if file.suffix == _JSON:
        yield from _in_json(text)
        return
    for block in blocks(text):
        if block.type == "variable":
            (name,) = block.labels or ("",)
            yield Declaration(name, "default" in block.attributes)


class _Members(list[tuple[str, object]]):
    """A JSON object; HCL lets a key be there more than once."""


def _in_json(text: str) -> Iterator[Declaration]:
    document = json.loads(text, object_pairs_hook=_Members)
    for key, declared in _members(document):
        if key == "variable":
            for name, body in _members(declared):
                attributes = {attribute for attribute, _ in _members(body)}
                yield Declaration(name, "default" in attributes)


def _members(value: object) -> Iterator[tuple[str, object]]:
    """Of an object, or of each object of a list: HCL takes both for blocks."""
    if isinstance(value, _Members):
        yield from value
    elif isinstance(value, list):
        for item in value:
            yield from _members(item)
    else:
        raise NotHcl
