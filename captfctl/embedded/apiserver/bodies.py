"""Request bodies of every encoding, as the JSON value they stand for.

What comes out can be worked on: it is nested no deeper than `MAX_DEPTH`, it holds no value twice,
and its numbers are those that Go's JSON has.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from captfctl.cluster.errors import BadRequest, UnsupportedMediaType
from captfctl.embedded.apiserver import protobuf
from captfctl.kubeyaml import MAX_DEPTH, Problem, documents

JSON = "application/json"
YAML = "application/yaml"
OBJECTS = (JSON, YAML, protobuf.MEDIA)
"""In what an object can be sent. A body without a content type is JSON."""

_LONG_NUMBER = re.compile(rb"[0-9]{19}")
_INT64 = 2**63


def read_object(media: str, body: bytes) -> Any:
    """The object in a body. Raises `BadRequest`, and `UnsupportedMediaType` for other encodings."""
    if media and media not in OBJECTS:
        raise UnsupportedMediaType(
            "the body of the request was in an unknown format - accepted media types include: "
            + ", ".join(OBJECTS)
        )
    return read(media, body)


def read(media: str, body: bytes) -> Any:
    """The value in a body whose media type is known to be one that can be read.

    Raises `BadRequest`.
    """
    if not body.strip():
        raise BadRequest("the request has no body")
    if media == protobuf.MEDIA:
        value = protobuf.decode(body)
    elif media.endswith("yaml"):
        value = _yaml(body)
    else:
        value = _json(body)
    return _checked(value, long_numbers=bool(_LONG_NUMBER.search(body)))


def _json(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError as problem:
        raise BadRequest(f"the request's body is not JSON: {problem}") from None
    except RecursionError:
        raise _too_deep() from None


def _yaml(body: bytes) -> Any:
    """The first document of a YAML text. JSON is read as such: it is most of what is sent."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        pass
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise BadRequest("the request's body is not UTF-8") from None
    problems: list[Problem] = []
    parsed = next(documents(text, problems), None)
    if problems:
        found = problems[0]
        where = f"{found.path}: " if found.path else ""
        raise BadRequest(
            f"the request's body cannot be read as YAML: line {found.line}: {where}{found.message}"
        )
    return parsed.value if parsed else None


def _checked(value: Any, *, long_numbers: bool) -> Any:
    """Raises `BadRequest` for what is nested too deep.

    A whole number that has no place in 64 bits becomes a float, as in Go.
    """
    holder = [value]
    for level in _levels(holder):
        for container in level if long_numbers else ():
            for key, item in _items(container):
                if isinstance(item, int) and not -_INT64 <= item < _INT64:
                    container[key] = _float(item)
    return holder[0]


def require_depth(value: Any) -> None:
    """Raises `BadRequest` for what is nested deeper than a body may be."""
    for _ in _levels([value]):
        pass


def _levels(holder: list[Any]) -> Iterator[list[Any]]:
    """The containers in `holder`, level by level. Raises `BadRequest` when there are too many."""
    level: list[Any] = [holder]
    for _ in range(MAX_DEPTH + 1):
        yield level
        level = [
            item
            for container in level
            for _, item in _items(container)
            if isinstance(item, dict | list)
        ]
        if not level:
            return
    raise _too_deep()


def _items(container: Any) -> Iterable[tuple[Any, Any]]:
    return container.items() if isinstance(container, dict) else enumerate(container)


def _float(number: int) -> float:
    try:
        return float(number)
    except OverflowError:
        raise BadRequest("a number in the request's body is too large") from None


def _too_deep() -> BadRequest:
    return BadRequest(
        f"the request's body is nested deeper than {MAX_DEPTH} levels",
        do="send what is nested so deep as text",
    )
