"""Described objects: a document and where each of its fields stands."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from captfctl.errors import InputError, Source
from captfctl.kubeyaml import Place
from captfctl.model.resource import Document, Resource

Identity = tuple[str, str, str, str]
"""Group, kind, namespace, name."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing wrong with the input; `field` is a path like `spec.source.image`, or empty."""

    source: Source
    message: str
    field: str = ""

    def __str__(self) -> str:
        field = f" {self.field}:" if self.field else ""
        return f"{self.source}:{field} {self.message}"


class BadInput(InputError):
    """The described objects cannot be used; `violations` has everything wrong with all files."""

    code = "InvalidObjects"

    def __init__(self, violations: Sequence[Violation]) -> None:
        super().__init__("\n".join(map(str, violations)))
        self.violations = tuple(violations)


@dataclass(frozen=True, slots=True)
class Described:
    """One object of a file. `document` has its namespace filled in, and is nobody else's."""

    resource: Resource[Document]
    document: Document
    file: str
    root: Place

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.document["metadata"]["name"])

    @property
    def namespace(self) -> str:
        """Its namespace; empty for a cluster-wide object."""
        return str(self.document["metadata"].get("namespace", ""))

    @property
    def identity(self) -> Identity:
        """What no two objects have in common."""
        return self.resource.group, self.resource.kind, self.namespace, self.name

    @property
    def source(self) -> Source:
        """Where it begins."""
        return Source(self.file, self.root.line)

    def place(self, path: str) -> Source:
        """Where field `path` stands, or what encloses it when it is not written."""
        return Source(self.file, deepest(self.root, _by_index(self.document, path))[0].line)


@dataclass(frozen=True, slots=True)
class DescribedSet:
    """All objects of the files, in their order, and what may not be what was meant in them."""

    objects: tuple[Described, ...]
    warnings: tuple[Violation, ...] = ()
    _by_identity: dict[tuple[str, str, str], Described] = field(init=False)

    def __post_init__(self) -> None:
        by_name = {(o.resource.kind, o.namespace, o.name): o for o in self.objects}
        object.__setattr__(self, "_by_identity", by_name)

    def __iter__(self) -> Iterator[Described]:
        return iter(self.objects)

    def __len__(self) -> int:
        return len(self.objects)

    def source_of(self, kind: str, namespace: str, name: str, path: str = "") -> Source | None:
        """Where an object, or its field `path`, stands; None when no file describes it."""
        found = self._by_identity.get((kind, namespace, name))
        return found.place(path) if found else None


_ITEM = re.compile(r'\[(\w+)="([^"]*)"\]')


def _by_index(document: Document, path: str) -> str:
    """`path` with the index of a list's item in place of what names it: `env[name="A"]`."""
    named = _ITEM.search(path)
    if named is None:
        return path
    found: Any = document
    for step in path[: named.start()].split("."):
        found = found.get(step) if isinstance(found, dict) else None
    items = found if isinstance(found, list) else []
    fits = (isinstance(item, dict) and item.get(named[1]) == named[2] for item in items)
    index = next((f"[{number}]" for number, fit in enumerate(fits) if fit), "")
    return path[: named.start()] + index + path[named.end() :] if items else path


_STEPS = re.compile(r"\[(\d+)\]|\[([^\]]*)\]|([^.\[]+)")


def deepest(root: Place, path: str) -> tuple[Place, list[str | int]]:
    """The place of `path`, or of its part that is written, and the keys that lead there.

    Keys may hold dots and slashes, which paths do not escape: of several readings the one with the
    longest key is taken.
    """
    place, keys, rest = root, list[str | int](), path
    while rest:
        step = _step(place, rest)
        if step is None:
            break
        key, rest = step
        place = place.below[key]
        keys.append(key)
    return place, keys


def _step(place: Place, path: str) -> tuple[str | int, str] | None:
    """The key of `place` that `path` begins with, and what follows it."""
    path = path.removeprefix(".")
    match = _STEPS.match(path)
    if match is None:
        return None
    key: str | int
    if match[1] is not None and int(match[1]) in place.below:
        return int(match[1]), path[match.end() :]
    if match[1] is not None or match[2] is not None:
        key = match[1] or match[2]
        return (key, path[match.end() :]) if key in place.below else None
    fitting = [key for key in place.below if isinstance(key, str) and _begins(path, key)]
    if not fitting:
        return None
    key = max(fitting, key=len)
    return key, path[len(key) :]


def _begins(path: str, key: str) -> bool:
    return path.startswith(key) and path[len(key) : len(key) + 1] in ("", ".", "[")
