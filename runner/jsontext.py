"""JSON the way the plan fingerprint and the redaction need it (runner.md: Canonical JSON).

Number literals are kept as text (`Number`), NaN and Infinity are refused, and a large document is
walked without ever being held as objects: only the piece asked for is decoded.
"""

import codecs
import json
import re
from collections.abc import Iterable, Iterator
from json.encoder import encode_basestring
from typing import Any, NoReturn, Union

JsonValue = Union[None, bool, str, "Number", list["JsonValue"], dict[str, "JsonValue"]]

_SPACE = " \t\n\r"
_HTML_ESCAPES = {
    "<": "\\u003c",
    ">": "\\u003e",
    "&": "\\u0026",
    "\u2028": "\\u2028",
    "\u2029": "\\u2029",
}


class JsonError(ValueError):
    """The text is not JSON, or not of the shape it must have."""


class Number:
    """A number, kept exactly as it was written: `1.0` is not `1`."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Number) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"Number({self.text!r})"


def _refuse(constant: str) -> NoReturn:
    raise JsonError(f"{constant} is not a JSON number")


def _forget(_: list[tuple[str, Any]]) -> None:
    return None


def _nothing(_: str) -> None:
    return None


_decoder = json.JSONDecoder(parse_float=Number, parse_int=Number, parse_constant=_refuse)
# Checks the syntax and drops every object as soon as it is complete.
_skipper = json.JSONDecoder(
    parse_float=_nothing, parse_int=_nothing, parse_constant=_refuse, object_pairs_hook=_forget
)


def as_ascii(document: Iterable[bytes]) -> str:
    """A JSON document, given in pieces, as text whose other characters are written as escapes.

    Python keeps a text with a single wide character in two or four times the space; this one takes
    a byte per character. Bytes that are no UTF-8 become U+FFFD.
    """
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    texts = [_narrow(decoder.decode(piece)) for piece in document]
    if rest := decoder.decode(b"", final=True):
        texts.append(_narrow(rest))
    return "".join(texts)


def _narrow(text: str) -> str:
    return text if text.isascii() else re.sub("[^\x00-\x7f]", _escape_wide, text)


def _escape_wide(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))


def check(text: str) -> None:
    """Raise JsonError unless `text` is one JSON value; holds nothing of it."""
    _expect_end(text, skip(text, _skip_space(text, 0)))


def document(text: str) -> dict[str, int]:
    """Where each member of the one object that `text` is begins. Raises JsonError."""
    found, end = _members(text, _skip_space(text, 0))
    _expect_end(text, end)
    return found


def members(text: str, start: int) -> dict[str, int]:
    """Where each member of the object at `start` begins; null has none, the last of a name wins.

    Raises JsonError when something else is there, or the text breaks off.
    """
    return _members(text, start)[0]


def elements(text: str, start: int) -> list[int]:
    """Where each element of the list at `start` begins; null has none. Raises JsonError."""
    found = []
    position = _opened(text, start, "[", "]")
    while position >= 0:
        found.append(position)
        position = _following(text, skip(text, position), "]")[0]
    return found


def values(text: str, start: int) -> Iterator[JsonValue]:
    """The elements of the list at `start`, decoded one at a time. Raises JsonError."""
    position = _opened(text, start, "[", "]")
    while position >= 0:
        value, end = _decode_at(_decoder, text, position)
        yield value
        position = _following(text, end, "]")[0]


def decode_at(text: str, start: int) -> JsonValue:
    """The value that begins at `start`. Raises JsonError."""
    value: JsonValue = _decode_at(_decoder, text, start)[0]
    return value


def skip(text: str, start: int) -> int:
    """Where the value beginning at `start` ends. Raises JsonError."""
    return _decode_at(_skipper, text, start)[1]


def _members(text: str, start: int) -> tuple[dict[str, int], int]:
    found: dict[str, int] = {}
    if text.startswith("null", start):
        return found, start + len("null")
    position = _opened(text, start, "{", "}")
    if position < 0:
        return found, _skip_space(text, start + 1) + 1
    while True:
        name, end = _decode_at(_decoder, text, position)
        colon = _skip_space(text, end)
        if not isinstance(name, str) or text[colon : colon + 1] != ":":
            raise JsonError(f"expected a name and a colon at character {position}")
        found[name] = _skip_space(text, colon + 1)
        position, end = _following(text, skip(text, found[name]), "}")
        if position < 0:
            return found, end


def _opened(text: str, start: int, opening: str, closing: str) -> int:
    """The position of the first item of a container, -1 when it has none."""
    if text.startswith("null", start):
        return -1
    if text[start : start + 1] != opening:
        raise JsonError(f"expected {opening} at character {start}")
    position = _skip_space(text, start + 1)
    return -1 if text[position : position + 1] == closing else position


def _following(text: str, end: int, closing: str) -> tuple[int, int]:
    """The position of the item after one that ends at `end`, or -1, and the container's end."""
    position = _skip_space(text, end)
    mark = text[position : position + 1]
    if mark == closing:
        return -1, position + 1
    if mark != ",":
        raise JsonError(f"expected , or {closing} at character {position}")
    return _skip_space(text, position + 1), -1


def _expect_end(text: str, end: int) -> None:
    if _skip_space(text, end) != len(text):
        raise JsonError(f"more text after the value, at character {end}")


def _decode_at(decoder: json.JSONDecoder, text: str, start: int) -> tuple[Any, int]:
    try:
        return decoder.raw_decode(text, start)
    except RecursionError:
        raise JsonError("nested too deeply") from None
    except json.JSONDecodeError as error:
        raise JsonError(f"{error.msg} at character {error.pos}") from None


def _skip_space(text: str, start: int) -> int:
    while text[start : start + 1] and text[start] in _SPACE:
        start += 1
    return start


def canonical(value: JsonValue) -> str:
    """The canonical text of a value: compact, keys sorted, numbers as written."""
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, Number):
        return value.text
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    pairs = (f"{quote(key)}:{canonical(value[key])}" for key in sorted(value))
    return "{" + ",".join(pairs) + "}"


def quote(text: str) -> str:
    """A string as canonical JSON writes it."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            text = re.sub("[\ud800-\udfff]", "\ufffd", text)
    quoted = encode_basestring(text)
    for character, escaped in _HTML_ESCAPES.items():
        if character in quoted:
            quoted = quoted.replace(character, escaped)
    return quoted


def escapes(value: bytes) -> set[bytes]:
    """How the bytes of a value may stand inside quotes: in canonical JSON, in JSON that leaves
    `<>&` alone, and in the runtime's own language. Bytes that are no UTF-8 become U+FFFD.
    """
    text = value.decode("utf-8", "replace")
    plain = encode_basestring(text)[1:-1]
    language = plain.replace("${", "$${").replace("%{", "%%{")
    return {form.encode("utf-8") for form in (quote(text)[1:-1], plain, language)}
