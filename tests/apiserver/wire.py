"""Kubernetes' protobuf as clients write it."""

import base64
import json
import struct
from datetime import datetime

from captfctl.embedded.apiserver import protobuf
from captfctl.embedded.apiserver.wire import block, number, varint
from captfctl.embedded.schemas.builtin import JSON_SCHEMA, Form, Scalar


def envelope(api_version, kind, message):
    head = block(1, api_version) + block(2, kind)
    return protobuf.MAGIC + block(1, head) + block(2, message) + block(3, "") + block(4, "")


def entry(key, value):
    return block(1, key) + (value if isinstance(value, bytes) else block(2, value))


def encoded(document):
    """A document of a built-in kind as the body of a request."""
    api_version, kind = document["apiVersion"], document["kind"]
    content = {k: v for k, v in document.items() if k not in ("apiVersion", "kind")}
    return envelope(api_version, kind, _message(content, protobuf.fields_of(api_version, kind)))


def _message(document, fields):
    out = b""
    for place, known in fields.items():
        if isinstance(known, dict):
            out += block(place, _message(document, known))
        elif known[0] in document:
            out += _field(place, known[1], document[known[0]])
    return out


def _field(place, shape, value):
    match shape.form:
        case Form.LIST:
            return b"".join(_field(place, shape.item, item) for item in value)
        case Form.MAP:
            return b"".join(
                block(place, block(1, key) + _field(2, shape.item, item))
                for key, item in value.items()
            )
        case Form.STRUCT:
            return block(place, _message(value, protobuf.fields_of_type(shape.name)))
    match shape.name:
        case Scalar.BYTES:
            return block(place, base64.b64decode(value))
        case Scalar.BOOL | Scalar.INT32 | Scalar.INT64:
            return number(place, int(value))
        case Scalar.DOUBLE:
            return varint(place << 3 | 1) + struct.pack("<d", value)
        case Scalar.TIME | Scalar.MICRO_TIME:
            moment = datetime.fromisoformat(value)
            seconds = number(1, int(moment.timestamp()))
            return block(place, seconds + number(2, moment.microsecond * 1000))
        case Scalar.QUANTITY:
            return block(place, block(1, value))
        case Scalar.INT_OR_STRING:
            text = isinstance(value, str)
            return block(place, number(1, 1) + block(3, value) if text else number(2, value))
        case Scalar.SCHEMA_OR_ARRAY:
            return block(place, block(1, _message(value, protobuf.fields_of_type(JSON_SCHEMA))))
        case Scalar.JSON:
            return block(place, block(1, json.dumps(value)))
    return block(place, value)
