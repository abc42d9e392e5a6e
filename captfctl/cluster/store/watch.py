"""A running watch on one collection."""

from collections.abc import Callable, Iterator

from captfctl.cluster.store.requests import RawEvent


class RawWatch:
    """A running watch. It holds a place in the change log, not a queue: a slow one blocks nobody.

    Blocking use: iterate, or call `next`. From an event loop: pass `wake` (called by the
    writer's thread, must return at once, and may be called without need) and then `poll`.
    `close` may be called from any thread and ends a blocked `next`.
    """

    wake: Callable[[], None] | None

    def poll(self) -> list[RawEvent]:
        """What there is now, without waiting. Raises `Gone` when it lagged behind the log."""
        raise NotImplementedError

    def bookmark(self) -> RawEvent:
        """A bookmark at the place everything up to which has been handed out by `poll`."""
        raise NotImplementedError

    def next(self, timeout: float | None = None) -> list[RawEvent]:
        """Wait for at least one event. Empty: `timeout` seconds passed, or the watch ended."""
        raise NotImplementedError

    @property
    def ended(self) -> bool:
        """Closed, or its `timeout_seconds` are over."""
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError

    def __iter__(self) -> Iterator[RawEvent]:
        """Until the end, with bookmarks when they were asked for."""
        raise NotImplementedError

    def __enter__(self) -> "RawWatch":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
