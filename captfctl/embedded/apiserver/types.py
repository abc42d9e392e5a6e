"""What an object's schema says about merging: which maps and lists are merged, and by what.

One view over both sources of schemas, the built-in kinds' and the CustomResourceDefinitions'.
"""

from collections.abc import Mapping
from enum import Enum
from functools import cached_property
from typing import Any

from captfctl.embedded.apiserver import builtin

Schema = Mapping[str, Any]

LIST_TYPE = "x-kubernetes-list-type"
LIST_KEYS = "x-kubernetes-list-map-keys"
MAP_TYPE = "x-kubernetes-map-type"
MERGE_KEY = "x-kubernetes-patch-merge-key"
STRATEGY = "x-kubernetes-patch-strategy"
PRESERVE = "x-kubernetes-preserve-unknown-fields"
EMBEDDED = "x-kubernetes-embedded-resource"


class ListKind(Enum):
    """How two versions of a list become one."""

    ATOMIC = "atomic"
    """As a whole."""
    SET = "set"
    """Item by item, an item being its own identity."""
    MAP = "map"
    """Item by item, identified by some of its fields."""


class Type:
    """The schema of one value. An empty schema means that nothing is known: anything goes."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.atomic_map = schema.get(MAP_TYPE) == "atomic"
        self.list_kind = ListKind(schema.get(LIST_TYPE, "atomic"))
        self.list_keys: tuple[str, ...] = tuple(schema.get(LIST_KEYS, ()))
        """The fields that identify an item of a list of kind MAP."""
        self.open = not schema or bool(schema.get(PRESERVE))
        """Fields that are not listed are allowed and kept."""
        self.fields: Mapping[str, Schema] = schema.get("properties", {})
        self._children: dict[str, Type] = {}

    def has_field(self, name: str) -> bool:
        """Whether `name` is a named field, as opposed to a key of a map."""
        return name in self.fields

    def child(self, name: str) -> "Type":
        """The type of the value under `name`."""
        if name not in self.fields:
            return self.values
        child = self._children.get(name)
        if child is None:
            child = self._children[name] = of(self.fields[name])
        return child

    @cached_property
    def values(self) -> "Type":
        """The type of a map's values."""
        additional = self.schema.get("additionalProperties")
        return of(additional) if isinstance(additional, Mapping) else UNKNOWN

    @cached_property
    def items(self) -> "Type":
        """The type of a list's items."""
        return of(self.schema.get("items") or {})

    def default(self, field: str) -> Any:
        return self.child(field).schema.get("default")

    @property
    def merge_key(self) -> str:
        """The field that identifies a list's items in strategic merge patches; empty: none does."""
        return str(self.schema.get(MERGE_KEY, ""))

    @property
    def strategies(self) -> frozenset[str]:
        """`merge`, `replace`, `retainKeys` (strategic merge patches)."""
        return frozenset(filter(None, str(self.schema.get(STRATEGY, "")).split(",")))


UNKNOWN = Type({})


def of(schema: Schema) -> Type:
    """The type for a schema, references followed."""
    name = schema.get("$ref")
    if isinstance(name, str):
        schema = {**builtin.schemas()[name], **{k: v for k, v in schema.items() if k != "$ref"}}
    if schema.get(EMBEDDED):
        return of_object(schema)
    return Type(schema)


def of_object(schema: Schema) -> Type:
    """The type of a whole API object: a CustomResourceDefinition leaves the common fields out."""
    common = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"$ref": builtin.OBJECT_META},
    }
    own = {key: value for key, value in schema.items() if key != EMBEDDED}
    return Type({**own, "type": "object", "properties": {**schema.get("properties", {}), **common}})


def of_kind(group: str, version: str, kind: str, schema: Schema | None) -> Type:
    """The type of a kind's objects: `schema` is its CustomResourceDefinition's, if it has one."""
    name = builtin.schema_name(group, version, kind)
    return of({"$ref": name}) if name else of_object(schema or {PRESERVE: True})
