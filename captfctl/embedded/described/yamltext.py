"""YAML and JSON text into plain values, with the line of every field.

The parser is libyaml, whose Go translation kubectl uses: both accept the same texts. Its events
are turned into values here, so that lines are known, keys are checked and no input, however nested
or self-referring, costs more than it weighs. Plain scalars follow YAML 1.2's core schema: `yes`,
`no`, `on` and `off` are texts, not booleans as in kubectl's YAML 1.1; a boolean field that is given
one is refused by its type, so nothing is silently understood another way. Two things are as kubectl
has them because manifests rely on them: `0644` is octal, and `<<` merges.
"""

import copy
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

Json = Any

MAX_DEPTH = 200
"""Levels of nesting. Kubernetes' own schemas stay below 50."""

MAX_EXPANDED = 100_000
"""Values that aliases may stand for in one file: more is a bomb, not a description."""

_TAG = "tag:yaml.org,2002:"
_NULL = frozenset(("", "~", "null", "Null", "NULL"))
_TRUE = frozenset(("true", "True", "TRUE"))
_FALSE = frozenset(("false", "False", "FALSE"))
_DECIMAL = re.compile(r"[-+]?(0|[1-9][0-9_]*)")
_OCTAL = re.compile(r"[-+]?0o?[0-7_]+")
_HEX = re.compile(r"[-+]?0x[0-9a-fA-F_]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NO_NUMBER = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_ESCAPES = re.compile(
    r"\\\\|\\u(?P<high>[dD][89abAB][0-9a-fA-F]{2})\\u(?P<low>[dD][c-fC-F][0-9a-fA-F]{2})"
)
_INT64 = 2**63
_EXACT = 2.0**53
_TYPES: dict[str, type | tuple[type, ...]] = {
    "int": int,
    "float": (int, float),
    "bool": bool,
    "null": type(None),
}


@dataclass(slots=True)
class Place:
    """Where a value stands: the line (1-based) of its key, and the places of what is in it."""

    line: int
    below: dict[str | int, "Place"] = field(default_factory=dict)


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
    key: str | None = None  # of a mapping: the key whose value comes next
    key_line: int = 0
    waiting: bool = True  # of a mapping: a key comes next
    merges: list[tuple[dict[str, Json], Place]] = field(default_factory=list)


class _Builder:
    """Builds the values of one text from the parser's events."""

    def __init__(self, problems: list[Problem]) -> None:
        self._problems = problems
        self._stack: list[_Open] = []
        self._anchors: dict[str, tuple[Json, Place, int]] = {}
        self._expanded = 0
        self._root: Parsed | None = None

    def take(self, event: Any) -> Parsed | None:
        """The document that `event` ends, if it ends one."""
        line = event.start_mark.line + 1
        match event:
            case yaml.DocumentStartEvent():
                self._anchors.clear()
                self._root = None
            case yaml.DocumentEndEvent():
                return self._root
            case yaml.ScalarEvent():
                self._scalar(event, line)
            case yaml.AliasEvent():
                self._alias(event.anchor, line)
            case yaml.MappingStartEvent():
                self._open({}, event, line)
            case yaml.SequenceStartEvent():
                self._open([], event, line)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                self._close()
        return None

    def _problem(self, line: int, path: str, message: str) -> None:
        self._problems.append(Problem(line, path, message))

    def _scalar(self, event: Any, line: int) -> None:
        parent = self._stack[-1] if self._stack else None
        if parent is not None and isinstance(parent.value, dict) and parent.waiting:
            self._key(parent, event, line)
            return
        path = self._path()
        try:
            value = _resolved(event)
        except ValueError as error:
            self._problem(line, path, str(error))
            value = None
        self._add(value, Place(self._line(line)), 1, event.anchor)

    def _key(self, parent: _Open, event: Any, line: int) -> None:
        parent.waiting = False
        parent.key_line = line
        plain = not event.style and event.implicit[0]
        if plain and event.value == "<<":
            parent.key = None
            return
        try:
            value = _resolved(event)
        except ValueError as error:
            value = event.value
            self._problem(line, parent.path, f"key {event.value!r}: {error}")
        if not isinstance(value, str):
            self._problem(line, parent.path, f"key {event.value!r} is not text: put it in quotes")
        key = event.value
        if key in parent.value:
            first = parent.place.below[key].line
            path = _child(parent.path, key)
            self._problem(line, path, f"the key is given twice, first in line {first}")
        parent.key = key

    def _alias(self, anchor: str, line: int) -> None:
        parent = self._stack[-1] if self._stack else None
        if parent is not None and isinstance(parent.value, dict) and parent.waiting:
            raise TextError(line, "an alias cannot be a key")
        if any(open_.anchor == anchor for open_ in self._stack):
            raise TextError(line, f"alias *{anchor} is inside of what it stands for")
        if anchor not in self._anchors:
            raise TextError(line, f"alias *{anchor} stands for nothing")
        value, place, size = self._anchors[anchor]
        self._expanded += size
        if self._expanded > MAX_EXPANDED:
            raise TextError(line, f"aliases stand for more than {MAX_EXPANDED} values")
        self._add(copy.deepcopy(value), Place(self._line(line), place.below), size, None)

    def _open(self, value: Any, event: Any, line: int) -> None:
        parent = self._stack[-1] if self._stack else None
        if parent is not None and isinstance(parent.value, dict) and parent.waiting:
            raise TextError(
                line, "a key must be text; put a value that starts with { or [ in quotes"
            )
        if len(self._stack) >= MAX_DEPTH:
            raise TextError(line, f"more than {MAX_DEPTH} levels of nesting")
        wanted = _TAG + ("map" if isinstance(value, dict) else "seq")
        if event.tag not in (None, "!", wanted):
            self._problem(line, self._path(), f"tag {event.tag} is not supported")
        self._stack.append(_Open(value, Place(self._line(line)), self._path(), event.anchor))

    def _close(self) -> None:
        ended = self._stack.pop()
        for value, place in ended.merges:
            for key, item in value.items():
                if key not in ended.value:
                    ended.value[key] = item
                    ended.place.below[key] = place.below[key]
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
            parent.value[parent.key] = value
            parent.place.below[parent.key] = place
        else:
            self._merge(parent, value, place)

    def _merge(self, parent: _Open, value: Json, place: Place) -> None:
        several = value if isinstance(value, list) else [value]
        places = list(place.below.values()) if isinstance(value, list) else [place]
        for source, where in zip(several, places, strict=True):
            if isinstance(source, dict):
                parent.merges.append((source, where))
            else:
                self._problem(parent.key_line, parent.path, "<< merges mappings only")

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


def documents(text: str, problems: list[Problem]) -> Iterator[Parsed]:
    """The documents of `text`; what is wrong with them goes to `problems`.

    Documents before a place from where nothing can be read are still given out.
    """
    builder = _Builder(problems)
    parser = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(_joined_escapes(text))
    try:
        while parser.check_event():
            parsed = builder.take(parser.get_event())
            if parsed is not None:
                yield parsed
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        context = f" ({error.context})" if error.context else ""
        line = mark.line + 1 if mark else 1
        problems.append(Problem(line, "", f"this is not YAML: {error.problem}{context}"))
    except yaml.YAMLError as error:
        problems.append(Problem(_line_of(error, text), "", f"this is not YAML: {_reason(error)}"))
    except TextError as error:
        problems.append(Problem(error.line, "", error.message))
    finally:
        parser.dispose()


def _line_of(error: yaml.YAMLError, text: str) -> int:
    position = getattr(error, "position", None)
    return text.count("\n", 0, position) + 1 if isinstance(position, int) else 1


def _reason(error: yaml.YAMLError) -> str:
    return str(getattr(error, "reason", "") or error)


def _resolved(event: Any) -> Json:
    """The value of a scalar. Raises `ValueError` saying what is wrong with it."""
    text: str = event.value
    if event.tag in (None, "!"):
        quoted = bool(event.style) or event.tag == "!"
        return text if quoted else _plain(text)
    kind = event.tag.removeprefix(_TAG)
    if kind == "str":
        return text
    value = _plain(text)
    if kind not in _TYPES:
        raise ValueError(f"tag {event.tag} is not supported")
    if not isinstance(value, _TYPES[kind]) or (kind != "bool" and isinstance(value, bool)):
        raise ValueError(f"the value is not what tag !!{kind} says")
    return value


def _plain(text: str) -> Json:
    if text in _NULL:
        return None
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    if text[0] in "+-.0123456789":
        return _number(text)
    return text


def _number(text: str) -> Json:
    for pattern, base in ((_DECIMAL, 10), (_OCTAL, 8), (_HEX, 16)):
        if pattern.fullmatch(text):
            digits = text.replace("0o", "0", 1) if base == 8 else text
            value = int(digits.replace("_", ""), base)
            if not -_INT64 <= value < _INT64:
                raise ValueError("the number does not fit into 64 bits: put it in quotes")
            return value
    if _NO_NUMBER.fullmatch(text):
        raise ValueError(f"{text} cannot be written in JSON")
    if _FLOAT.fullmatch(text):
        number = float(text.replace("_", ""))
        if math.isinf(number):
            raise ValueError("the number is too large")
        return int(number) if number.is_integer() and abs(number) < _EXACT else number
    return text


def _joined_escapes(text: str) -> str:
    r"""JSON writes a character beyond `\uffff` as two escapes; YAML knows one long one for it."""
    if not text.lstrip().startswith(("{", "[")):
        return text

    def joined(match: re.Match[str]) -> str:
        if match["high"] is None:
            return match[0]
        pair = bytes.fromhex(match["high"] + match["low"])
        return f"\\U{ord(pair.decode('utf-16-be')):08x}"

    return _ESCAPES.sub(joined, text)
