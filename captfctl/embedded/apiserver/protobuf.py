"""Kubernetes' protobuf bodies, read as JSON would be.

Go clients send built-in kinds as protobuf even to servers that answer in JSON. A body is four magic
bytes and a `runtime.Unknown`: the object's apiVersion and kind, and its own message.
"""

import base64
import math
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
Raw = int | bytes
"""What stands on the wire: a number, or bytes that may be text, a message, a float."""

_VARINT, _BYTES = 0, 2
_FIXED = {1: 8, 5: 4}
"""Wire types of a fixed length, and that length."""
_ALL_BITS = (1 << 64) - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class DamagedError(ValueError):
    """What stands on the wire is not what the message's type says."""


def decode(body: bytes) -> Document:
    """The object in a protobuf body. Raises `BadRequest`."""
    if not body.startswith(MAGIC):
        raise BadRequest("the request's body is not Kubernetes protobuf")
    try:
        return _unknown(body[len(MAGIC) :])
    except (IndexError, ValueError, OverflowError, RecursionError):
        raise BadRequest("the request's protobuf body is damaged") from None


def _unknown(body: bytes) -> Document:
    parts = _parts(body)
    head = _parts(parts.get(1, b""))
    api_version, kind = _text(head.get(1, b"")), _text(head.get(2, b""))
    document = _message(parts.get(2, b""), fields_of(api_version, kind))
    return {"apiVersion": api_version, "kind": kind, **document}


def has_message(api_version: str, kind: str) -> bool:
    """Whether objects of a kind can be read as protobuf."""
    group, _, version = api_version.rpartition("/")
    return bool(builtin.name_of(group, version, kind))


def fields_of(api_version: str, kind: str) -> Fields:
    """The fields of a kind's message. Raises `BadRequest` for a kind that has none."""
    return fields_of_type(_type_of(api_version, kind))


def _type_of(api_version: str, kind: str) -> str:
    if kind == "DeleteOptions":  # every group has its own name for it
        return builtin.DELETE_OPTIONS
    group, _, version = api_version.rpartition("/")
    name = builtin.name_of(group, version, kind)
    if not name:
        raise BadRequest(f"{kind} in {api_version} can only be sent as JSON")
    return name


@cache
def fields_of_type(name: str) -> Fields:
    """The fields of a built-in type's message."""
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


def _wire(body: Raw) -> Iterator[tuple[int, Raw]]:
    """The fields of an encoded message: number and raw value.

    Raises `DamagedError` and `IndexError` for what is no message: a number, text that was cut off.
    """
    body = _block(body)
    place = 0
    while place < len(body):
        key, place = _varint(body, place)
        number, wire = key >> 3, key & 7
        if wire == _VARINT:
            value, place = _varint(body, place)
            yield number, value
            continue
        if wire == _BYTES:
            length, place = _varint(body, place)
        elif wire in _FIXED:
            length = _FIXED[wire]
        else:
            raise DamagedError(wire)
        end = place + length
        if end > len(body):
            raise DamagedError(length)
        yield number, body[place:end]
        place = end


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
            raise DamagedError(shift)


def _message(body: Raw, fields: Fields) -> Document:
    result: Document = {}
    for number, raw in _wire(body):
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


def _entry(raw: Raw, value: Shape) -> tuple[str, Any]:
    parts = _parts(raw)
    return _text(parts.get(1, b"")), _value(parts.get(2, b""), value)


def _parts(raw: Raw) -> dict[int, Raw]:
    """The fields of a message none of whose fields is repeated."""
    return dict(_wire(raw))


def _value(raw: Raw, shape: Shape) -> Any:
    if shape.form is Form.STRUCT:
        return _message(raw, fields_of_type(shape.name))
    return _scalar(raw, shape.name)


def _scalar(raw: Raw, name: str) -> Any:
    match name:
        case Scalar.STRING:
            return _text(raw)
        case Scalar.BYTES:
            return base64.b64encode(_block(raw)).decode()
        case Scalar.BOOL:
            return bool(_number(raw))
        case Scalar.INT32 | Scalar.INT64:
            return _signed(raw)
        case Scalar.DOUBLE:
            return _float(raw)
        case Scalar.TIME:
            moment = _moment(raw)
            return moment and moment.strftime("%Y-%m-%dT%H:%M:%SZ")
        case Scalar.MICRO_TIME:
            moment = _moment(raw)
            return moment and micro_time(moment)
        case Scalar.QUANTITY:
            return _text(_first(raw, b""))
        case Scalar.STRINGS:
            return [_text(value) for _, value in _wire(raw)]
        case Scalar.JSON | Scalar.FIELDS:
            return msgspec.json.decode(_block(_first(raw, b"null")))
        case Scalar.INT_OR_STRING:
            parts = _parts(raw)
            return _text(parts.get(3, b"")) if parts.get(1) else _signed(parts.get(2, 0))
    return _schema_or_else(list(_wire(raw)), name)


def _schema_or_else(parts: list[tuple[int, Raw]], name: str) -> Any:
    """A part of a CustomResourceDefinition's schema that is a schema or something else."""
    place = 2 if name == Scalar.SCHEMA_OR_BOOL else 1
    schemas = [raw for number, raw in parts if number == place]
    if schemas:
        return _message(schemas[-1], fields_of_type(builtin.JSON_SCHEMA))
    others = [raw for number, raw in parts if number == 3 - place]
    match name:
        case Scalar.SCHEMA_OR_BOOL:
            return bool(others and _number(others[-1]))
        case Scalar.SCHEMA_OR_STRINGS:
            return [_text(raw) for raw in others]
    return [_message(raw, fields_of_type(builtin.JSON_SCHEMA)) for raw in others]


def _block(raw: Raw) -> bytes:
    if isinstance(raw, int):
        raise DamagedError("a number where bytes belong")
    return raw


def _number(raw: Raw) -> int:
    if not isinstance(raw, int):
        raise DamagedError("bytes where a number belongs")
    return raw


def _signed(raw: Raw) -> int:
    number = _number(raw) & _ALL_BITS
    return number - (1 << 64) if number >> 63 else number


def _float(raw: Raw) -> float:
    body = _block(raw)
    if len(body) != 8:
        raise DamagedError(len(body))
    number: float = struct.unpack("<d", body)[0]
    if not math.isfinite(number):
        raise DamagedError("a number that JSON does not have")
    return number


def _text(raw: Raw) -> str:
    return _block(raw).decode()


def _first(raw: Raw, default: bytes) -> Raw:
    """The value of a message's only field."""
    return next((value for _, value in _wire(raw)), default)


def _moment(raw: Raw) -> datetime | None:
    """A Time or MicroTime: seconds and nanoseconds since 1970; nothing at all: no time."""
    parts = _parts(raw)
    if not parts:
        return None
    nanoseconds = _signed(parts.get(2, 0))
    return _EPOCH + timedelta(seconds=_signed(parts.get(1, 0)), microseconds=nanoseconds // 1000)
