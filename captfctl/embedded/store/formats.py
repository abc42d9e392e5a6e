"""The string formats that a CRD's schema may name. An unknown format is no restriction."""

import base64
import binascii
import ipaddress
import re
import uuid
from collections.abc import Callable
from datetime import date
from urllib.parse import urlsplit

from captfctl.embedded.store.naming import label_problems, subdomain_problems
from captfctl.model.durations import parse_duration
from captfctl.model.meta import parse_time

_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)\Z")
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+\Z")
_HEX = re.compile(r"#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})\Z")


def is_time(text: str) -> bool:
    """RFC 3339 with an offset."""
    return bool(_TIME.match(text)) and parse_time(text) is not None


def is_base64(text: str) -> bool:
    """Standard base64 with padding."""
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _accepts(parse: Callable[[str], object]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            parse(text)
        except ValueError:
            return False
        return True

    return check


def _is_uri(text: str) -> bool:
    try:
        return bool(urlsplit(text).scheme)
    except ValueError:
        return False


def _is_prefix(text: str) -> bool:
    return "/" in text and _accepts(lambda t: ipaddress.ip_network(t, strict=False))(text)


_FORMATS: dict[str, Callable[[str], bool]] = {
    "date-time": is_time,
    "datetime": is_time,
    "date": _accepts(date.fromisoformat),
    "duration": _accepts(parse_duration),
    "byte": is_base64,
    "uri": _is_uri,
    "email": lambda text: bool(_EMAIL.match(text)),
    "hostname": lambda text: not subdomain_problems(text.lower().rstrip(".")),
    "ipv4": _accepts(ipaddress.IPv4Address),
    "ipv6": _accepts(ipaddress.IPv6Address),
    "cidr": _is_prefix,
    "uuid": _accepts(uuid.UUID),
    "hexcolor": lambda text: bool(_HEX.match(text)),
    "k8s-short-name": lambda text: not label_problems(text),
    "k8s-long-name": lambda text: not subdomain_problems(text),
}


def matches_format(name: str, text: str) -> bool:
    """Whether `text` is of the named format."""
    check = _FORMATS.get(name)
    return check is None or check(text)
