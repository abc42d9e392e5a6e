"""The schema of a module's variables, which its image may carry as a label
(module-contract.md: The schema of variables).

A small subset of JSON Schema. The check follows Terraform's own conversions, so that whatever it
refuses would have failed in the run.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from captfctl.errors import nearest
from captfctl.terraform.contract.jsontext import Json, NotJson, Number, parse
from captfctl.terraform.contract.variables import UserVariable, UserVariables

LABEL = "io.captf.variables-schema"
MAX_LABEL = 32_768
_MOST_NAMED = 10

_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_KEYS = frozenset(
    {"type", "properties", "required", "items", "prefixItems", "additionalProperties"}
)


class SchemaType(StrEnum):
    """The types of the subset."""

    STRING = "string"
    NUMBER = "number"
    BOOLEAN = "boolean"
    ARRAY = "array"
    OBJECT = "object"


@dataclass(frozen=True, kw_only=True)
class VariableSchema:
    """One node; `type` None accepts anything."""

    type: SchemaType | None = None
    properties: dict[str, "VariableSchema"] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    items: "VariableSchema | None" = None
    prefix_items: tuple["VariableSchema", ...] | None = None
    additional: "VariableSchema | bool" = True


class VariableProblem(NamedTuple):
    """What is wrong with one user variable: `message` names it, and has no value."""

    variable: str
    message: str

    def __str__(self) -> str:
        return self.message


class _Malformed(Exception):
    """The label is no schema of the subset."""


def parse_label(label: str) -> VariableSchema | None:
    """The schema of an image's label; None for no label and for one that is not valid: an image
    that declares nothing usable is not checked."""
    if not label or len(label.encode()) > MAX_LABEL:
        return None
    try:
        schema = _node(parse(label))
    except (NotJson, _Malformed):
        return None
    return schema if schema.type is SchemaType.OBJECT else None


def variable_problems(
    schema: VariableSchema, variables: UserVariables, *, partial: bool = False
) -> list[VariableProblem]:
    """Every problem, sorted by variable.

    `partial`: not every source of variables is known, so that none counts as missing.
    """
    names = set(variables) | (set() if partial else set(schema.required))
    return [
        VariableProblem(name, message)
        for name in sorted(names)
        for message in _variable(schema, name, variables.get(name))
    ]


def _variable(schema: VariableSchema, name: str, variable: UserVariable | None) -> Iterator[str]:
    shown = f'variable "{name}"'
    if variable is None:
        yield f"{shown} is required by the module image and is not set"
        return
    declared = schema.properties.get(name)
    if declared is None:
        if schema.additional is False:
            yield f"{shown} is not declared by the module image{_what_is(schema, name)}"
            return
        declared = schema.additional if isinstance(schema.additional, VariableSchema) else None
    if declared is not None:
        yield from _value(declared, variable.value, shown, text=variable.text)


def _what_is(schema: VariableSchema, name: str) -> str:
    declared = sorted(schema.properties)
    if near := nearest(name, declared):
        return f': did you mean "{near}"?'
    return f", which declares {', '.join(declared)}" if 0 < len(declared) <= _MOST_NAMED else ""


def _value(schema: VariableSchema, value: Json, path: str, *, text: bool = False) -> Iterator[str]:
    if value is None or schema.type is None:
        return
    if schema.type in (SchemaType.ARRAY, SchemaType.OBJECT) and text:
        yield f"{path} must be {_named(schema.type)}: use format JSON for its source"
    elif not _fits(schema.type, value):
        yield f"{path} must be {_named(schema.type)}, got {_kind(value)}"
    elif isinstance(value, list):
        yield from _array(schema, value, path)
    elif isinstance(value, dict):
        yield from _object(schema, value, path)


def _array(schema: VariableSchema, value: list[Json], path: str) -> Iterator[str]:
    if schema.prefix_items is not None:
        if len(value) != len(schema.prefix_items):
            wanted = len(schema.prefix_items)
            yield f"{path} must have {wanted} elements, got {len(value)}"
            return
        for index, (element, item) in enumerate(zip(schema.prefix_items, value, strict=True)):
            yield from _value(element, item, f"{path}[{index}]")
    elif schema.items is not None:
        for index, item in enumerate(value):
            yield from _value(schema.items, item, f"{path}[{index}]")


def _object(schema: VariableSchema, value: dict[str, Json], path: str) -> Iterator[str]:
    for name in schema.required:
        if name not in value:
            yield f"{path}.{name} is required and is not set"
    for name in sorted(value):
        declared = schema.properties.get(name)
        if declared is None and isinstance(schema.additional, VariableSchema):
            declared = schema.additional
        # An attribute that is not declared is dropped by Terraform.
        if declared is not None:
            yield from _value(declared, value[name], f"{path}.{name}")


def _fits(wanted: SchemaType, value: Json) -> bool:
    match wanted:
        case SchemaType.ARRAY:
            return isinstance(value, list)
        case SchemaType.OBJECT:
            return isinstance(value, dict)
        case SchemaType.STRING:
            return isinstance(value, str | bool | Number)
        case SchemaType.NUMBER:
            if isinstance(value, str):
                return _DECIMAL.fullmatch(value) is not None
            return isinstance(value, Number)
        case SchemaType.BOOLEAN:
            return isinstance(value, bool) or value in ("true", "false")


def _kind(value: Json) -> str:
    match value:
        case bool():
            return "a boolean"
        case Number() | int():
            return "a number"
        case str():
            return "a string"
        case list():
            return "an array"
        case dict():
            return "an object"
    return "null"


def _named(kind: SchemaType) -> str:
    article = "an" if kind.value[0] in "ao" else "a"
    return f"{article} {kind.value}"


def _node(value: Json) -> VariableSchema:
    if not isinstance(value, dict) or not value.keys() <= _KEYS:
        raise _Malformed
    items, prefix = value.get("items"), value.get("prefixItems")
    return VariableSchema(
        type=_type(value.get("type")),
        properties=_properties(value.get("properties")),
        required=_required(value.get("required")),
        items=None if items is None else _node(items),
        prefix_items=None if prefix is None else tuple(_node(item) for item in _list(prefix)),
        additional=_additional(value.get("additionalProperties", True)),
    )


def _type(value: Json) -> SchemaType | None:
    if value is None:
        return None
    if not isinstance(value, str) or value not in set(SchemaType):
        raise _Malformed
    return SchemaType(value)


def _properties(value: Json) -> dict[str, VariableSchema]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _Malformed
    return {name: _node(node) for name, node in value.items()}


def _required(value: Json) -> tuple[str, ...]:
    names = [] if value is None else _list(value)
    texts = tuple(name for name in names if isinstance(name, str))
    if len(texts) != len(names):
        raise _Malformed
    return texts


def _additional(value: Json) -> VariableSchema | bool:
    return value if isinstance(value, bool) else _node(value)


def _list(value: Json) -> list[Json]:
    if not isinstance(value, list):
        raise _Malformed
    return value
