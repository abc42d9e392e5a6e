"""Workers that reconcile keys from a work queue."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from captfctl.clock import Clock
from captfctl.controller.queue import WorkQueue

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Result:
    """What a pass asks for. `requeue_after` in seconds; 0: not again until something changes."""

    requeue_after: float = 0.0


class Controller(Generic[K]):
    """`workers` threads that call `reconcile(key)` for each key of `queue`.

    A pass that raises is logged with its key and repeated with the queue's backoff.
    """

    queue: WorkQueue[K]

    def __init__(
        self,
        name: str,
        reconcile: Callable[[K], Result],
        clock: Clock,
        *,
        workers: int = 1,
        queue: WorkQueue[K] | None = None,
    ) -> None: ...

    def start(self) -> None:
        """Start the workers."""

    def stop(self, timeout: float) -> bool:
        """Take no more keys; wait up to `timeout` seconds for passes; tell whether all ended."""
        raise NotImplementedError
