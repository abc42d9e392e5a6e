"""Sets of fields: what an applier owns, and how objects are compared and merged field by field.

A path is a tuple of elements in the spelling of `fieldsV1`: `f:name` a field or map key,
`k:{"name":"x"}` a list item by its keys, `v:"x"` a list item by its value. A set holds the paths
that are members; its parents are members only when they are in it themselves.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from captfctl.cluster.errors import Cause, Invalid
from captfctl.embedded.schemas import ListType, Node
from captfctl.model.resource import Document

Path = tuple[str, ...]
FieldSet = frozenset[Path]

NOTHING: FieldSet = frozenset()

_ABSENT: Any = object()


@dataclass(slots=True)
class Comparison:
    """What distinguishes a new object from an old one."""

    added: set[Path] = field(default_factory=set)
    modified: set[Path] = field(default_factory=set)
    removed: set[Path] = field(default_factory=set)

    @property
    def changed(self) -> FieldSet:
        """The fields that the new object adds or sets to another value."""
        return frozenset(self.added | self.modified)


def decode(fields: Document) -> FieldSet:
    """The set that a `fieldsV1` document stands for. Raises `ValueError` when it is none."""
    return frozenset(_decoded(fields, ()))


def _decoded(node: Any, path: Path) -> Iterator[Path]:
    if not isinstance(node, dict):
        raise ValueError("an element of a set of fields holds an object")  # noqa: TRY004
    for element, below in node.items():
        if element == ".":
            yield path
            continue
        _check_element(element)
        here = (*path, element)
        if below:
            yield from _decoded(below, here)
        else:
            yield here


def _check_element(element: str) -> None:
    kind, _, rest = element.partition(":")
    if kind == "k":
        msgspec.json.decode(rest, type=dict[str, Any])
    elif kind == "v":
        msgspec.json.decode(rest)
    elif kind not in ("f", "i"):
        raise ValueError(f"an element of a set of fields is not known: {element}")


def encode(members: FieldSet) -> Document:
    """The `fieldsV1` document of a set, in a fixed order."""
    root: Document = {}
    for path in sorted(members):
        node = root
        for element in path:
            node = node.setdefault(element, {})
        node["."] = {}
    return _trimmed(root)


def _trimmed(node: Document) -> Document:
    """Leaves are written as `{}`: only a member with something below it needs its dot."""
    below = {element: _trimmed(child) for element, child in node.items() if element != "."}
    if "." in node and below:
        return {".": {}, **below}
    return below


def path_text(path: Path) -> str:
    """A path as people read it: `.spec.containers[name="main"].image`."""
    return "".join(map(_element_text, path))


def _element_text(element: str) -> str:
    kind, _, rest = element.partition(":")
    match kind:
        case "f":
            return f".{rest}"
        case "k":
            keys = msgspec.json.decode(rest)
            return "[" + ",".join(f"{k}={_json(v)}" for k, v in keys.items()) + "]"
        case "v":
            return f"[={rest}]"
    return f"[{rest}]"


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def item_element(item: Any, type_: Node, path: Path) -> str:
    """The path element of an item of a merged list. Raises `Invalid` when it has no identity."""
    if type_.list_type is ListType.SET:
        return f"v:{_json(item)}"
    if not isinstance(item, dict):
        raise _no_identity(path, type_)
    keys = dict(sorted(zip(type_.map_keys, type_.list_key(item), strict=True)))
    keys = {key: value for key, value in keys.items() if value is not None}
    if not keys:
        raise _no_identity(path, type_)
    return f"k:{_json(keys)}"


def _no_identity(path: Path, type_: Node) -> Invalid:
    where = path_text(path).removeprefix(".")
    keys = ", ".join(type_.map_keys)
    message = f"every item needs {keys}: it tells the items apart"
    return Invalid(
        f"{where} has an item without its key", (Cause(where, message, "FieldValueRequired"),)
    )


def merged_list(value: Any, type_: Node) -> bool:
    """Whether `value` is a list whose items are fields of their own."""
    return isinstance(value, list) and type_.list_type is not ListType.ATOMIC


def merged_map(value: Any, type_: Node) -> bool:
    """Whether `value` is a map whose entries are fields of their own."""
    return isinstance(value, dict) and not type_.atomic_map


def fields_of(value: Any, type_: Node) -> FieldSet:
    """Every field that an applied object sets. Raises `Invalid`."""
    members: set[Path] = set()
    _collect(value, type_, (), members)
    return frozenset(members)


def _collect(value: Any, type_: Node, path: Path, members: set[Path]) -> None:
    if merged_map(value, type_):
        for key, child in value.items():
            here = (*path, f"f:{key}")
            _collect(child, type_.value_of(key), here, members)
            if child is None or child == {} or not type_.is_field(key):
                members.add(here)
    elif merged_list(value, type_):
        for item in value:
            here = (*path, item_element(item, type_, path))
            if here in members:
                where = path_text(here).removeprefix(".")
                raise Invalid(
                    f"{where} appears twice",
                    (Cause(where, "may appear only once", "FieldValueDuplicate"),),
                )
            _collect(item, type_.item, here, members)
            members.add(here)
    else:
        members.add(path)


def compare(old: Any, new: Any, type_: Node) -> Comparison:
    """The fields in which `new` differs from `old`."""
    found = Comparison()
    _compare(old, new, type_, (), found)
    return found


def _compare(old: Any, new: Any, type_: Node, path: Path, found: Comparison) -> None:
    if old is new:
        return
    if not _descend(old, new, type_, path, found):
        if old is _ABSENT:
            found.added.add(path)
        elif new is _ABSENT:
            found.removed.add(path)
        elif old != new or type(old) is not type(new):
            found.modified.add(path)
    elif old is _ABSENT:
        found.added.add(path)
    elif new is _ABSENT:
        found.removed.add(path)


def _descend(old: Any, new: Any, type_: Node, path: Path, found: Comparison) -> bool:
    """Compare what is inside two merged maps or lists; False when these are no such thing."""
    sides = [side for side in (old, new) if side is not _ABSENT and side is not None]
    if not any(sides):  # both empty: the difference between empty and absent counts
        return False
    if all(merged_map(side, type_) for side in sides):
        before, after = old if isinstance(old, dict) else {}, new if isinstance(new, dict) else {}
        for key in before.keys() | after.keys():
            _compare(
                before.get(key, _ABSENT),
                after.get(key, _ABSENT),
                type_.value_of(key),
                (*path, f"f:{key}"),
                found,
            )
        return True
    if all(merged_list(side, type_) for side in sides):
        before, after = _by_element(old, type_, path), _by_element(new, type_, path)
        for element in before.keys() | after.keys():
            _compare(
                before.get(element, _ABSENT),
                after.get(element, _ABSENT),
                type_.item,
                (*path, element),
                found,
            )
        return True
    return False


def _by_element(items: Any, type_: Node, path: Path) -> dict[str, Any]:
    """A list's items by path element; of repeated ones the first.

    An item without its key, which no valid object has, goes by its place.
    """
    found: dict[str, Any] = {}
    for place, item in enumerate(items if isinstance(items, list) else ()):
        try:
            element = item_element(item, type_, path)
        except Invalid:
            element = f"i:{place}"
        found.setdefault(element, item)
    return found


def with_named_parents(members: FieldSet, type_: Node) -> FieldSet:
    """The set together with the named fields that its paths lead through (not keys of maps)."""
    result = set(members)
    for path in members:
        current = type_
        for depth, element in enumerate(path[:-1], start=1):
            if element.startswith("f:"):
                name = element[2:]
                if current.is_field(name):
                    result.add(path[:depth])
                current = current.value_of(name)
            else:
                current = current.item
    return frozenset(result)


def without(value: Any, type_: Node, members: FieldSet, path: Path = ()) -> Any:
    """The value without the items in `members`; what gets empty by that disappears as well."""
    below = frozenset(p for p in members if len(p) > len(path) and p[: len(path)] == path)
    if not below:
        return value
    if merged_map(value, type_):
        kept = {
            key: without(child, type_.value_of(key), below, here)
            for key, child in value.items()
            if (here := (*path, f"f:{key}")) not in below
        }
        left = {k: child for k, child in kept.items() if child is not None or value[k] is None}
        return left or (None if path else {})
    if merged_list(value, type_):
        return [
            without(item, type_.item, below, here)
            for item in value
            if (here := (*path, item_element(item, type_, path))) not in below
        ] or None
    return value


def merge(live: Any, applied: Any, type_: Node, path: Path = ()) -> Any:
    """The live value with the applied one laid over it."""
    if merged_map(applied, type_) and isinstance(live, dict):
        return live | {
            key: merge(live[key], child, type_.value_of(key), (*path, f"f:{key}"))
            if key in live
            else child
            for key, child in applied.items()
        }
    if merged_list(applied, type_) and isinstance(live, list):
        return _merge_lists(live, applied, type_, path)
    return applied


def _merge_lists(live: list[Any], applied: list[Any], type_: Node, path: Path) -> list[Any]:
    """Applied items in their own order, the others between them where they were.

    Step by step as in Kubernetes, so that the order comes out the same.
    """
    before, after = _by_element(live, type_, path), _by_element(applied, type_, path)
    left, right = deque(before), deque(after)
    shared = deque(element for element in after if element in before)
    result: list[Any] = []
    done: set[str] = set()
    while left or right:
        same = bool(left and right) and left[0] == right[0]
        if left and not same:
            if left[0] not in after:
                result.append(before[left.popleft()])
                continue
            if right and shared and left[0] != shared[0]:
                left.popleft()  # its turn comes in the applied order
                continue
            if left[0] in done:
                left.popleft()
        if right:
            element = right.popleft()
            if same:
                left.popleft()
            if shared and shared[0] == element:
                shared.popleft()
            done.add(element)
            item = after[element]
            if element in before:
                item = merge(before[element], item, type_.item, (*path, element))
            result.append(item)
    return result
