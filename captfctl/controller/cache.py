"""A thread-safe set of objects with indexes."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from captfctl.model.resource import Resource

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
    """Objects by namespace and name, kept as their JSON text.

    As Python objects they would take five times the memory. Who reads one gets an object of their
    own; most readers would have to copy a shared one anyway, which costs more.
    """

    def __init__(
        self, resource: Resource[T], indexes: Mapping[str, Index[T]] | None = None
    ) -> None:
        self._lock = threading.Lock()
        self._resource = resource
        self._texts: dict[Key, bytes] = {}
        self._by_namespace: dict[str, set[Key]] = {}
        self._functions = dict(indexes or {})
        self._values: dict[str, dict[str, set[Key]]] = {name: {} for name in self._functions}

    def get(self, key: Key) -> T | None:
        """The object, the reader's own; None when it is not there."""
        with self._lock:
            text = self._texts.get(key)
        return None if text is None else self._resource.decode(text)

    def list(self, namespace: str = "") -> Sequence[T]:
        """The objects of one namespace, or of all, in order of namespace and name."""
        return list(self.each(namespace))

    def each(self, namespace: str = "") -> Iterator[T]:
        """The same as `list`, one by one: all at once may take much memory."""
        with self._lock:
            texts = self._sorted(
                self._by_namespace.get(namespace, ()) if namespace else self._texts
            )
        return map(self._resource.decode, texts)

    def by_index(self, index: str, value: str) -> Sequence[T]:
        """Raises `KeyError` for an index that was not declared."""
        with self._lock:
            texts = self._sorted(self._values[index].get(value, ()))
        return [self._resource.decode(text) for text in texts]

    def keys_by_index(self, index: str, value: str) -> Sequence[Key]:
        """In order. Raises `KeyError` for an index that was not declared."""
        with self._lock:
            return sorted(self._values[index].get(value, ()))

    def all_keys(self, namespace: str = "") -> Sequence[Key]:
        """The keys of one namespace, or of all, in no particular order."""
        with self._lock:
            return tuple(self._by_namespace.get(namespace, ()) if namespace else self._texts)

    def __contains__(self, key: Key) -> bool:
        with self._lock:
            return key in self._texts

    def __len__(self) -> int:
        return len(self._texts)

    def put(self, key: Key, obj: T) -> Change[T]:
        """Keep the object in place of an earlier one; tell what changed."""
        # A copy is as long as the text; what the encoder gives has room to grow.
        text = bytes(memoryview(self._resource.encode(obj)))
        with self._lock:
            old = self._forget(key)
            self._texts[key] = text
            self._index(key, obj)
        return Change(old, obj)

    def remove(self, key: Key) -> Change[T] | None:
        """None when it was not there."""
        with self._lock:
            old = self._forget(key)
        return None if old is None else Change(old, None)

    # All below: with the lock held.

    def _sorted(self, keys: Iterable[Key]) -> Sequence[bytes]:
        return [self._texts[key] for key in sorted(keys)]

    def _forget(self, key: Key) -> T | None:
        text = self._texts.pop(key, None)
        if text is None:
            return None
        old = self._resource.decode(text)
        self._unindex(key, old)
        return old

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
