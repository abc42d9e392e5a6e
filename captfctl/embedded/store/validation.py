"""Validation of custom resources by their compiled schema, without CEL.

With the object as it was, only what changed is checked: an object that was stored under looser
rules can still be changed elsewhere, as on the real server.
"""

from collections.abc import Callable
from typing import Any

from captfctl.cluster.errors import Cause
from captfctl.embedded.schemas.node import QUANTITY, ListType, Node
from captfctl.embedded.store.formats import matches_format
from captfctl.embedded.store.violations import (
    child,
    duplicate,
    invalid,
    required,
    shown,
    too_long,
    too_many,
    unsupported,
    wrong_type,
)

ABSENT: Any = object()
_ROOT = "<nil>"


def validate(node: Node, value: Any, path: str, causes: list[Cause], old: Any = ABSENT) -> None:
    """Append to `causes` every violation in `value` that was not already in `old`."""
    if old is not ABSENT and value == old:
        return
    if value is None:
        if not (node.nullable or _free(node)):
            causes.append(wrong_type(path or _ROOT, value, node.type))
        return
    if not _right_type(node, value):
        wanted = "integer or string" if node.int_or_string else node.type
        causes.append(wrong_type(path or _ROOT, value, wanted))
        return
    if node.enum is not None and not any(_same(value, option) for option in node.enum):
        causes.append(unsupported(path, value, node.enum))
    if isinstance(value, str):
        _string(node, value, path, causes)
    elif isinstance(value, dict):
        _object(node, value, path, causes, old)
    elif isinstance(value, list):
        _array(node, value, path, causes, old)
    elif not isinstance(value, bool):
        _number(node, value, path, causes)
    _combinations(node, value, path, causes)


def _free(node: Node) -> bool:
    return not node.type and not node.int_or_string


def _same(value: Any, option: Any) -> bool:
    """Equality of JSON values: true is not 1."""
    return bool(value == option) and isinstance(value, bool) == isinstance(option, bool)


def _right_type(node: Node, value: Any) -> bool:
    whole = isinstance(value, int) and not isinstance(value, bool)
    if node.int_or_string:
        number = whole or (isinstance(value, float) and node.format == QUANTITY)
        return number or isinstance(value, str)
    match node.type:
        case "":
            return True
        case "string":
            return isinstance(value, str)
        case "integer":
            return whole or (isinstance(value, float) and value.is_integer())
        case "number":
            return whole or isinstance(value, float)
        case "boolean":
            return isinstance(value, bool)
        case "array":
            return isinstance(value, list)
        case _:
            return isinstance(value, dict)


def _string(node: Node, value: str, path: str, causes: list[Cause]) -> None:
    if not node.limits and not node.pattern and not node.format:
        return
    length = len(value)
    if length > node.limits.get("maxLength", length):
        causes.append(too_long(path, node.limits["maxLength"]))
    if length < node.limits.get("minLength", 0):
        least = node.limits["minLength"]
        causes.append(invalid(path, value, f"{path} in body should be at least {least} chars long"))
    if node.pattern and not node.matcher.search(value):
        causes.append(invalid(path, value, f"{path} in body should match '{node.pattern}'"))
    if node.format and not matches_format(node.format, value):
        detail = f"{path} in body must be of type {node.format}: {shown(value)}"
        causes.append(invalid(path, value, detail))


def _number(node: Node, value: float, path: str, causes: list[Cause]) -> None:
    limits = node.limits
    if not limits:
        return
    low, high, step = limits.get("minimum"), limits.get("maximum"), limits.get("multipleOf")
    above, below = limits.get("exclusiveMinimum"), limits.get("exclusiveMaximum")
    if low is not None and (value <= low if above else value < low):
        least = "greater than" if above else "greater than or equal to"
        causes.append(invalid(path, value, f"{path} in body should be {least} {low}"))
    if high is not None and (value >= high if below else value > high):
        most = "less than" if below else "less than or equal to"
        causes.append(invalid(path, value, f"{path} in body should be {most} {high}"))
    if step and not (value / step).is_integer():
        causes.append(invalid(path, value, f"{path} in body should be a multiple of {step}"))


def _object(node: Node, value: dict[str, Any], path: str, causes: list[Cause], old: Any) -> None:
    causes.extend(required(child(path, key)) for key in node.required if key not in value)
    if node.limits:
        most = node.limits.get("maxProperties")
        least = node.limits.get("minProperties")
        if most is not None and len(value) > most:
            causes.append(too_many(path, len(value), most))
        if least is not None and len(value) < least:
            detail = f"{path} in body should have at least {least} properties"
            causes.append(invalid(path, value, detail))
    before = old if isinstance(old, dict) else {}
    for key, item in value.items():
        below = node.of(key)
        if below is not None:
            validate(below, item, child(path, key), causes, before.get(key, ABSENT))


def _array(node: Node, value: list[Any], path: str, causes: list[Cause], old: Any) -> None:
    most, least = node.limits.get("maxItems"), node.limits.get("minItems")
    if most is not None and len(value) > most:
        causes.append(too_many(path, len(value), most))
    if least is not None and len(value) < least:
        detail = f"{path} in body should have at least {least} items"
        causes.append(invalid(path, len(value), detail))
    if node.items is None:
        return
    before = old_item(node, old)
    for index, item in enumerate(value):
        validate(node.items, item, child(path, index), causes, before(item))
    if node.list_type is not ListType.ATOMIC or node.limits.get("uniqueItems"):
        _unique(node, value, path, causes)


def old_item(node: Node, old: Any) -> Callable[[Any], Any]:
    """What an item of a list was before: only items of a list of type `map` can be found again."""
    if node.list_type is not ListType.MAP or not isinstance(old, list):
        return lambda _item: ABSENT
    known = {}
    for item in old:
        if isinstance(item, dict):
            known[shown(node.list_key(item))] = item
    return lambda item: (
        known.get(shown(node.list_key(item)), ABSENT) if isinstance(item, dict) else ABSENT
    )


def _unique(node: Node, value: list[Any], path: str, causes: list[Cause]) -> None:
    seen = set()
    for index, item in enumerate(value):
        identity: Any = item
        if node.list_type is ListType.MAP:
            if not isinstance(item, dict):
                continue
            identity = dict(zip(node.map_keys, node.list_key(item), strict=True))
        text = shown(identity)
        if text in seen:
            causes.append(duplicate(child(path, index), identity))
        seen.add(text)


def _combinations(node: Node, value: Any, path: str, causes: list[Cause]) -> None:
    for part in node.all_of:
        validate(part, value, path, causes)
    if node.any_of and not any(_valid(part, value, path) for part in node.any_of):
        detail = f'"{path}" must validate at least one schema (anyOf)'
        causes.append(invalid(path, value, detail))
    if node.one_of:
        count = sum(_valid(part, value, path) for part in node.one_of)
        if count != 1:
            found = f"Found {count} valid alternatives" if count else "Found none valid"
            detail = f'"{path}" must validate one and only one schema (oneOf). {found}'
            causes.append(invalid(path, value, detail))
    if node.not_ is not None and _valid(node.not_, value, path):
        causes.append(invalid(path, value, f'"{path}" must not validate the schema (not)'))


def _valid(node: Node, value: Any, path: str) -> bool:
    causes: list[Cause] = []
    validate(node, value, path, causes)
    return not causes
