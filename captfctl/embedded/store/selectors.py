"""Label and field selectors in Kubernetes' own notation."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from captfctl.cluster.errors import BadRequest
from captfctl.embedded.store.naming import label_value_problems, qualified_name_problems

_TOKEN = re.compile(r"\s*(==|!=|[=!,()<>]|[^\s=!,()<>]+)")
_EVERYTHING: tuple["Requirement", ...] = ()


class Operator(StrEnum):
    """How a label is compared."""

    IN = "in"
    NOT_IN = "notin"
    EXISTS = "exists"
    ABSENT = "!"
    GREATER = "gt"
    LESS = "lt"


@dataclass(frozen=True, slots=True)
class Requirement:
    """One term of a label selector."""

    key: str
    operator: Operator
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels meet it."""
        value = labels.get(self.key)
        match self.operator:
            case Operator.IN:
                return value is not None and value in self.values
            case Operator.NOT_IN:
                return value is None or value not in self.values
            case Operator.EXISTS:
                return value is not None
            case Operator.ABSENT:
                return value is None
            case _:
                return value is not None and self._compares(value)

    def _compares(self, value: str) -> bool:
        try:
            have, bound = int(value), int(next(iter(self.values)))
        except ValueError:
            return False
        return have > bound if self.operator is Operator.GREATER else have < bound


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """All requirements must hold; none at all selects everything."""

    requirements: tuple[Requirement, ...] = _EVERYTHING

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels meet every requirement."""
        return all(requirement.matches(labels) for requirement in self.requirements)


@lru_cache(maxsize=512)
def parse_labels(text: str) -> LabelSelector:
    """Raises `BadRequest`."""
    return LabelSelector(_LabelParser(text).parse()) if text.strip() else LabelSelector()


class _LabelParser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = _tokens(text)
        self.at = 0

    def parse(self) -> tuple[Requirement, ...]:
        requirements = [self._requirement()]
        while self._peek() == ",":
            self._take()
            requirements.append(self._requirement())
        if self._peek():
            raise self._error(f"found '{self._peek()}', expected: ',' or 'end of string'")
        return tuple(requirements)

    def _requirement(self) -> Requirement:
        if self._peek() == "!":
            self._take()
            return Requirement(self._key(), Operator.ABSENT)
        key = self._key()
        operator = self._peek()
        if operator in ("", ","):
            return Requirement(key, Operator.EXISTS)
        self._take()
        match operator:
            case "=" | "==":
                return Requirement(key, Operator.IN, frozenset([self._value()]))
            case "!=":
                return Requirement(key, Operator.NOT_IN, frozenset([self._value()]))
            case "in":
                return Requirement(key, Operator.IN, self._values())
            case "notin":
                return Requirement(key, Operator.NOT_IN, self._values())
            case ">" | "<":
                return self._comparison(key, operator)
        raise self._error(
            f"found '{operator}', expected: in, notin, =, ==, !=, gt, lt, or 'end of string'"
        )

    def _comparison(self, key: str, sign: str) -> Requirement:
        operator = Operator.GREATER if sign == ">" else Operator.LESS
        bound = self._value()
        if not re.fullmatch(r"[+-]?\d+", bound):
            raise self._error("for 'Gt', 'Lt' operators, the value must be an integer")
        return Requirement(key, operator, frozenset([bound]))

    def _key(self) -> str:
        key = self._take()
        if not key or key in "=!,()<>" or key in ("==", "!="):
            raise self._error(f"found '{key}', expected: identifier")
        if problems := qualified_name_problems(key):
            raise self._error(f'key: Invalid value: "{key}": {"; ".join(problems)}')
        return key

    def _value(self) -> str:
        if self._peek() in ("", ","):
            return ""
        value = self._take()
        if value in ("=", "==", "!=", "!", "(", ")", "<", ">"):
            raise self._error(f"found '{value}', expected: identifier")
        return self._checked(value)

    def _values(self) -> frozenset[str]:
        if (token := self._take()) != "(":
            raise self._error(f"found '{token}', expected: '('")
        values = [self._value() if self._peek() != ")" else ""]
        while self._peek() == ",":
            self._take()
            values.append(self._value() if self._peek() != ")" else "")
        if (token := self._take()) != ")":
            raise self._error(f"found '{token}', expected: ',' or ')'")
        return frozenset(values)

    def _checked(self, value: str) -> str:
        if problems := label_value_problems(value):
            raise self._error(f'values: Invalid value: "{value}": {"; ".join(problems)}')
        return value

    def _peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def _take(self) -> str:
        token = self._peek()
        self.at += 1
        return token

    def _error(self, problem: str) -> BadRequest:
        return BadRequest(f"unable to parse requirement: {problem}", where=self.text)


def _tokens(text: str) -> list[str]:
    tokens = []
    at, end = 0, len(text.rstrip())
    while at < end:
        found = _TOKEN.match(text, at)
        assert found is not None
        tokens.append(found[1])
        at = found.end()
    return tokens


@dataclass(frozen=True, slots=True)
class FieldRequirement:
    """One term of a field selector."""

    field: str
    value: str
    equal: bool


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """All requirements must hold; none at all selects everything."""

    requirements: tuple[FieldRequirement, ...] = ()

    def matches(self, value_of: Callable[[str], str]) -> bool:
        """`value_of` gives a field's text, empty when the field is absent."""
        return all((value_of(item.field) == item.value) is item.equal for item in self.requirements)

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that it asks about."""
        return tuple(item.field for item in self.requirements)


@lru_cache(maxsize=512)
def parse_fields(text: str) -> FieldSelector:
    """Raises `BadRequest`. Backslash escapes a comma, an equals sign and itself."""
    return FieldSelector(tuple(_field_term(term) for term in _split_fields(text) if term))


def _split_fields(text: str) -> list[str]:
    terms, term, escaped = [], "", False
    for letter in text:
        if letter == "," and not escaped:
            terms.append(term)
            term = ""
        else:
            term += letter
        escaped = letter == "\\" and not escaped
    return [*terms, term]


def _field_term(term: str) -> FieldRequirement:
    found = re.match(r"((?:[^=!\\]|\\.)*)(==|!=|=)(.*)\Z", term, re.DOTALL)
    if found is None:
        raise BadRequest(
            f"invalid selector: '{term}'; can't understand '{term}'", where="fieldSelector"
        )
    return FieldRequirement(found[1].strip(), _unescape(found[3], term), found[2] != "!=")


def _unescape(value: str, term: str) -> str:
    plain, rest = "", iter(value)
    for letter in rest:
        if letter in ",=":
            raise BadRequest(f"invalid field selector: unescaped '{letter}' in '{term}'")
        if letter == "\\":
            letter = next(rest, "")
            if letter not in ("\\", ",", "="):
                raise BadRequest(f"invalid field selector: invalid escape sequence in '{term}'")
        plain += letter
    return plain
