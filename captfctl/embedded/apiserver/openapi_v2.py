"""The OpenAPI v2 document, in JSON and in protobuf.

kubectl reads it, as protobuf, for kinds that no OpenAPI v3 document names, such as `List`. The
definitions are those of v3, less what v2 has no words for.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from captfctl.embedded.apiserver.wire import block, number
from captfctl.model.resource import Document
from captfctl.version import VERSION

PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
ANSWERED = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
"""The content type of what is answered to those who accept `PROTOBUF`: without its `@`."""

_V3, _V2 = "#/components/schemas/", "#/definitions/"
_KEPT = ("description", "type", "format", "required")
_INT_OR_STRING = {"type": "string", "format": "int-or-string"}


def swagger(documents: Iterable[Document]) -> Document:
    """One v2 document of the v3 documents of all group versions."""
    paths: Document = {}
    definitions: Document = {}
    for document in documents:
        paths |= {path: _path(item) for path, item in document["paths"].items()}
        schemas = document["components"]["schemas"]
        definitions |= {name: _schema(schema) for name, schema in schemas.items()}
    return {
        "swagger": "2.0",
        "info": {"title": "captfctl local", "version": VERSION},
        "paths": paths,
        "definitions": definitions,
    }


def _path(item: Mapping[str, Document]) -> Document:
    return {method: _operation(operation) for method, operation in item.items()}


def _operation(operation: Document) -> Document:
    extensions = {key: value for key, value in operation.items() if key.startswith("x-")}
    parameters = [
        {"name": parameter["name"], "in": "query", "type": "string"}
        for parameter in operation["parameters"]
    ]
    return extensions | {"parameters": parameters, "responses": operation["responses"]}


def _schema(schema: Document) -> Document:
    """Without alternatives, defaults and limits; what may be null or anything has no form."""
    if schema.get("x-kubernetes-int-or-string") or schema.get("format") == "int-or-string":
        return dict(_INT_OR_STRING)
    if alternatives := schema.get("oneOf"):
        return {"type": alternatives[0]["type"]}
    result = {key: schema[key] for key in _KEPT if key in schema}
    result |= {key: value for key, value in schema.items() if key.startswith("x-")}
    reference = schema.get("$ref") or next((s["$ref"] for s in schema.get("allOf", ())), "")
    if reference:
        return result | {"$ref": reference.replace(_V3, _V2)}
    if schema.get("nullable"):
        result.pop("type", None)
        return result
    if not schema.get("x-kubernetes-preserve-unknown-fields"):
        if properties := schema.get("properties"):
            result["properties"] = {name: _schema(part) for name, part in properties.items()}
        if isinstance(schema.get("items"), dict):
            result["items"] = _schema(schema["items"])
    additional = schema.get("additionalProperties")
    if additional is not None:
        below = _schema(additional) if isinstance(additional, dict) else additional
        result["additionalProperties"] = below
    return result


# The messages of OpenAPI v2 as protobuf has them: for each JSON key the field's number, or the
# numbers of the messages that JSON does not show and then the field's, and what the value is. "*"
# stands for the entries of a map, "x-" for extensions.
_Number = int | tuple[int, ...]
_MESSAGES: dict[str, dict[str, tuple[_Number, str]]] = {
    "Document": {
        "swagger": (1, "text"),
        "info": (2, "Info"),
        "paths": (8, "Paths"),
        "definitions": (9, "Schemas"),
    },
    "Info": {"title": (1, "text"), "version": (2, "text")},
    "Paths": {"*": (2, "Path")},
    "Path": {
        "get": (2, "Operation"),
        "put": (3, "Operation"),
        "post": (4, "Operation"),
        "delete": (5, "Operation"),
        "patch": (8, "Operation"),
    },
    "Operation": {
        "parameters": ((8, 1, 2, 3), "Query"),
        "responses": (9, "Responses"),
        "x-": (13, ""),
    },
    "Query": {"in": (2, "text"), "name": (4, "text"), "type": (6, "text")},
    "Responses": {"*": (1, "Answer")},
    "Answer": {"description": ((1, 1), "text")},
    "Schemas": {"*": (1, "Schema")},
    "Schema": {
        "$ref": (1, "text"),
        "format": (2, "text"),
        "description": (4, "text"),
        "required": (19, "text"),
        "additionalProperties": (21, "SchemaOrFlag"),
        "type": ((22, 1), "text"),
        "items": ((23, 1), "Schema"),
        "properties": (25, "Schemas"),
        "x-": (31, ""),
    },
}


def encoded(document: Document) -> bytes:
    """A v2 document as protobuf."""
    return _message(document, "Document")


def _message(value: Document, name: str) -> bytes:
    known = _MESSAGES[name]
    pieces = []
    for key, item in value.items():
        if "*" in known:
            place, kind = known["*"]
            pieces.append(_wrapped(place, block(1, key) + block(2, _content(item, kind))))
        elif key.startswith("x-"):
            pieces.append(_wrapped(known["x-"][0], block(1, key) + block(2, _extension(item))))
        else:
            place, kind = known[key]
            for one in item if isinstance(item, list) else [item]:
                pieces.append(_wrapped(place, _content(one, kind)))  # noqa: PERF401
    return b"".join(pieces)


def _content(value: Any, kind: str) -> bytes:
    if kind == "text":
        return str(value).encode()
    if kind == "SchemaOrFlag":
        flag = isinstance(value, bool)
        return number(2, int(value)) if flag else block(1, _message(value, "Schema"))
    return _message(value, kind)


def _wrapped(place: _Number, content: bytes) -> bytes:
    for one in reversed(place if isinstance(place, tuple) else (place,)):
        content = block(one, content)
    return content


def _extension(value: Any) -> bytes:
    """An extension's value is YAML, and JSON is YAML."""
    return block(2, msgspec.json.encode(value))
