"""Kubernetes' protobuf bodies, read as JSON would be.

Go clients send built-in kinds as protobuf even to servers that answer in JSON. A body is four magic
bytes and a `runtime.Unknown`: the object's apiVersion and kind, and its own message.
"""

import base64
import struct
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import msgspec

from captfctl.cluster.errors import BadRequest
from captfctl.embedded.schemas import builtin
from captfctl.embedded.schemas.builtin import Form, Scalar, Shape
from captfctl.model.meta import micro_time
from captfctl.model.resource import Document

MEDIA = "application/vnd.kubernetes.protobuf"
MAGIC = b"k8s\x00"

Fields = dict[int, "tuple[str, Shape] | Fields"]
"""A message's fields by number: JSON name and type, or a message that JSON does not show."""
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def decode(body: bytes) -> Document:
    """The object in a protobuf body. Raises `BadRequest`."""
    if not body.startswith(MAGIC):
        raise BadRequest("the request's body is not Kubernetes protobuf")
    try:
        return _unknown(body[len(MAGIC) :])
    except (IndexError, ValueError, struct.error, OverflowError):
        raise BadRequest("the request's protobuf body is damaged") from None


def _unknown(body: bytes) -> Document:
    parts = _parts(body)
    head = {number: _text(value) for number, _, value in _wire(parts.get(1, b""))}
    api_version, kind = head.get(1, ""), head.get(2, "")
    document = _message(parts.get(2, b""), _numbered(_type_of(api_version, kind)))
    return {"apiVersion": api_version, "kind": kind, **document}


def _type_of(api_version: str, kind: str) -> str:
    if kind == "DeleteOptions":  # every group has its own name for it
        return builtin.DELETE_OPTIONS
    group, _, version = api_version.rpartition("/")
    name = builtin.name_of(group, version, kind)
    if not name:
        raise BadRequest(f"{kind} in {api_version} can only be sent as JSON")
    return name


@cache
def _numbered(name: str) -> Fields:
    fields: Fields = {}
    for key, field in builtin.struct(name).fields.items():
        around = fields
        for number in field.within:
            inner = around.setdefault(number, {})
            assert isinstance(inner, dict)
            around = inner
        if field.number:
            around[field.number] = (key, field.shape)
    return fields


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


def _message(body: bytes, fields: Fields) -> Document:
    result: Document = {}
    for number, _, raw in _wire(body):
        known = fields.get(number)
        if known is None:
            continue
        if isinstance(known, dict):
            result |= _message(raw, known)
            continue
        key, shape = known
        match shape.form, shape.item:
            case Form.LIST, Shape() as item:
                result.setdefault(key, []).append(_value(raw, item))
            case Form.MAP, Shape() as item:
                name, value = _entry(raw, item)
                result.setdefault(key, {})[name] = value
            case _:
                value = _value(raw, shape)
                # Go writes fields that are not pointers even when there is nothing in them.
                if shape.pointer or value not in ("", 0, False, None, {}):
                    result[key] = value
    return result


def _entry(raw: bytes, value: Shape) -> tuple[str, Any]:
    parts = _parts(raw)
    return _text(parts.get(1, b"")), _value(parts.get(2, b""), value)


def _parts(raw: bytes) -> dict[int, Any]:
    return {number: value for number, _, value in _wire(raw)}


def _value(raw: Any, shape: Shape) -> Any:
    if shape.form is Form.STRUCT:
        return _message(raw, _numbered(shape.name))
    return _scalar(raw, shape.name)


def _scalar(raw: Any, name: str) -> Any:
    match name:
        case Scalar.STRING:
            return _text(raw)
        case Scalar.BYTES:
            return base64.b64encode(raw).decode()
        case Scalar.BOOL:
            return bool(raw)
        case Scalar.INT32 | Scalar.INT64:
            return _signed(raw)
        case Scalar.DOUBLE:
            return struct.unpack("<d", raw)[0]
        case Scalar.TIME:
            moment = _moment(raw)
            return moment and moment.strftime("%Y-%m-%dT%H:%M:%SZ")
        case Scalar.MICRO_TIME:
            moment = _moment(raw)
            return moment and micro_time(moment)
        case Scalar.QUANTITY:
            return _text(next((value for _, _, value in _wire(raw)), b""))
        case Scalar.STRINGS:
            return [_text(value) for _, _, value in _wire(raw)]
        case Scalar.JSON | Scalar.FIELDS:
            return msgspec.json.decode(next((value for _, _, value in _wire(raw)), b"null"))
        case Scalar.INT_OR_STRING:
            parts = _parts(raw)
            return _text(parts.get(3, b"")) if parts.get(1) else _signed(parts.get(2, 0))
    return _schema_or_else(list(_wire(raw)), name)


def _schema_or_else(parts: list[tuple[int, int, Any]], name: str) -> Any:
    """A part of a CustomResourceDefinition's schema that is a schema or something else."""
    place = 2 if name == Scalar.SCHEMA_OR_BOOL else 1
    schemas = [raw for number, _, raw in parts if number == place]
    if schemas:
        return _message(schemas[-1], _numbered(builtin.JSON_SCHEMA))
    others = [raw for number, _, raw in parts if number == 3 - place]
    match name:
        case Scalar.SCHEMA_OR_BOOL:
            return bool(others and others[-1])
        case Scalar.SCHEMA_OR_STRINGS:
            return [_text(raw) for raw in others]
    return [_message(raw, _numbered(builtin.JSON_SCHEMA)) for raw in others]


def _signed(raw: int) -> int:
    return raw - (1 << 64) if raw >= 1 << 63 else raw


def _text(raw: Any) -> str:
    return bytes(raw).decode()


def _moment(raw: bytes) -> datetime | None:
    """A Time or MicroTime: seconds and nanoseconds since 1970; nothing at all: no time."""
    parts = _parts(raw)
    if not parts:
        return None
    return _EPOCH + timedelta(
        seconds=_signed(parts.get(1, 0)), microseconds=parts.get(2, 0) // 1000
    )
