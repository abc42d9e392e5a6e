"""Structural schemas of custom resources, compiled: pruning, defaulting, and what to validate by.

A schema node is compiled once into a `Node`. Validation is in `validation`, CEL in `rules`.
"""

import copy
from dataclasses import dataclass, field
from typing import Any

import re2

from captfctl.embedded.store.violations import child
from captfctl.model.resource import Document

Schema = dict[str, Any]
_NOTHING = object()
_EMBEDDED = ("apiVersion", "kind", "metadata")


@dataclass(slots=True, eq=False)
class Rule:
    """One entry of `x-kubernetes-validations`."""

    expression: str
    message: str = ""
    message_expression: str = ""
    reason: str = "FieldValueInvalid"
    field_path: str = ""
    optional_old: bool = False

    @property
    def transition(self) -> bool:
        """It compares with the object as it was."""
        return "oldSelf" in self.expression


@dataclass(slots=True, eq=False)
class Node:
    """One node of a compiled schema. Keywords that are absent are `None` or empty."""

    type: str = ""
    nullable: bool = False
    int_or_string: bool = False
    preserve: bool = False
    embedded: bool = False
    properties: dict[str, "Node"] = field(default_factory=dict)
    additional: "Node | None" = None
    anything: bool = False
    items: "Node | None" = None
    required: tuple[str, ...] = ()
    default: Any = _NOTHING
    enum: list[Any] | None = None
    pattern: str = ""
    matcher: Any = None
    format: str = ""
    limits: dict[str, Any] = field(default_factory=dict)
    list_type: str = ""
    map_keys: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    all_of: tuple["Node", ...] = ()
    any_of: tuple["Node", ...] = ()
    one_of: tuple["Node", ...] = ()
    not_: "Node | None" = None
    has_rules: bool = False

    @property
    def has_default(self) -> bool:
        return self.default is not _NOTHING

    def of(self, key: str) -> "Node | None":
        """The node of a property or of a map's entry."""
        return self.properties.get(key, self.additional)

    def list_key(self, item: Document) -> tuple[Any, ...]:
        """What identifies an item of a list of type `map`; absent keys count with their default."""
        properties = self.items.properties if self.items else {}
        values = []
        for key in self.map_keys:
            node = properties.get(key)
            fallback = node.default if node is not None and node.has_default else None
            values.append(item.get(key, fallback))
        return tuple(values)


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


def compile_schema(schema: Schema) -> Node:
    """Raises `re2.error` for a pattern that RE2 does not know."""
    node = Node(
        type=schema.get("type", ""),
        nullable=bool(schema.get("nullable")),
        int_or_string=bool(schema.get("x-kubernetes-int-or-string")),
        preserve=bool(schema.get("x-kubernetes-preserve-unknown-fields")),
        embedded=bool(schema.get("x-kubernetes-embedded-resource")),
        properties={k: compile_schema(v) for k, v in (schema.get("properties") or {}).items()},
        required=tuple(schema.get("required") or ()),
        default=schema.get("default", _NOTHING),
        enum=schema.get("enum"),
        pattern=schema.get("pattern", ""),
        format=schema.get("format", ""),
        limits={key: schema[key] for key in _LIMITS if schema.get(key) is not None},
        list_type=schema.get("x-kubernetes-list-type", ""),
        map_keys=tuple(schema.get("x-kubernetes-list-map-keys") or ()),
        rules=tuple(_rule(entry) for entry in schema.get("x-kubernetes-validations") or ()),
        all_of=_several(schema, "allOf"),
        any_of=_several(schema, "anyOf"),
        one_of=_several(schema, "oneOf"),
    )
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
    return tuple(compile_schema(entry) for entry in schema.get(keyword) or ())


def _rule(entry: Schema) -> Rule:
    return Rule(
        expression=entry.get("rule", ""),
        message=entry.get("message", ""),
        message_expression=entry.get("messageExpression", ""),
        reason=entry.get("reason") or "FieldValueInvalid",
        field_path=entry.get("fieldPath", ""),
        optional_old=bool(entry.get("optionalOldSelf")),
    )


def prune(
    node: Node, value: Any, path: str, unknown: list[str], keep: tuple[str, ...] = ()
) -> None:
    """Remove, in place, the fields that the schema does not specify; `unknown` gets their paths.

    `keep` names fields of this level that are not the schema's business.
    """
    if isinstance(value, dict):
        _prune_object(node, value, path, unknown, keep)
    elif isinstance(value, list) and node.items is not None:
        for index, item in enumerate(value):
            prune(node.items, item, child(path, index), unknown)


def _prune_object(
    node: Node, value: Document, path: str, unknown: list[str], keep: tuple[str, ...]
) -> None:
    for key in list(value):
        below = node.of(key)
        if below is not None and key not in keep:
            prune(below, value[key], child(path, key), unknown)
        elif not (
            key in keep or node.preserve or node.anything or (node.embedded and key in _EMBEDDED)
        ):
            unknown.append(child(path, key))
            del value[key]


def apply_defaults(node: Node, value: Any) -> None:
    """Fill in, in place, the defaults of absent fields; a null that may not be one is absent."""
    if isinstance(value, dict):
        for key in [key for key, item in value.items() if item is None]:
            below = node.of(key)
            if below is not None and not below.nullable:
                del value[key]
        for key, below in node.properties.items():
            if below.has_default and key not in value:
                value[key] = copy.deepcopy(below.default)
            if key in value:
                apply_defaults(below, value[key])
        if node.additional is not None:
            for key, item in value.items():
                if key not in node.properties:
                    apply_defaults(node.additional, item)
    elif isinstance(value, list) and node.items is not None:
        for item in value:
            apply_defaults(node.items, item)
