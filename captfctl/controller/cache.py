"""A thread-safe set of objects with indexes."""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")
Key = tuple[str, str]
Index = Callable[[T], Iterable[str]]
"""The values under which an object is found in an index."""


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """`old` is None for an added object, `new` for a deleted one."""

    old: T | None
    new: T | None


class Cache(Generic[T]):
    """Objects by namespace and name.

    `by_namespace` and every index keep the keys only, so that an object is held once.
    """

    def __init__(self, indexes: Mapping[str, Index[T]] | None = None) -> None:
        self._lock = threading.Lock()
        self._objects: dict[Key, T] = {}
        self._by_namespace: dict[str, set[Key]] = {}
        self._functions = dict(indexes or {})
        self._values: dict[str, dict[str, set[Key]]] = {name: {} for name in self._functions}

    def get(self, key: Key) -> T | None:
        with self._lock:
            return self._objects.get(key)

    def list(self, namespace: str = "") -> Sequence[T]:
        with self._lock:
            keys: Iterable[Key] = self._objects
            if namespace:
                keys = self._by_namespace.get(namespace, ())
            return self._sorted(keys)

    def by_index(self, index: str, value: str) -> Sequence[T]:
        """Raises `KeyError` for an index that was not declared."""
        with self._lock:
            return self._sorted(self._values[index].get(value, ()))

    def all_keys(self) -> Sequence[Key]:
        with self._lock:
            return tuple(self._objects)

    def __len__(self) -> int:
        with self._lock:
            return len(self._objects)

    def put(self, key: Key, obj: T) -> Change[T]:
        with self._lock:
            old = self._objects.get(key)
            if old is not None:
                self._unindex(key, old)
            self._objects[key] = obj
            self._index(key, obj)
            return Change(old, obj)

    def remove(self, key: Key) -> Change[T] | None:
        """None when it was not there."""
        with self._lock:
            old = self._objects.pop(key, None)
            if old is None:
                return None
            self._unindex(key, old)
            return Change(old, None)

    def _sorted(self, keys: Iterable[Key]) -> Sequence[T]:
        return [self._objects[key] for key in sorted(keys)]

    def _index(self, key: Key, obj: T) -> None:
        self._by_namespace.setdefault(key[0], set()).add(key)
        for name, function in self._functions.items():
            for value in function(obj):
                self._values[name].setdefault(value, set()).add(key)

    def _unindex(self, key: Key, obj: T) -> None:
        _discard(self._by_namespace, key[0], key)
        for name, function in self._functions.items():
            for value in function(obj):
                _discard(self._values[name], value, key)


def _discard(sets: dict[str, set[Key]], value: str, key: Key) -> None:
    keys = sets.get(value)
    if keys is not None:
        keys.discard(key)
        if not keys:
            del sets[value]
