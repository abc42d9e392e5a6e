"""The functions that Kubernetes adds to CEL, and those of CEL itself that the library lacks."""

import ipaddress
import itertools
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qs, urlsplit

import re2

from captfctl.embedded.store.formats import is_time
from captfctl.embedded.store.quantity import QuantityError, parse_quantity


def _string(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, timedelta):
        return f"{value.total_seconds():g}s"
    if isinstance(value, float):
        return f"{value:g}"
    return str(value)


def _bool(value: Any) -> bool:
    if value in (True, False):
        return bool(value)
    if str(value) in ("1", "t", "T", "true", "TRUE", "True"):
        return True
    if str(value) in ("0", "f", "F", "false", "FALSE", "False"):
        return False
    raise ValueError(f"type conversion error from '{value}' to 'bool'")


def _index_of(value: Any, wanted: Any, *start: int) -> int:
    if isinstance(value, str):
        return value.find(wanted, *start)
    return value.index(wanted) if wanted in value else -1


def _last_index_of(value: Any, wanted: Any) -> int:
    if isinstance(value, str):
        return value.rfind(wanted)
    return len(value) - 1 - value[::-1].index(wanted) if wanted in value else -1


def _substring(text: str, start: int, *end: int) -> str:
    stop = end[0] if end else len(text)
    if not 0 <= start <= stop <= len(text):
        raise ValueError("substring is out of range")
    return text[start:stop]


def _split(text: str, separator: str, *limit: int) -> list[str]:
    if limit and limit[0] == 0:
        return []
    count = limit[0] - 1 if limit and limit[0] > 0 else -1
    return list(text) if not separator else text.split(separator, count)


def _replace(text: str, old: str, new: str, *count: int) -> str:
    return text.replace(old, new, *count)


def _find_all(text: str, pattern: str, *limit: int) -> list[str]:
    found = [match.group(0) for match in re2.finditer(pattern, text)]
    return found[: limit[0]] if limit and limit[0] >= 0 else found


def _find(text: str, pattern: str) -> str:
    found = re2.search(pattern, text)
    return found.group(0) if found else ""


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return bool(parts.scheme) or text.startswith("/")


def _url(text: str) -> str:
    if not _is_url(text):
        raise ValueError(f"URL parse error during conversion from string: {text}")
    return text


def _host(url: str) -> str:
    return urlsplit(url).netloc.rpartition("@")[2]


def _is_quantity(text: str) -> bool:
    try:
        parse_quantity(text)
    except QuantityError:
        return False
    return True


def _quantity(text: str) -> str:
    parse_quantity(text)
    return text


def _compare(left: str, right: str) -> int:
    a, b = parse_quantity(left), parse_quantity(right)
    return (a > b) - (a < b)


def _is_ip(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _is_cidr(text: str) -> bool:
    try:
        ipaddress.ip_network(text)
    except ValueError:
        return False
    return "/" in text


def _sum(values: list[Any]) -> Any:
    return sum(values)


def _as_integer(text: str) -> int:
    number = parse_quantity(text)
    if number != number.to_integral_value():
        raise ValueError("cannot convert value to integer")
    return int(number)


# The library's own cannot be overridden: its `size` counts a text's bytes where CEL counts
# characters, its conversions do not know every type.
REPLACEMENTS = {"size": "sizeOf", "string": "stringOf", "bool": "boolOf"}

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sizeOf": len,
    "stringOf": _string,
    "boolOf": _bool,
    "isSorted": lambda values: all(a <= b for a, b in itertools.pairwise(values)),
    "sum": _sum,
    "indexOf": _index_of,
    "lastIndexOf": _last_index_of,
    "charAt": lambda text, at: text[at] if at < len(text) else "",
    "lowerAscii": lambda text: text.lower() if text.isascii() else text,
    "upperAscii": lambda text: text.upper() if text.isascii() else text,
    "trim": lambda text: text.strip(),
    "reverse": lambda text: text[::-1],
    "split": _split,
    "join": lambda values, separator="": separator.join(values),
    "replace": _replace,
    "substring": _substring,
    "find": _find,
    "findAll": _find_all,
    "isURL": _is_url,
    "url": _url,
    "getScheme": lambda url: urlsplit(url).scheme,
    "getHost": _host,
    "getHostname": lambda url: urlsplit(url).hostname or "",
    "getPort": lambda url: str(urlsplit(url).port or ""),
    "getEscapedPath": lambda url: urlsplit(url).path,
    "getQuery": lambda url: parse_qs(urlsplit(url).query, keep_blank_values=True),
    "isQuantity": _is_quantity,
    "quantity": _quantity,
    "isGreaterThan": lambda left, right: _compare(left, right) > 0,
    "isLessThan": lambda left, right: _compare(left, right) < 0,
    "compareTo": _compare,
    "asInteger": _as_integer,
    "isInteger": lambda text: parse_quantity(text) == Decimal(int(parse_quantity(text))),
    "isIP": _is_ip,
    "isCIDR": _is_cidr,
    "isTimestamp": is_time,
}
