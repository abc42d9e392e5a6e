"""Schemas compiled into nodes: the built-in types' and the CustomResourceDefinitions'."""

from functools import cache
from typing import Any

import re2

from captfctl.embedded.schemas import builtin
from captfctl.embedded.schemas.builtin import Field, Form, Scalar, Shape
from captfctl.embedded.schemas.node import QUANTITY, ListType, Node, Rule, Schema

_LIMITS = (
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
)


def compile_schema(schema: Schema, *, root: bool = False) -> Node:
    """A definition's schema, or a part of it. Raises `re2.error` for a pattern that RE2 refuses.

    `root`: it is a whole object's, which has an API type and metadata whatever the schema says.
    """
    embedded = root or schema.get("x-kubernetes-embedded-resource")
    node = Node(
        type=schema.get("type", ""),
        nullable=bool(schema.get("nullable")),
        int_or_string=bool(schema.get("x-kubernetes-int-or-string")),
        preserve=bool(schema.get("x-kubernetes-preserve-unknown-fields")),
        metadata=node_of(builtin.OBJECT_META) if embedded else None,
        properties={
            k: compile_schema(v or {}) for k, v in (schema.get("properties") or {}).items()
        },
        required=tuple(schema.get("required") or ()),
        enum=schema.get("enum"),
        pattern=schema.get("pattern", ""),
        format=schema.get("format", ""),
        limits={key: schema[key] for key in _LIMITS if schema.get(key) is not None},
        list_type=ListType(schema.get("x-kubernetes-list-type", "atomic")),
        map_keys=tuple(schema.get("x-kubernetes-list-map-keys") or ()),
        atomic_map=schema.get("x-kubernetes-map-type") == "atomic",
        rules=tuple(_rule(entry) for entry in schema.get("x-kubernetes-validations") or ()),
        all_of=_several(schema, "allOf"),
        any_of=_several(schema, "anyOf"),
        one_of=_several(schema, "oneOf"),
    )
    if "default" in schema:
        node.default = schema["default"]
    if node.pattern:
        node.matcher = re2.compile(node.pattern)
    if isinstance(schema.get("items"), dict):
        node.items = compile_schema(schema["items"])
    if isinstance(additional := schema.get("additionalProperties"), dict):
        node.additional = compile_schema(additional)
    node.anything = additional is True
    if isinstance(schema.get("not"), dict):
        node.not_ = compile_schema(schema["not"])
    below = [n for n in (*node.properties.values(), node.items, node.additional) if n is not None]
    node.has_rules = bool(node.rules) or any(n.has_rules for n in below)
    return node


def _several(schema: Schema, keyword: str) -> tuple[Node, ...]:
    return tuple(compile_schema(entry or {}) for entry in schema.get(keyword) or ())


def _rule(entry: Schema) -> Rule:
    return Rule(
        expression=entry.get("rule", ""),
        message=entry.get("message", ""),
        message_expression=entry.get("messageExpression", ""),
        reason=entry.get("reason") or "FieldValueInvalid",
        field_path=entry.get("fieldPath", ""),
        optional_old=bool(entry.get("optionalOldSelf")),
    )


_BUILTIN: dict[str, Node] = {}


def node_of(name: str) -> Node:
    """A built-in type as a node. Shared, and types may contain themselves: do not change it.

    It demands no fields: what a built-in kind must have, its own code in the store says.
    """
    node = _BUILTIN.get(name)
    if node is None:
        struct = builtin.struct(name)
        node = _BUILTIN[name] = Node(type="object", atomic_map=struct.atomic)
        node.properties = {key: _field_node(field) for key, field in struct.fields.items()}
    return node


def _field_node(field: Field) -> Node:
    node = _shape_node(field.shape)
    if field.shape.form is Form.LIST:
        return Node(
            type="array",
            items=node.items,
            list_type=ListType(field.list or "atomic"),
            map_keys=field.keys,
            merge_key=field.merge_key,
            strategies=frozenset(filter(None, field.strategy.split(","))),
        )
    if field.atomic:
        return Node(type="object", additional=node.additional, atomic_map=True)
    if field.default is not None:
        return Node(type=node.type, default=field.default)
    return node


@cache
def _shape_node(shape: Shape) -> Node:
    if shape.form is Form.STRUCT:
        return node_of(shape.name)
    if shape.form is Form.SCALAR:
        return Node(**_SCALARS.get(shape.name, {"preserve": True}))
    assert shape.item is not None
    below = _shape_node(shape.item)
    if shape.form is Form.LIST:
        return Node(type="array", items=below)
    return Node(type="object", additional=below)


_SCALARS: dict[str, dict[str, Any]] = {
    Scalar.STRING: {"type": "string"},
    Scalar.BOOL: {"type": "boolean"},
    Scalar.INT32: {"type": "integer"},
    Scalar.INT64: {"type": "integer"},
    Scalar.DOUBLE: {"type": "number"},
    Scalar.BYTES: {"type": "string", "format": "byte"},
    Scalar.TIME: {"type": "string", "format": "date-time"},
    Scalar.MICRO_TIME: {"type": "string", "format": "date-time"},
    Scalar.QUANTITY: {"int_or_string": True, "format": QUANTITY},
    Scalar.INT_OR_STRING: {"int_or_string": True},
    Scalar.STRINGS: {"type": "array", "items": Node(type="string")},
}
