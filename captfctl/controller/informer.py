"""A cache of one resource's objects that follows the API server."""

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from captfctl.clock import Clock
from captfctl.cluster.door import Door
from captfctl.model.resource import Resource

T = TypeVar("T")
Index = Callable[[T], Iterable[str]]
"""The values under which an object is found in an index."""


@dataclass(frozen=True, slots=True)
class Handler(Generic[T]):
    """What to call on changes, from the informer's own thread. Objects are shared: do not change.

    A resync calls `on_update` with the same object twice.
    """

    on_add: Callable[[T], None] | None = None
    on_update: Callable[[T, T], None] | None = None
    on_delete: Callable[[T], None] | None = None


class Informer(Generic[T]):
    """Lists `resource`, then watches it, in a thread of its own.

    Objects from it are shared by all readers: copy them (`resource.copy`) before any change.
    """

    def __init__(
        self,
        door: Door,
        resource: Resource[T],
        clock: Clock,
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        indexes: Mapping[str, Index[T]] | None = None,
        resync_period: float = 0.0,
        rng: random.Random | None = None,
    ) -> None: ...

    def add_handler(self, handler: Handler[T]) -> None:
        """Call `handler` on every change from now on; what is cached already comes as added."""

    def start(self) -> None: ...

    def stop(self, timeout: float = 5.0) -> bool:
        """End the watch; wait up to `timeout` seconds for the thread; tell whether it ended."""
        raise NotImplementedError

    @property
    def synced(self) -> bool:
        """Whether the first list is in the cache and its handlers were called."""
        raise NotImplementedError

    def wait_synced(self, timeout: float) -> bool:
        """Wait up to `timeout` seconds for the first list; tell whether it is there."""
        raise NotImplementedError

    def get(self, namespace: str, name: str) -> T | None:
        raise NotImplementedError

    def list(self, namespace: str = "") -> list[T]:
        """The cached objects of one namespace, or of all, in order of namespace and name."""
        raise NotImplementedError

    def by_index(self, index: str, value: str) -> list[T]:
        """The cached objects with `value` in `index`, in order of namespace and name."""
        raise NotImplementedError
