"""Strategic merge patch: a merge patch that knows which lists are merged, and by which key.

Directives inside a patch: `$patch: replace|delete|merge` beside the fields of a map,
`$retainKeys`, and, named after a list beside them, `$setElementOrder/LIST` and
`$deleteFromPrimitiveList/LIST`.
"""

from typing import Any

from captfctl.cluster.errors import BadRequest
from captfctl.embedded.schemas import Node
from captfctl.model.resource import Document

PATCH = "$patch"
RETAIN = "$retainKeys"
ORDER = "$setElementOrder/"
DELETE_PRIMITIVES = "$deleteFromPrimitiveList/"


def strategic_merge(target: Document, patch: Any, type_: Node) -> Document:
    """The target with the patch laid over it. Raises `BadRequest` for a malformed patch."""
    if not isinstance(patch, dict):
        raise BadRequest("a strategic merge patch is an object")
    return _map(target, patch, type_)


def _map(target: Document, patch: Document, type_: Node) -> Document:
    directive = patch.get(PATCH)
    if directive == "replace":
        replacement: Document = _plain(patch)
        return replacement
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise BadRequest(f"unknown directive {PATCH}: {directive}")
    merged = dict(target)
    if RETAIN in patch:
        kept = _listed(patch, RETAIN)
        merged = {key: value for key, value in merged.items() if key in kept}
    for key, value in patch.items():
        if _directive(key):
            continue
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _value(merged.get(key), value, type_.value_of(key))
    return _list_directives(merged, patch, type_)


def _value(target: Any, patch: Any, type_: Node) -> Any:
    if isinstance(patch, dict):
        if not isinstance(target, dict) or "replace" in type_.strategies:
            return _map({}, patch, type_)
        return _map(target, patch, type_)
    if isinstance(patch, list) and "merge" in type_.strategies:
        return _list(target if isinstance(target, list) else [], patch, type_)
    return _plain(patch)


def _list(target: list[Any], patch: list[Any], type_: Node) -> list[Any]:
    key = type_.merge_key
    if not key:
        return target + [item for item in patch if item not in target]
    if any(isinstance(item, dict) and item.get(PATCH) == "replace" for item in patch):
        return [_plain(item) for item in patch if item != {PATCH: "replace"}]
    merged = list(target)
    for item in patch:
        if not isinstance(item, dict) or key not in item:
            raise BadRequest(f"an item of a merged list has no {key}")
        place = next((i for i, old in enumerate(merged) if _key(old, key) == item[key]), None)
        if item.get(PATCH) == "delete":
            merged = [old for old in merged if _key(old, key) != item[key]]
        elif place is None:
            merged.append(_map({}, item, type_.item))
        else:
            merged[place] = _map(merged[place], item, type_.item)
    return merged


def _list_directives(merged: Document, patch: Document, type_: Node) -> Document:
    for directive in patch:
        if directive.startswith(DELETE_PRIMITIVES):
            name, gone = directive.removeprefix(DELETE_PRIMITIVES), _listed(patch, directive)
            if isinstance(merged.get(name), list):
                merged[name] = [item for item in merged[name] if item not in gone]
    for directive in patch:
        name = directive.removeprefix(ORDER)
        if directive.startswith(ORDER) and isinstance(merged.get(name), list):
            order = _listed(patch, directive)
            merged[name] = _ordered(merged[name], order, type_.value_of(name).merge_key)
    return merged


def _listed(patch: Document, directive: str) -> list[Any]:
    """What a directive lists. Raises `BadRequest`."""
    listed = patch[directive]
    if not isinstance(listed, list):
        raise BadRequest(f"directive {directive} must be a list")
    return listed


def _ordered(items: list[Any], order: list[Any], key: str) -> list[Any]:
    """The items named in `order` in that order; all others stay where they are."""
    names = [_key(entry, key) for entry in order]
    named = [item for item in items if _key(item, key) in names]
    named.sort(key=lambda item: names.index(_key(item, key)))
    queue = iter(named)
    return [next(queue) if _key(item, key) in names else item for item in items]


def _directive(key: str) -> bool:
    return key in (PATCH, RETAIN) or key.startswith((ORDER, DELETE_PRIMITIVES))


def _key(item: Any, key: str) -> Any:
    return item.get(key) if key and isinstance(item, dict) else item


def _plain(value: Any) -> Any:
    """A new value: without the patch's directives and nulls."""
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items() if v is not None and not _directive(k)}
    if isinstance(value, list):
        return [_plain(item) for item in value if not (isinstance(item, dict) and PATCH in item)]
    return value
