"""Whether a definition's schema is one: structural, with patterns, rules and defaults that work."""

from collections.abc import Iterator
from functools import lru_cache

import msgspec
import re2

from captfctl.cluster.errors import Cause
from captfctl.embedded.schemas import Node, Schema, compile_schema
from captfctl.embedded.store.rules import rule_problems
from captfctl.embedded.store.validation import validate
from captfctl.embedded.store.violations import (
    child,
    forbidden,
    invalid,
    keyed,
    required,
    unsupported,
)

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_CHOICES = {
    "x-kubernetes-list-type": ("atomic", "map", "set"),
    "x-kubernetes-map-type": ("atomic", "granular"),
}
_KEPT = 64
"""Schemas whose check and node are kept."""
_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_INT_OR_STRING = "x-kubernetes-int-or-string"


def check_schema(schema: Schema, path: str) -> tuple[Cause, ...]:
    """Every reason why the schema cannot be used."""
    return _checked(msgspec.json.encode(schema), path)


@lru_cache(maxsize=_KEPT)
def compiled(text: bytes) -> Node:
    """The node of a whole object's schema, given as JSON: each change of a definition, also of its
    status alone, asks for it again. Shared: do not change it."""
    return compile_schema(msgspec.json.decode(text), root=True)


@lru_cache(maxsize=_KEPT)
def _checked(text: bytes, path: str) -> tuple[Cause, ...]:
    return tuple(_causes(msgspec.json.decode(text), path))


def _causes(schema: Schema, path: str) -> list[Cause]:
    causes = [] if schema.get("type") == "object" else [_root_type(schema, path)]
    causes += _structure(schema, path)
    if causes:
        return causes
    node = compile_schema(schema)
    return rule_problems(node, path) + list(_defaults(node, path))


def _root_type(schema: Schema, path: str) -> Cause:
    return invalid(child(path, "type"), schema.get("type", ""), "must be object at the root")


def _structure(schema: Schema, path: str) -> Iterator[Cause]:
    kind = schema.get("type", "")
    if kind:
        if kind not in _TYPES:
            yield unsupported(child(path, "type"), kind, _TYPES)
    elif not schema.get(_PRESERVE) and not schema.get(_INT_OR_STRING):
        yield required(child(path, "type"), "must not be empty for specified object fields")
    if kind == "array" and not isinstance(schema.get("items"), dict):
        yield required(child(path, "items"), "must be specified")
    if schema.get("properties") and schema.get("additionalProperties"):
        detail = "additionalProperties and properties are mutual exclusive"
        yield forbidden(child(path, "additionalProperties"), detail)
    if pattern := schema.get("pattern"):
        try:
            re2.compile(pattern)
        except re2.error as error:
            detail = f"must be a valid regular expression: {error}"
            yield invalid(child(path, "pattern"), pattern, detail)
    for keyword, choices in _CHOICES.items():
        if (chosen := schema.get(keyword)) is not None and chosen not in choices:
            yield unsupported(child(path, keyword), chosen, choices)
    if schema.get("x-kubernetes-list-type") == "map" and not schema.get(
        "x-kubernetes-list-map-keys"
    ):
        yield required(child(path, "x-kubernetes-list-map-keys"), "must not be empty")
    yield from _below(schema, path)


def _below(schema: Schema, path: str) -> Iterator[Cause]:
    for name, part in (schema.get("properties") or {}).items():
        if isinstance(part, dict | None):
            yield from _structure(part or {}, keyed(child(path, "properties"), name))
    for keyword in ("items", "additionalProperties"):
        if isinstance(part := schema.get(keyword), dict):
            yield from _structure(part, child(path, keyword))


def _defaults(node: Node, path: str) -> Iterator[Cause]:
    if node.has_default:
        causes: list[Cause] = []
        validate(node, node.default, "", causes)
        for cause in causes:
            yield Cause(child(path, "default"), cause.message, cause.reason)
    for name, below in node.properties.items():
        yield from _defaults(below, keyed(child(path, "properties"), name))
    for keyword, part in (("items", node.items), ("additionalProperties", node.additional)):
        if part is not None:
            yield from _defaults(part, child(path, keyword))
