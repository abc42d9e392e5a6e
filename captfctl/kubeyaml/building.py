"""Values and their places, put together piece by piece as a parser meets them.

Lines are known, keys are checked, and no input, however nested or self-referring, costs more than
it weighs.
"""

import copy
from dataclasses import dataclass, field
from typing import Any

from captfctl.kubeyaml.scalars import Scalar

Json = Any

MAX_DEPTH = 200
"""Levels of nesting. Kubernetes' own schemas stay below 50."""

MAX_EXPANDED = 100_000
"""Values that aliases may stand for in one file: more is a bomb, not a description."""


@dataclass(slots=True)
class Place:
    """Where a value stands: the line (1-based) of its key, and the places of what is in it.

    `odd` and `odd_key` say how the value and its key differ from what YAML 1.2 makes of them.
    """

    line: int
    below: dict[str | int, "Place"] = field(default_factory=dict)
    odd: str = ""
    odd_key: str = ""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in the text that cannot be used."""

    line: int
    path: str
    message: str


@dataclass(frozen=True, slots=True)
class Parsed:
    """One document of a text."""

    value: Json
    place: Place


class TextError(Exception):
    """The rest of the text cannot be read."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line
        self.message = message


@dataclass(slots=True)
class _Open:
    """A mapping or sequence whose end has not come yet."""

    value: Any
    place: Place
    path: str
    anchor: str | None
    size: int = 1
    waiting: bool = False  # of a mapping: a key comes next
    key: str | None = None  # of a mapping: the key whose value comes next
    key_line: int = 0
    odd_key: str = ""
    merged: set[str] = field(default_factory=set)  # of a mapping: keys that only << gave


class Builder:
    """Builds the values of one document after the other."""

    def __init__(self, problems: list[Problem]) -> None:
        self._problems = problems
        self._stack: list[_Open] = []
        self._anchors: dict[str, tuple[Json, Place, int]] = {}
        self._expanded = 0
        self._root: Parsed | None = None

    def begin(self) -> None:
        """A document begins."""
        self._anchors.clear()
        self._root = None

    def reset(self) -> None:
        """Forget a document that cannot be read to its end."""
        self._stack.clear()

    def end(self) -> Parsed | None:
        """The document that ends here."""
        return self._root

    @property
    def wants_key(self) -> bool:
        """Whether the next scalar is a key."""
        return bool(self._stack) and self._stack[-1].waiting

    def problem(self, line: int, message: str, path: str | None = None) -> None:
        """Something is wrong with the value that comes next, or at `path`."""
        self._problems.append(Problem(line, self._path() if path is None else path, message))

    def scalar(self, value: Scalar, line: int, *, anchor: str | None = None, odd: str = "") -> None:
        """`odd`: how the value differs from what most readers of the text expect."""
        self._add(value, Place(self._line(line), odd=odd), 1, anchor)

    def key(self, key: str, line: int, *, anchor: str | None = None, odd: str = "") -> None:
        if anchor is not None:
            self._anchors[anchor] = (key, Place(line), 1)
        parent = self._stack[-1]
        parent.waiting, parent.key, parent.key_line, parent.odd_key = False, key, line, odd
        if key in parent.value and key not in parent.merged:
            first = parent.place.below[key].line
            message = f"the key is given twice, first in line {first}"
            self.problem(line, message, _child(parent.path, key))
        parent.merged.discard(key)

    def merge_key(self, line: int) -> None:
        """The mapping that comes next is merged into the one around it."""
        parent = self._stack[-1]
        parent.waiting, parent.key, parent.key_line = False, None, line

    @property
    def container_path(self) -> str:
        return self._stack[-1].path if self._stack else ""

    def alias(self, anchor: str, line: int) -> None:
        if self.wants_key:
            raise TextError(line, "an alias cannot be a key")
        if any(open_.anchor == anchor for open_ in self._stack):
            raise TextError(line, "an alias (*) is inside of what it stands for")
        if anchor not in self._anchors:
            # Its name may be a password that wants quotes.
            raise TextError(
                line, "an alias stands for nothing: put text that begins with * in quotes"
            )
        value, place, size = self._anchors[anchor]
        self._expanded += size
        if self._expanded > MAX_EXPANDED:
            raise TextError(line, f"aliases stand for more than {MAX_EXPANDED} values")
        copied = Place(self._line(line), place.below, odd=place.odd)
        self._add(copy.deepcopy(value), copied, size, None)

    def open(self, value: dict[str, Json] | list[Json], line: int, anchor: str | None) -> None:
        """A mapping or a sequence begins."""
        if self.wants_key:
            raise TextError(
                line, "a key must be text; put a value that starts with { or [ in quotes"
            )
        if len(self._stack) >= MAX_DEPTH:
            raise TextError(line, f"more than {MAX_DEPTH} levels of nesting")
        place, waiting = Place(self._line(line)), isinstance(value, dict)
        self._stack.append(_Open(value, place, self._path(), anchor, waiting=waiting))

    def close(self) -> None:
        """The mapping or sequence that was opened last ends."""
        ended = self._stack.pop()
        self._add(ended.value, ended.place, ended.size, ended.anchor)

    def _add(self, value: Json, place: Place, size: int, anchor: str | None) -> None:
        """Put a complete value where it belongs."""
        if anchor is not None:
            self._anchors[anchor] = (value, place, size)
        if not self._stack:
            self._root = Parsed(value, place)
            return
        parent = self._stack[-1]
        parent.size += size
        if isinstance(parent.value, list):
            parent.place.below[len(parent.value)] = place
            parent.value.append(value)
            return
        parent.waiting = True
        if parent.key is not None:
            place.odd_key = parent.odd_key
            parent.value[parent.key] = value
            parent.place.below[parent.key] = place
        else:
            self._merge(parent, value, place)

    def _merge(self, parent: _Open, value: Json, place: Place) -> None:
        """As kubectl does it: later keys win, whether merged or written."""
        sources = value if isinstance(value, list) else [value]
        places = list(place.below.values()) if isinstance(value, list) else [place]
        for source, where in reversed(list(zip(sources, places, strict=True))):
            if not isinstance(source, dict):
                self.problem(parent.key_line, "<< merges mappings only", parent.path)
                continue
            parent.merged |= {k for k in source if k not in parent.value or k in parent.merged}
            parent.value |= source
            parent.place.below |= where.below

    def _line(self, line: int) -> int:
        """A field's line is its key's."""
        parent = self._stack[-1] if self._stack else None
        return parent.key_line if parent is not None and isinstance(parent.value, dict) else line

    def _path(self) -> str:
        """The path of the value that comes next."""
        if not self._stack:
            return ""
        parent = self._stack[-1]
        if isinstance(parent.value, list):
            return f"{parent.path}[{len(parent.value)}]"
        return _child(parent.path, parent.key or "<<")


def _child(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
