"""The JSONPath of printer columns: fields, indexes, slices, wildcards and filters.

`.spec.source.image`, `.status.conditions[?(@.type=="Ready")].status`,
`.metadata.labels.cluster\\.x-k8s\\.io/cluster-name`, `.metadata.labels['a/b']`, `.items[0].name`.
"""

import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec

_Step = Callable[[Any], Iterator[Any]]

_FIELD = re.compile(r"\.((?:\\.|[^.\[\\])+)")
_QUOTED = re.compile(r"\[\s*(?:'([^']*)'|\"([^\"]*)\")\s*\]")
_INDEX = re.compile(r"\[\s*(-?\d+)\s*\]")
_SLICE = re.compile(r"\[\s*(-?\d*)\s*:\s*(-?\d*)\s*\]")
_WILDCARD = re.compile(r"\[\s*\*\s*\]|\.\*")
_FILTER = re.compile(r"\[\s*\?\(\s*@(.*?)\s*(?:(==|!=|<=|>=|<|>)\s*(.*?))?\s*\)\s*\]")
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}


class JsonPathError(ValueError):
    """A path that cannot be read."""


@dataclass(frozen=True, slots=True)
class JsonPath:
    """A parsed path."""

    steps: tuple[_Step, ...]

    def find(self, document: Any) -> list[Any]:
        """All values the path leads to, in order; empty when it leads nowhere."""
        values = [document]
        for step in self.steps:
            values = [found for value in values for found in step(value)]
        return values


@lru_cache(maxsize=1024)
def parse(path: str) -> JsonPath:
    """Raises `JsonPathError`, which names the part that cannot be read."""
    rest = path.strip().removeprefix("{").removesuffix("}").removeprefix("$")
    if rest and rest[0] not in ".[":
        rest = f".{rest}"
    steps = []
    while rest and rest != ".":
        step, rest = _next(rest)
        steps.append(step)
    return JsonPath(tuple(steps))


def _next(rest: str) -> tuple[_Step, str]:
    for pattern, build in _FORMS:
        match = pattern.match(rest)
        if match:
            return build(match), rest[match.end() :]
    raise JsonPathError(f"cannot read JSONPath at {rest!r}")


def _field(match: re.Match[str]) -> _Step:
    return _member(re.sub(r"\\(.)", r"\1", match[1]))


def _quoted(match: re.Match[str]) -> _Step:
    return _member(match[1] if match[1] is not None else match[2])


def _member(name: str) -> _Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, dict) and name in value:
            yield value[name]

    return step


def _index(match: re.Match[str]) -> _Step:
    index = int(match[1])

    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list) and -len(value) <= index < len(value):
            yield value[index]

    return step


def _slice(match: re.Match[str]) -> _Step:
    first, last = (int(text) if text else None for text in match.groups())

    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list):
            yield from value[first:last]

    return step


def _wildcard(_: re.Match[str]) -> _Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list):
            yield from value
        elif isinstance(value, dict):
            yield from value.values()

    return step


def _filter(match: re.Match[str]) -> _Step:
    path, sign, text = parse(match[1]), match[2], match[3]
    wanted = _literal(text) if sign else None

    def holds(item: Any) -> bool:
        found = path.find(item)
        if not sign:
            return bool(found)
        try:
            return bool(found) and _OPERATORS[sign](found[0], wanted)
        except TypeError:  # values of different types are not in any order
            return False

    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list):
            yield from filter(holds, value)

    return step


def _literal(text: str) -> Any:
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1]
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        raise JsonPathError(f"cannot read the value {text!r} of a filter") from None


_FORMS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], _Step]], ...] = (
    (_WILDCARD, _wildcard),
    (_QUOTED, _quoted),
    (_INDEX, _index),
    (_SLICE, _slice),
    (_FILTER, _filter),
    (_FIELD, _field),
)
