"""What a scalar without quotes means to kubectl.

kubectl reads YAML with a library between YAML 1.1 and 1.2: `yes`, `on` and `y` are true, `0b11`,
`012` and `1_000` are numbers, `1:30` and dates are text. The same file must give the same variables
through `kubectl apply -f` and through captfctl, so these are the rules here, too.
"""

import math
import re
from decimal import Decimal

Scalar = bool | int | float | str | None

_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "off", "Off", "OFF"), False),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_AS_EVERYWHERE = frozenset(
    ("", "~", "null", "Null", "NULL", "true", "True", "TRUE", "false", "False", "FALSE")
)
_NUMERIC = frozenset("+-.0123456789")
_NO_NUMBER = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_INTEGER = re.compile(
    r"(?P<sign>[-+]?)"
    r"(?:0[xX](?P<hex>[0-9a-fA-F]+)|0[bB](?P<binary>[01]+)|0[oO]?(?P<octal>[0-7]+)"
    r"|(?P<decimal>0|[1-9][0-9]*))"
)
_BASES = {"hex": 16, "binary": 2, "octal": 8, "decimal": 10}
_SIGNED_BINARY = re.compile(r"0b([-+][01]+)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_CORE_DECIMAL = re.compile(r"[-+]?[0-9]+")
_CORE_OCTAL = re.compile(r"0o[0-7]+")
_CORE_HEX = re.compile(r"0x[0-9a-fA-F]+")
_LONG = 80
"""Digits that no number of 64 bits has in any base."""

_INT64 = 2**63
_UINT64 = 2**64
_TOO_LARGE = "kubectl rounds a number of so many digits: put it in quotes"


def plain(text: str) -> Scalar:
    """The value of a scalar without quotes. Raises `ValueError` saying what is wrong with it.

    What kubectl refuses is refused, and also what it rounds.
    """
    if text in _WORDS:
        return _WORDS[text]
    if text[0] in _NUMERIC:
        return _number(text)
    return text


def plain_key(text: str) -> str:
    """The key that plain `text` is to kubectl. Raises `ValueError` when it is none.

    Fractions are refused: kubectl makes 1.1 of the keys 1.1 and 1.10.
    """
    value = plain(text)
    match value:
        case bool():
            return "true" if value else "false"
        case int() if _INTEGER.fullmatch(text.replace("_", "")):
            return str(value)
        case str():
            return value
    raise ValueError("is not text: put it in quotes")


def surprise(text: str, value: Scalar) -> str:
    """How `value` differs from what YAML 1.2 makes of plain `text`; empty when it does not."""
    if isinstance(value, bool):
        return "" if text in _AS_EVERYWHERE else f"{text} is read as {str(value).lower()}"
    if value is None or isinstance(value, str) or _in_yaml_1_2(text) == value:
        return ""
    found = _INTEGER.fullmatch(text.replace("_", ""))
    base = _BASES[found.lastgroup] if found and found.lastgroup else 10
    return "this is read as a number" + ("" if base == 10 else f" in base {base}")


def integer(text: str) -> int:
    """Raises `ValueError` when it does not fit into 64 bits."""
    value = int(text) if len(text) < _LONG else _INT64
    if not -_INT64 <= value < _INT64:
        raise ValueError(_TOO_LARGE)
    return value


def fraction(number: float) -> int | float:
    """A finite number as it comes out of kubectl, which writes whole ones without a point."""
    if not number.is_integer() or abs(number) >= _INT64:
        return number
    return int(Decimal(repr(number)))


def json_number(text: str) -> int | float:
    """A number of a JSON text. Raises `ValueError` when kubectl would refuse or round it."""
    if not any(mark in text for mark in ".eE"):
        return integer(text)
    number = float(text)
    if math.isinf(number):
        raise ValueError("the number is too large")
    return fraction(number)


def _number(text: str) -> int | float | str:
    if _NO_NUMBER.fullmatch(text):
        raise ValueError(f"{text} cannot be written in JSON")
    digits = text if text[0] == "." else text.replace("_", "")
    if "_" in text and text[0] == "." and _FLOAT.fullmatch(text.replace("_", "")):
        raise ValueError("only some versions of kubectl read this as a number: put it in quotes")
    is_float = _FLOAT.fullmatch(digits) is not None
    if found := _INTEGER.fullmatch(digits):
        kind = str(found.lastgroup)
        value = int(found[kind], _BASES[kind]) if len(digits) < _LONG else _UINT64
        value = -value if found["sign"] == "-" else value
        if -_INT64 <= value < _INT64:
            return value
        if is_float or (value < _UINT64 and not found["sign"]):
            raise ValueError(_TOO_LARGE)
        return text
    if is_float:
        number = float(digits)
        if _CORE_DECIMAL.fullmatch(digits) and int(digits[:_LONG]) != number:
            raise ValueError(_TOO_LARGE)
        return text if math.isinf(number) else fraction(number)
    if found := _SIGNED_BINARY.fullmatch(digits):
        return int(found[1], 2)
    return text


def _in_yaml_1_2(text: str) -> int | float | str:
    """What YAML 1.2's core schema makes of a text that begins like a number."""
    for form, base in ((_CORE_DECIMAL, 10), (_CORE_OCTAL, 8), (_CORE_HEX, 16)):
        if form.fullmatch(text) and len(text) < _LONG:
            return int(text, base)
    return float(text) if _FLOAT.fullmatch(text) else text
