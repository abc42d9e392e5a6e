"""The forms in which a secret value may be printed (runner.md: How secrets are found).

Each function gives what a common tool makes of the value's bytes. Bytes that are no UTF-8 are
escaped as U+FFFD where the form is one of text.
"""

import re
from base64 import b64encode
from collections.abc import Iterable
from json.encoder import encode_basestring, encode_basestring_ascii
from urllib.parse import quote

from runner.jsontext import escapes

_SHORTEST_LINE = 16
_LONGEST_IN_A_URL = 1 << 14
_PLAIN = re.compile(rb"[A-Za-z0-9_.-]+")
_URL_SAFE_ALPHABET = bytes.maketrans(b"+/", b"-_")
_WRAPPED = (64, 76)  # columns, as PEM files and `base64` have
# What other encoders than Python's leave as it is: paths, user information and path segments in Go,
# encodeURIComponent and encodeURI.
_URL_SAFE = ("", "/", "$&+,;=", "$&+=:@", "$&+,/:;=@", "!'()*", ";,/?:@&=+$#!'()*")
_IN_DOUBLE_QUOTES = re.compile(r'[$`"\\]')
_PLAIN_IN_SHELL = re.compile(r"[^A-Za-z0-9_@%+=:./-]")  # bash leaves these and others: see tests
_BASH_SPECIAL = " \t\n'\"\\|&;()<>!{}*[]?^$`,"
_ANSI_C = {
    "\a": "\\a",
    "\b": "\\b",
    "\x1b": "\\E",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
    "'": "\\'",
}


def disguises(value: bytes) -> set[bytes]:
    """Every form of the value, itself included."""
    found = {value} | _base64(value)
    if _PLAIN.fullmatch(value):
        return found  # nothing else changes it
    quoted = escapes(value) | _ascii_json(value)
    twice = _again(quoted)
    found |= quoted | twice | _again(twice) | _shell(value)
    return found | _url(value) if len(value) <= _LONGEST_IN_A_URL else found


def disguises_of_line(line: bytes) -> set[bytes]:
    """The forms of one line of a value of several. Such values are long: only what is common is
    made of each line; the value as a whole has all its forms."""
    found = {line} | _base64(line)
    if _PLAIN.fullmatch(line):
        return found
    text = line.decode("utf-8", "surrogateescape")
    shown = (quote(line, safe=""), text.replace("'", "'\\''"), _in_double_quotes(text))
    return found | escapes(line) | {form.encode("utf-8", "surrogateescape") for form in shown}


def _again(forms: Iterable[bytes]) -> set[bytes]:
    """A JSON text inside a string of another one, as a policy in a resource is shown; the runtime's
    own quotes may be around that."""
    return set().union(*map(escapes, forms))


def _ascii_json(value: bytes) -> set[bytes]:
    """JSON that escapes everything but ASCII, or slashes as well."""
    text = value.decode("utf-8", "replace")
    plain = encode_basestring_ascii(text)[1:-1]
    upper = re.sub(r"\\u[0-9a-f]{4}", lambda found: "\\u" + found[0][2:].upper(), plain)
    slashes = (form.replace("/", "\\/") for form in (plain, encode_basestring(text)[1:-1]))
    return {form.encode() for form in (plain, upper, *slashes)}


def _base64(value: bytes) -> set[bytes]:
    """Base64 of the value alone, and what of it stays the same wherever the value stands in a
    longer text: the characters that depend on nothing before or after it."""
    whole = b64encode(value)
    found = {whole, whole.rstrip(b"=")}
    for before in range(3):
        encoded = b64encode(bytes(before) + value)
        first, end = -(-before * 8 // 6), (before + len(value)) * 8 // 6
        found.add(encoded[first:end])
    for columns in _WRAPPED:
        if len(whole) > columns:
            lines = (whole[at : at + columns] for at in range(0, len(whole), columns))
            found |= {line for line in lines if len(line) >= _SHORTEST_LINE}
    return found | {form.translate(_URL_SAFE_ALPHABET) for form in found}


def _url(value: bytes) -> set[bytes]:
    """URL encoding, for every part of a URL."""
    kept = {"".join(one for one in safe if one.encode() in value) for safe in _URL_SAFE}
    found = {quote(value, safe=safe) for safe in kept}
    if b" " in value:
        found |= {text.replace("%20", "+") for text in found}
    found |= {re.sub("%[0-9A-F]{2}", lambda code: code[0].lower(), text) for text in found}
    return {text.encode() for text in found}


def _in_double_quotes(text: str) -> str:
    return _IN_DOUBLE_QUOTES.sub(r"\\\g<0>", text)


def _shell(value: bytes) -> set[bytes]:
    """Quoted for a shell: in single quotes, in double quotes, with backslashes, as bash's `%q`."""
    text = value.decode("utf-8", "surrogateescape")
    found = {text.replace("'", part) for part in ("'\\''", "'\"'\"'")}
    doubled = _in_double_quotes(text)
    found |= {doubled, doubled.replace("!", "\\!")}
    found.add("".join(f"\\{one}" if one in _BASH_SPECIAL else one for one in text))
    found.add("".join(_ANSI_C.get(one, one) for one in text))
    found.add(_PLAIN_IN_SHELL.sub(r"\\\g<0>", text))
    return {form.encode("utf-8", "surrogateescape") for form in found}
