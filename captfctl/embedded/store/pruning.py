"""Custom resources made to fit their schema: unknown fields removed, absent ones filled in."""

import copy
from typing import Any

from captfctl.embedded.schemas import Node
from captfctl.embedded.store.violations import child
from captfctl.model.resource import Document

_EMBEDDED = ("apiVersion", "kind", "metadata")


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
            key in keep or node.preserve or node.anything or (node.metadata and key in _EMBEDDED)
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
