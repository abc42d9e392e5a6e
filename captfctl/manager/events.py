"""Posting events beside the passes: a pass never waits for one."""

import logging
import queue
import threading

from captfctl.clock import Clock
from captfctl.cluster.door import Door
from captfctl.model.core import Event
from captfctl.model.events import Note
from captfctl.model.meta import ApiObject
from captfctl.reconcile.events import DoorRecorder

CAPACITY = 1000
"""Events that may wait. When the server is that far behind, newer ones are dropped."""

log = logging.getLogger(__name__)


class QueuedRecorder:
    """A `Recorder` with one thread that posts in order."""

    def __init__(self, door: Door, clock: Clock, instance: str) -> None:
        self._inner = DoorRecorder(door, clock, instance)
        self._waiting: queue.Queue[Event | None] = queue.Queue(CAPACITY)
        self._thread = threading.Thread(target=self._post, name="events", daemon=True)
        self._lock = threading.Lock()
        self._dropped = 0

    def record(self, regarding: ApiObject, note: Note) -> None:
        try:
            self._waiting.put_nowait(self._inner.event(regarding, note))
        except queue.Full:
            with self._lock:
                self._dropped += 1
                first = self._dropped == 1
            if first:
                log.warning("events are dropped: %d already wait to be posted", CAPACITY)

    def start(self) -> None:
        """Start posting."""
        self._thread.start()

    def stop(self, timeout: float) -> bool:
        """Post what waits, for at most `timeout` seconds; tell whether all was posted."""
        if self._thread.ident is None:
            return self._waiting.empty()
        try:
            self._waiting.put(None, timeout=timeout)
        except queue.Full:
            return False
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _post(self) -> None:
        while (event := self._waiting.get()) is not None:
            self._inner.post(event)
            if self._waiting.empty():
                self._tell_dropped()
        self._tell_dropped()

    def _tell_dropped(self) -> None:
        """All at once: thousands of lines would say no more."""
        with self._lock:
            dropped, self._dropped = self._dropped, 0
        if dropped:
            log.warning("%d events were dropped: they came faster than they were posted", dropped)
