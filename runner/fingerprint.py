"""The fingerprint of a plan: a keyed hash of everything applying it would do
(runner.md: The plan fingerprint).

The key keeps a reader of the hash from guessing values by trying them.
"""

from collections.abc import Iterator
from typing import NamedTuple

from runner import wire
from runner.jsontext import JsonError, JsonValue, Number, canonical, quote

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
    if len(key) < wire.PLAN_KEY_BYTES:
        raise KeyFileError(
            f"the plan key could not be read: {path} holds {len(key)} bytes, "
            f"at least {wire.PLAN_KEY_BYTES} are needed"
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
        # Loaded here: most runs compute no fingerprint, and these cost every start.
        import hashlib
        import hmac

        self._sha256 = hashlib.sha256
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
        return wire.PLAN_HASH_PREFIX + self._sha256(b"\n".join(sorted(self._lines))).hexdigest()


def effect(change: Change) -> str:
    """What a change would do, as canonical JSON."""
    parts = []
    if change.importing is not None:
        parts.append(f'"importing":{canonical(change.importing)}')
    if change.previous_address:
        parts.append(f'"previous_address":{quote(change.previous_address)}')
    if change.actions in (("create",), ("read",)):
        parts += _whole(change)
    elif change.actions not in (("delete",), ("forget",)):
        paths = _paths(change)
        if paths:
            parts.append(f'"paths":[{",".join(paths)}]')
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


class _Marks(NamedTuple):
    """The markers at one place of a change."""

    unknown: JsonValue
    before: JsonValue
    after: JsonValue

    def at(self, key: str | int) -> "_Marks":
        """The markers of one member or element."""
        return _Marks(part(self.unknown, key), part(self.before, key), part(self.after, key))

    def plain(self) -> bool:
        """Whether nothing here or below is marked."""
        return self.unknown is None and self.before is None and self.after is None


_Path = tuple[str | int, ...]
_PLAIN = _Marks(None, None, None)


def _paths(change: Change) -> list[str]:
    marks = _Marks(change.after_unknown, change.before_sensitive, change.after_sensitive)
    entries: list[str] = []
    _walk((), change.before, change.after, marks, entries)
    return entries


def _walk(path: _Path, before: _Side, after: _Side, marks: _Marks, entries: list[str]) -> None:
    """Add the entries of everything that changes at or below a place."""
    unknown = marks.unknown
    if unknown is True:
        entries.append(_entry(path, None, None, marks))
    elif isinstance(before, dict) and isinstance(after, dict) and (before or after):
        keys = before.keys() | after.keys()
        if isinstance(unknown, dict):
            keys |= unknown.keys()
        for key in sorted(keys):
            sides = before.get(key, _ABSENT), after.get(key, _ABSENT)
            _inner((*path, key), *sides, marks, entries)
    elif isinstance(before, list) and isinstance(after, list) and (before or after):
        length = max(len(before), len(after), len(unknown) if isinstance(unknown, list) else 0)
        for index in range(length):
            sides = _item(before, index), _item(after, index)
            _inner((*path, index), *sides, marks, entries)
    elif _leaf_changes(before, after, marks):
        entries.append(_entry(path, before, after, marks))


def _inner(path: _Path, before: _Side, after: _Side, outer: _Marks, entries: list[str]) -> None:
    marks = _PLAIN if outer.plain() else outer.at(path[-1])
    # Most of a plan stays as it is: this spares the walk.
    if not (isinstance(before, str) and before == after and marks.plain()):
        _walk(path, before, after, marks, entries)


def _leaf_changes(before: _Side, after: _Side, marks: _Marks) -> bool:
    absent = before is _ABSENT, after is _ABSENT
    return (
        absent[0] != absent[1]
        or (not absent[0] and before != after)
        or normalised(marks.unknown) is not None
        or normalised(marks.before) != normalised(marks.after)
    )


def _entry(path: _Path, before: _Side, after: _Side, marks: _Marks) -> str:
    shown = ",".join(quote(key) if isinstance(key, str) else str(key) for key in path)
    parts = [f'"path":[{shown}]', f'"before":{_shown(before)}', f'"after":{_shown(after)}']
    parts += ['"before_absent":true'] if before is _ABSENT else []
    parts += ['"after_absent":true'] if after is _ABSENT else []
    for name, mark in (
        ("unknown", marks.unknown),
        ("before_sensitive", marks.before),
        ("after_sensitive", marks.after),
    ):
        normal = normalised(mark)
        if normal is not None:
            parts.append(f'"{name}":{canonical(normal)}')
    return "{" + ",".join(parts) + "}"


def _shown(side: _Side) -> str:
    if side is None or isinstance(side, bool | str | Number | list | dict):
        return canonical(side)
    return "null"


def _item(items: list[JsonValue], index: int) -> _Side:
    return items[index] if index < len(items) else _ABSENT
