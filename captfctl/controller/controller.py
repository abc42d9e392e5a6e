"""Workers that reconcile keys from a work queue."""

import logging
import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from captfctl.clock import Clock
from captfctl.cluster.errors import Conflict
from captfctl.controller.queue import ShutDown, WorkQueue
from captfctl.errors import CaptfError

K = TypeVar("K", bound=Hashable)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Result:
    """What a pass asks for. `requeue_after` in seconds; 0: not again until something changes."""

    requeue_after: float = 0.0


class Controller(Generic[K]):
    """`workers` threads that call `reconcile(key)` for each key of `queue`
    (manager.md: Caches and workers).

    A pass that raises is logged with its key and repeated with the queue's backoff; one that
    returns is the end of that backoff.
    """

    def __init__(
        self,
        name: str,
        reconcile: Callable[[K], Result],
        clock: Clock,
        *,
        workers: int = 1,
        queue: WorkQueue[K] | None = None,
    ) -> None:
        self.name = name
        self.queue: WorkQueue[K] = queue or WorkQueue(clock)
        self._reconcile = reconcile
        self._clock = clock
        self._lock = threading.Lock()
        self._running = 0
        self._ended = threading.Event()
        self._threads = [
            threading.Thread(target=self._work, name=f"{name}-{number}", daemon=True)
            for number in range(workers)
        ]

    def start(self) -> None:
        """Start the workers. Once per controller."""
        self._running = len(self._threads)
        for thread in self._threads:
            thread.start()

    def stop(self, timeout: float) -> bool:
        """Take no more keys; wait up to `timeout` seconds for passes; tell whether all ended."""
        self.queue.shut_down()
        if self._running == 0:
            return True
        return self._clock.wait(self._ended, timeout)

    def work_one(self, key: K) -> None:
        """One pass of `key`, which the caller got from the queue, and what follows from it."""
        try:
            result = self._reconcile(key)
        except Exception as error:
            self._failed(key, error)
        else:
            self.queue.forget(key)
            if result.requeue_after > 0:
                self.queue.add_after(key, result.requeue_after)
        finally:
            self.queue.done(key)

    def _failed(self, key: K, error: Exception) -> None:
        delay = self.queue.add_rate_limited(key)
        # Our own errors say what happened; of any other one the place in the code is needed too.
        trace = None if isinstance(error, CaptfError) else error
        shown = "/".join(map(str, key)) if isinstance(key, tuple) else str(key)
        # Another writer was first: that is how optimistic locking is meant to go.
        level = logging.INFO if isinstance(error, Conflict) else logging.ERROR
        log.log(
            level,
            "%s: the pass of %s failed, next try in %.3f s: %s",
            self.name,
            shown,
            delay,
            error,
            exc_info=trace,
        )

    def _work(self) -> None:
        try:
            while True:
                self.work_one(self.queue.get())
        except ShutDown:
            pass
        finally:
            with self._lock:
                self._running -= 1
                if self._running == 0:
                    self._ended.set()
