"""The fingerprint of a plan: a keyed hash of everything applying it would do (20 §16).

The key keeps a reader of the hash from guessing values by trying them.
"""

import hashlib
import hmac
from collections.abc import Iterator
from typing import NamedTuple

from runner.jsontext import JsonError, JsonValue, Number, canonical, quote

KEY_SHORTEST = 32
_ABSENT = object()
_Side = JsonValue | object  # a value, or _ABSENT


class KeyFileError(Exception):
    """The plan key cannot be used; the text says why and holds nothing of the key."""


def read_key(path: str) -> bytes:
    """The bytes of the key file, as they are. Raises KeyFileError."""
    if not path:
        raise KeyFileError("the plan key could not be read: no key file is given (--plan-key-file)")
    try:
        with open(path, "rb") as file:
            key = file.read()
    except OSError as error:
        raise KeyFileError(f"the plan key could not be read: {path}: {error.strerror}") from None
    if len(key) < KEY_SHORTEST:
        raise KeyFileError(
            f"the plan key could not be read: {path} holds {len(key)} bytes, "
            f"at least {KEY_SHORTEST} are needed"
        )
    return key


class Change(NamedTuple):
    """One change of a plan, with the marks on its values."""

    actions: tuple[str, ...]
    importing: JsonValue
    previous_address: str
    before: JsonValue
    after: JsonValue
    after_unknown: JsonValue
    before_sensitive: JsonValue
    after_sensitive: JsonValue

    @classmethod
    def of(cls, value: JsonValue, previous_address: str) -> "Change":
        """Read a change object; absent members are null. Raises JsonError on a wrong type."""
        if value is None:
            value = {}
        if not isinstance(value, dict):
            raise JsonError("a change of the plan is not an object")
        actions = value.get("actions")
        if actions is None:
            actions = []
        if not isinstance(actions, list):
            raise JsonError("actions of a change are not a list")
        names = tuple(action for action in actions if isinstance(action, str))
        if len(names) != len(actions):
            raise JsonError("an action of a change is not a string")
        importing = value.get("importing")
        if importing is not None and not isinstance(importing, dict):
            raise JsonError("importing of a change is not an object")
        return cls(
            actions=names,
            importing=importing,
            previous_address=previous_address,
            before=value.get("before"),
            after=value.get("after"),
            after_unknown=value.get("after_unknown"),
            before_sensitive=value.get("before_sensitive"),
            after_sensitive=value.get("after_sensitive"),
        )

    @property
    def no_op(self) -> bool:
        """Whether the change leaves the object as it is."""
        return self.actions in ((), ("no-op",))


class Fingerprint:
    """Collects the changes of one plan."""

    def __init__(self, key: bytes) -> None:
        self._key = hmac.new(key, digestmod=hashlib.sha256)
        self._lines: list[bytes] = []

    def add(self, name: str, change: Change) -> None:
        """Add a resource by its address, or an output as `output.<name>`."""
        keyed = self._key.copy()
        keyed.update(effect(change).encode())
        line = f"{name}|{','.join(change.actions)}|{keyed.hexdigest()}"
        self._lines.append(line.encode("utf-8", "replace"))

    def hash(self) -> str:
        """`p2:` and the hash over everything added, in whatever order it came."""
        return "p2:" + hashlib.sha256(b"\n".join(sorted(self._lines))).hexdigest()


def effect(change: Change) -> str:
    """What a change would do, as canonical JSON (20 §16.3)."""
    parts = []
    if change.importing is not None:
        parts.append(f'"importing":{canonical(change.importing)}')
    if change.previous_address:
        parts.append(f'"previous_address":{quote(change.previous_address)}')
    if change.actions in (("create",), ("read",)):
        parts += _whole(change)
    elif change.actions not in (("delete",), ("forget",)):
        paths = ",".join(_paths(change))
        if paths:
            parts.append(f'"paths":[{paths}]')
    return "{" + ",".join(parts) + "}"


def _whole(change: Change) -> Iterator[str]:
    if change.after is not None:
        yield f'"after":{canonical(change.after)}'
    for name, marks in (
        ("after_unknown", change.after_unknown),
        ("after_sensitive", change.after_sensitive),
    ):
        normal = normalised(marks)
        if normal is not None:
            yield f'"{name}":{canonical(normal)}'


def part(marks: JsonValue, key: str | int) -> JsonValue:
    """The marker of one member or element under `marks`; a boolean covers everything below."""
    if isinstance(marks, bool):
        return marks
    if isinstance(marks, dict) and isinstance(key, str):
        return marks.get(key)
    if isinstance(marks, list) and isinstance(key, int) and key < len(marks):
        return marks[key]
    return None


def normalised(marks: JsonValue) -> JsonValue:
    """A marker without the spellings of nothing: true where something is marked, else null."""
    if marks is True:
        return True
    if isinstance(marks, dict):
        kept: dict[str, JsonValue] = {}
        for key, value in marks.items():
            if (normal := normalised(value)) is not None:
                kept[key] = normal
        return kept or None
    if isinstance(marks, list):
        items = [normalised(value) for value in marks]
        return items if any(item is not None for item in items) else None
    return None


class _Place(NamedTuple):
    """The two sides of a change at one path, with their markers."""

    path: tuple[str | int, ...]
    before: _Side
    after: _Side
    unknown: JsonValue
    before_sensitive: JsonValue
    after_sensitive: JsonValue

    def inner(self, key: str | int) -> "_Place":
        return _Place(
            (*self.path, key),
            _member(self.before, key),
            _member(self.after, key),
            part(self.unknown, key),
            part(self.before_sensitive, key),
            part(self.after_sensitive, key),
        )


def _paths(change: Change) -> Iterator[str]:
    place = _Place(
        (),
        change.before,
        change.after,
        change.after_unknown,
        change.before_sensitive,
        change.after_sensitive,
    )
    return _walk(place)


def _walk(place: _Place) -> Iterator[str]:
    """The entries of everything that changes at or below a place (20 §16.4)."""
    before, after, unknown = place.before, place.after, place.unknown
    if unknown is True:
        yield _entry(place, None, None, unknown=True)
    elif isinstance(before, dict) and isinstance(after, dict) and (before or after):
        keys = before.keys() | after.keys()
        if isinstance(unknown, dict):
            keys |= unknown.keys()
        for key in sorted(keys):
            yield from _walk(place.inner(key))
    elif isinstance(before, list) and isinstance(after, list) and (before or after):
        length = max(len(before), len(after), len(unknown) if isinstance(unknown, list) else 0)
        for index in range(length):
            yield from _walk(place.inner(index))
    elif _leaf_changes(place):
        yield _entry(place, before, after, unknown=normalised(unknown))


def _leaf_changes(place: _Place) -> bool:
    absent = place.before is _ABSENT, place.after is _ABSENT
    return (
        absent[0] != absent[1]
        or (not absent[0] and place.before != place.after)
        or normalised(place.unknown) is not None
        or normalised(place.before_sensitive) != normalised(place.after_sensitive)
    )


def _entry(place: _Place, before: _Side, after: _Side, *, unknown: JsonValue) -> str:
    path = ",".join(quote(key) if isinstance(key, str) else str(key) for key in place.path)
    parts = [f'"path":[{path}]', f'"before":{_shown(before)}', f'"after":{_shown(after)}']
    parts += ['"before_absent":true'] if before is _ABSENT else []
    parts += ['"after_absent":true'] if after is _ABSENT else []
    for name, marks in (
        ("unknown", unknown),
        ("before_sensitive", normalised(place.before_sensitive)),
        ("after_sensitive", normalised(place.after_sensitive)),
    ):
        if marks is not None:
            parts.append(f'"{name}":{canonical(marks)}')
    return "{" + ",".join(parts) + "}"


def _shown(side: _Side) -> str:
    if side is None or isinstance(side, bool | str | Number | list | dict):
        return canonical(side)
    return "null"


def _member(side: _Side, key: str | int) -> _Side:
    if isinstance(side, dict) and isinstance(key, str):
        return side.get(key, _ABSENT)
    if isinstance(side, list) and isinstance(key, int) and key < len(side):
        return side[key]
    return _ABSENT
