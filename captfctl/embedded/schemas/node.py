"""One value of an object as its schema describes it: what all schemas are compiled into."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from captfctl.model.resource import Document

Schema = dict[str, Any]
_NOTHING = object()
_TYPE = ("apiVersion", "kind")
QUANTITY = "quantity"
"""The format of a value that is a text or any number, as `cpu: 0.5`."""


class ListType(StrEnum):
    """How two versions of a list become one."""

    ATOMIC = "atomic"
    """As a whole."""
    SET = "set"
    """Item by item, an item being its own identity."""
    MAP = "map"
    """Item by item, identified by some of its fields."""


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
    """One node of a compiled schema. Keywords that are absent are `None` or empty.

    A node without a type, properties or anything else knows nothing: every value is right.
    """

    type: str = ""
    nullable: bool = False
    int_or_string: bool = False
    preserve: bool = False
    """Fields that are not listed are kept."""
    metadata: "Node | None" = None
    """The node of `metadata`, where the value is an object with an API type and a name."""
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
    list_type: ListType = ListType.ATOMIC
    map_keys: tuple[str, ...] = ()
    """The fields that identify an item of a list of type `map`."""
    atomic_map: bool = False
    """The fields of the value are set and owned as a whole."""
    merge_key: str = ""
    """The field that identifies an item in a strategic merge patch; empty: none does."""
    strategies: frozenset[str] = frozenset()
    """What strategic merge patches do to the value: `merge`, `replace`, `retainKeys`."""
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
        """The node of a property or of a map's entry; None when the schema does not have it."""
        return self.properties.get(key, self.additional)

    def is_field(self, key: str) -> bool:
        """Whether `key` is a named field, as opposed to a key of a map."""
        named = self.metadata is not None and (key == "metadata" or key in _TYPE)
        return named or key in self.properties

    def value_of(self, key: str) -> "Node":
        """What is known about the value under `key`: nothing where the schema says nothing."""
        if self.metadata is not None:
            if key == "metadata":
                return self.metadata
            if key in _TYPE:
                return _TEXT
        return self.of(key) or UNKNOWN

    @property
    def item(self) -> "Node":
        """What is known about a list's items."""
        return self.items or UNKNOWN

    def key_default(self, key: str) -> Any:
        """What an item of a list of type `map` counts as having where this key is absent."""
        node = self.items.properties.get(key) if self.items else None
        return node.default if node is not None and node.has_default else None

    def list_key(self, item: Document) -> tuple[Any, ...]:
        """What identifies an item of a list of type `map`."""
        return tuple(item[k] if k in item else self.key_default(k) for k in self.map_keys)


UNKNOWN = Node()
_TEXT = Node(type="string")
