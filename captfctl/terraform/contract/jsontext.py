"""JSON whose numbers keep their text (api.md: JSON with exact numbers).

Inputs, exports and user variables pass through us untouched: a number is never turned into floating
point, so `1.0`, `1e3` and integers of any size stay what their author wrote.
"""

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NoReturn, TypeAlias, Union

from captfctl.terraform.contract.errors import ContractError


@dataclass(frozen=True, slots=True)
class Number:
    """A JSON number as it was written."""

    text: str

    def __str__(self) -> str:
        return self.text

    @property
    def is_integer(self) -> bool:
        """Without fraction and exponent: `6443.0` is none
        (module-contract.md: Rules for outputs)."""
        return _INTEGER.fullmatch(self.text) is not None


Json: TypeAlias = Union[bool, int, str, Number, "list[Json]", "dict[str, Json]", None]

MAX_DEPTH = 200

_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)")
_SURROGATE = re.compile("[\ud800-\udfff]")
_quote: Callable[[str], str] = json.encoder.encode_basestring


class NotJson(ContractError):
    """A text is not one JSON document. The message tells where it breaks, never what it says."""

    code = "NotJson"


class NotAnInteger(ContractError):
    """A number with a fraction or an exponent where only integers can be hashed."""

    code = "NotAnInteger"


def parse(text: bytes | str) -> Json:
    """One JSON document. The last of several equal keys wins; a lone surrogate becomes U+FFFD.

    Raises `NotJson`, also for text that is not UTF-8 or nested deeper than `MAX_DEPTH`.
    """
    try:
        decoded = text if isinstance(text, str) else text.decode("utf-8")
        value: Json = _DECODER.decode(decoded)
    except UnicodeDecodeError:
        raise NotJson("the text is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise NotJson(
            f"the text is not JSON: it breaks at line {error.lineno}, column {error.colno}"
        ) from None
    except RecursionError:
        raise _too_deep() from None
    _check_depth(value)
    return _without_surrogates(value) if "\\u" in decoded else value


def canonical_any(value: Json) -> str:
    """Canonical JSON: keys sorted, no white space, numbers as written."""
    return _compact(value, str)


def canonical_int(value: Json) -> str:
    """Canonical JSON of a value whose numbers are all integers. Raises `NotAnInteger`."""
    return _compact(value, _integer_text)


def pretty(value: Json) -> str:
    """Two-space indent, keys sorted, a final newline; `<`, `>` and `&` stay as they are."""
    return _pretty(value, "\n") + "\n"


def _compact(value: Json, number: Callable[[Number], str]) -> str:
    match value:
        case str():
            return _string(value)
        case dict():
            members = (f"{_string(key)}:{_compact(value[key], number)}" for key in sorted(value))
            return "{" + ",".join(members) + "}"
        case list():
            return "[" + ",".join(_compact(item, number) for item in value) + "]"
        case Number():
            return number(value)
    return _word(value)


def _pretty(value: Json, newline: str) -> str:
    inner = newline + "  "
    match value:
        case str():
            return _string(value)
        case dict() if value:
            members = (f"{_string(key)}: {_pretty(value[key], inner)}" for key in sorted(value))
            return _block("{", members, "}", newline)
        case list() if value:
            return _block("[", (_pretty(item, inner) for item in value), "]", newline)
    return _compact(value, str)


def _block(start: str, members: Iterable[str], end: str, newline: str) -> str:
    inner = newline + "  "
    return start + inner + ("," + inner).join(members) + newline + end


def _word(value: bool | int | None) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _integer_text(number: Number) -> str:
    if not number.is_integer:
        raise NotAnInteger("a number has a fraction or an exponent", do="use integers or strings")
    return number.text


def _string(text: str) -> str:
    # Both separators are line ends in JavaScript, so the canonical form has always escaped them.
    return _quote(text).replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _no_constant(_: str) -> NoReturn:
    raise NotJson("the text is not JSON: NaN and Infinity are not numbers of JSON")


_DECODER = json.JSONDecoder(parse_int=Number, parse_float=Number, parse_constant=_no_constant)


def _too_deep() -> NotJson:
    return NotJson(f"the value is nested deeper than {MAX_DEPTH} levels")


def _children(value: Json) -> Iterable[Json]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _check_depth(value: Json) -> None:
    level: list[Json] = [value]
    for _ in range(MAX_DEPTH):
        level = [child for parent in level for child in _children(parent)]
        if not level:
            return
    raise _too_deep()


def _without_surrogates(value: Json) -> Json:
    match value:
        case str():
            return _SURROGATE.sub("\ufffd", value)
        case dict():
            return {
                _SURROGATE.sub("\ufffd", key): _without_surrogates(item)
                for key, item in value.items()
            }
        case list():
            return [_without_surrogates(item) for item in value]
    return value
