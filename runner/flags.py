"""Command-line flags, read the way Go programs of the Kubernetes family read them
(runner.md: Reading flags).

`--flag=value` and `--flag value`; a boolean takes a value only after `=`; a scalar given twice
keeps the last value; an array flag gets one element per occurrence; `--` ends the flags. Reading
stops at the first bad flag, and what was read before it stays in the given `Values`.
"""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from runner import durations

_TRUE = frozenset(("1", "t", "T", "TRUE", "true", "True"))
_FALSE = frozenset(("0", "f", "F", "FALSE", "false", "False"))
_INTEGER = r"(?a:[+-]?(?:0|[1-9][0-9]*|0[xX][0-9a-fA-F]+|0[oO][0-7]+|0[bB][01]+))"

Value = str | int | bool | list[str]


class FlagError(Exception):
    """A flag that cannot be used; the text names it and says why."""


class Flag(NamedTuple):
    """One flag.

    `kind` is the type shown in the usage; `convert` turns the text into the value or raises
    ValueError with the reason; `bare` is the text assumed when the flag stands without a value
    (None: a value is required); `array` collects one element per occurrence.
    """

    name: str
    kind: str
    default: Value
    usage: str
    convert: Callable[[str], Value]
    short: str = ""
    bare: str | None = None
    array: bool = False


Values = dict[str, Value]


def boolean(text: str) -> bool:
    """One of Go's spellings of a truth value."""
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise ValueError("a truth value is one of true, false, t, f, 1, 0")


def integer(text: str) -> int:
    """A decimal, `0x`, `0o` or `0b` integer that fits 64 bits."""
    if not re.fullmatch(_INTEGER, text):
        raise ValueError("not an integer")
    if len(text) > 70:
        raise ValueError("value out of range")
    value = int(text, 0)
    if not -(1 << 63) <= value < 1 << 63:
        raise ValueError("value out of range")
    return value


def text(name: str, default: str, usage: str) -> Flag:
    """A flag with any string as its value."""
    return Flag(name, "string", default, usage, str)


def texts(name: str, default: Sequence[str], usage: str) -> Flag:
    """A flag collected into a list, one element per occurrence, never split."""
    return Flag(name, "stringArray", list(default), usage, str, array=True)


def switch(name: str, usage: str, short: str = "") -> Flag:
    """A boolean flag that is off unless given."""
    return Flag(name, "", False, usage, boolean, short=short, bare="true")


def number(name: str, usage: str, kind: str = "int", short: str = "") -> Flag:
    """An integer flag, 0 unless given."""
    return Flag(name, kind, 0, usage, integer, short=short)


def duration(name: str, default: int, usage: str) -> Flag:
    """A Go duration, kept in nanoseconds as is its default."""
    return Flag(name, "duration", default, usage, durations.parse)


class FlagSet:
    """The flags one command accepts."""

    def __init__(self, *groups: Sequence[Flag]) -> None:
        self.flags = [flag for group in groups for flag in group]
        self._long = {flag.name: flag for flag in self.flags}
        self._short = {flag.short: flag for flag in self.flags if flag.short}

    def defaults(self) -> Values:
        """Every flag's default value."""
        return {flag.name: flag.default for flag in self.flags}

    def parse(self, arguments: Sequence[str], values: Values) -> list[str]:
        """Read `arguments` into `values` and return the positional ones.

        Raises FlagError at the first bad flag; `values` then holds what stood before it.
        """
        given: set[str] = set()
        positional: list[str] = []
        rest = list(reversed(arguments))
        while rest:
            argument = rest.pop()
            if argument == "--":
                positional += reversed(rest)
                break
            if argument.startswith("--"):
                self._long_flag(argument[2:], rest, values, given)
            elif argument.startswith("-") and argument != "-":
                self._short_flags(argument[1:], rest, values, given)
            else:
                positional.append(argument)
        return positional

    def takes_next(self, argument: str) -> bool:
        """Whether `argument` is a known flag whose value is the argument after it."""
        if argument.startswith("--"):
            flag = self._long.get(argument[2:])
        else:
            flag = self._short.get(argument[1:]) if len(argument) == 2 else None
        return flag is not None and flag.bare is None

    def _long_flag(self, body: str, rest: list[str], values: Values, given: set[str]) -> None:
        name, equals, value = body.partition("=")
        if not name or name.startswith("-"):
            raise FlagError(f"bad flag syntax: --{body}")
        flag = self._long.get(name)
        if flag is None:
            raise FlagError(f"unknown flag: --{name}")
        if not equals:
            if flag.bare is not None:
                value = flag.bare
            elif rest:
                value = rest.pop()
            else:
                raise FlagError(f"flag needs an argument: --{name}")
        _store(flag, value, values, given)

    def _short_flags(self, body: str, rest: list[str], values: Values, given: set[str]) -> None:
        position = 0
        while position < len(body):
            flag = self._short.get(body[position])
            if flag is None:
                raise FlagError(f"unknown shorthand flag: {body[position]!r} in -{body}")
            position += 1
            following = body[position:]
            if following.startswith("="):
                _store(flag, following[1:], values, given)
                return
            if flag.bare is not None:
                _store(flag, flag.bare, values, given)
            elif following:
                _store(flag, following, values, given)
                return
            elif rest:
                _store(flag, rest.pop(), values, given)
            else:
                raise FlagError(f"flag needs an argument: {flag.short!r} in -{body}")


def _store(flag: Flag, value: str, values: Values, given: set[str]) -> None:
    try:
        converted = flag.convert(value)
    except ValueError as error:
        raise FlagError(f"invalid argument {value!r} for --{flag.name}: {error}") from None
    if flag.array:
        before = values[flag.name] if flag.name in given else []
        assert isinstance(before, list) and isinstance(converted, str)
        converted = [*before, converted]
    values[flag.name] = converted
    given.add(flag.name)


def usage(flags: Sequence[Flag]) -> str:
    """The flags as lines of help, sorted by name."""
    rows = []
    for flag in sorted(flags, key=lambda flag: flag.name):
        lead = f"  -{flag.short}, --" if flag.short else "      --"
        rows.append((f"{lead}{flag.name} {flag.kind}".rstrip(), flag.usage + _default(flag)))
    width = max(len(left) for left, _ in rows) + 3
    return "".join(f"{left:<{width}}{right}\n" for left, right in rows)


def _default(flag: Flag) -> str:
    if flag.default in (False, "", 0) or flag.default == []:
        return ""
    if flag.kind == "duration":
        assert isinstance(flag.default, int)
        return f" (default {durations.spoken(flag.default / durations.SECOND)})"
    shown = ",".join(flag.default) if isinstance(flag.default, list) else str(flag.default)
    return f" (default {shown})"
