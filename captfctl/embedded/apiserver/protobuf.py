"""Kubernetes' protobuf bodies, read as JSON would be.

Go clients send built-in kinds as protobuf even to servers that answer in JSON. A body is four magic
bytes and a `runtime.Unknown`: the object's apiVersion and kind, and its own message.
"""

import base64
import struct
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from captfctl.cluster.errors import BadRequest
from captfctl.embedded.apiserver import builtin
from captfctl.model.meta import micro_time
from captfctl.model.resource import Document

MEDIA = "application/vnd.kubernetes.protobuf"
MAGIC = b"k8s\x00"

Field = tuple[str, str]
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PACKAGES = {
    "v1": "core",
    "batch/v1": "batch",
    "coordination.k8s.io/v1": "coordination",
    "events.k8s.io/v1": "events",
    "rbac.authorization.k8s.io/v1": "rbac",
    "authentication.k8s.io/v1": "authentication",
    "authorization.k8s.io/v1": "authorization",
    "meta.k8s.io/v1": "meta",
}


def decode(body: bytes) -> Document:
    """The object in a protobuf body. Raises `BadRequest`."""
    if not body.startswith(MAGIC):
        raise BadRequest("the request's body is not Kubernetes protobuf")
    try:
        return _unknown(body[len(MAGIC) :])
    except (IndexError, ValueError, struct.error, OverflowError):
        raise BadRequest("the request's protobuf body is damaged") from None


def _unknown(body: bytes) -> Document:
    parts = {number: value for number, _, value in _wire(body)}
    head = {number: _text(value) for number, _, value in _wire(parts.get(1, b""))}
    api_version, kind = head.get(1, ""), head.get(2, "")
    message = _message_of(api_version, kind)
    document = _message(parts.get(2, b""), message)
    return {"apiVersion": api_version, "kind": kind, **document}


def _message_of(api_version: str, kind: str) -> str:
    if kind == "DeleteOptions":  # every group has its own name for it
        return "meta.DeleteOptions"
    name = f"{_PACKAGES.get(api_version, '')}.{kind}"
    if name not in _messages():
        raise BadRequest(f"{kind} in {api_version} can only be sent as JSON")
    return name


@cache
def _messages() -> dict[str, dict[str, Field]]:
    text = Path(builtin.__file__).with_name("messages.json").read_bytes()
    return msgspec.json.decode(text, type=dict[str, dict[str, Field]])


def _wire(body: bytes) -> Iterator[tuple[int, int, Any]]:
    """The fields of an encoded message: number, wire type, raw value."""
    place = 0
    while place < len(body):
        key, place = _varint(body, place)
        number, wire = key >> 3, key & 7
        value: Any
        if wire == _VARINT:
            value, place = _varint(body, place)
        elif wire == _BYTES:
            length, place = _varint(body, place)
            value, place = body[place : place + length], place + length
        elif wire == _FIXED64:
            value, place = body[place : place + 8], place + 8
        elif wire == _FIXED32:
            value, place = body[place : place + 4], place + 4
        else:
            raise ValueError(wire)
        if place > len(body):
            raise ValueError(place)
        yield number, wire, value


def _varint(body: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = body[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
        shift += 7
        if shift > 63:
            raise ValueError(shift)


def _message(body: bytes, name: str) -> Document:
    fields = _messages()[name]
    result: Document = {}
    for number, _, raw in _wire(body):
        known = fields.get(str(number))
        if known is None:
            continue
        json_name, token = known
        if not json_name:
            result |= _value(raw, token.lstrip("*"))
        elif token.startswith("[]"):
            result.setdefault(json_name, []).append(_value(raw, token[2:]))
        elif token.startswith("{}"):
            key, value = _entry(raw, token[2:])
            result.setdefault(json_name, {})[key] = value
        else:
            value = _value(raw, token.lstrip("*"))
            # Go writes fields that are not pointers even when there is nothing in them.
            if token.startswith("*") or value not in ("", 0, False, None, {}):
                result[json_name] = value
    return result


def _entry(raw: bytes, token: str) -> tuple[str, Any]:
    parts = {number: value for number, _, value in _wire(raw)}
    return _text(parts.get(1, b"")), _value(parts.get(2, b""), token.lstrip("*"))


def _value(raw: Any, token: str) -> Any:
    match token:
        case "string":
            return _text(raw)
        case "bytes":
            return base64.b64encode(raw).decode()
        case "bool":
            return bool(raw)
        case "int":
            return raw - (1 << 64) if raw >= 1 << 63 else raw
        case "float":
            return struct.unpack("<d", raw)[0]
        case "time":
            moment = _moment(raw)
            return moment and moment.strftime("%Y-%m-%dT%H:%M:%SZ")
        case "microtime":
            moment = _moment(raw)
            return moment and micro_time(moment)
        case "quantity":
            return _text(next((value for _, _, value in _wire(raw)), b""))
        case "strings":
            return [_text(value) for _, _, value in _wire(raw)]
        case "json":
            return msgspec.json.decode(next((value for _, _, value in _wire(raw)), b"null"))
        case "intOrString":
            parts = {number: value for number, _, value in _wire(raw)}
            return _text(parts.get(3, b"")) if parts.get(1) else parts.get(2, 0)
    return _message(raw, token)


def _text(raw: Any) -> str:
    return bytes(raw).decode()


def _moment(raw: bytes) -> datetime | None:
    """A Time or MicroTime: seconds and nanoseconds since 1970; nothing at all: no time."""
    parts = {number: value for number, _, value in _wire(raw)}
    if not parts:
        return None
    seconds = _value(parts.get(1, 0), "int")
    return _EPOCH + timedelta(seconds=seconds, microseconds=parts.get(2, 0) // 1000)
