"""Events live for an hour after their last change, as in a cluster."""

from collections import deque
from datetime import datetime, timedelta

from captfctl.embedded.store.builtin import EVENT_STORAGE
from captfctl.embedded.store.collection import key_of
from captfctl.embedded.store.engine import Engine, Moved
from captfctl.embedded.store.objects import decode
from captfctl.embedded.store.requests import Written
from captfctl.model.resources import EVENTS

LIFETIME = timedelta(hours=1)


class EventExpiry:
    """Guarded by the engine's lock. What was stored at the start lives its hour from then on."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._served = engine.registry.find(EVENTS.group, EVENTS.version, EVENTS.plural)
        now = engine.now()
        records = engine.collection(self._served).records.values()
        self._due: deque[tuple[datetime, str, int]] = deque(
            (now + LIFETIME, record.key, record.version) for record in records
        )

    def written(self, written: Written) -> None:
        """An Event was written: note its end, and remove those whose time has come."""
        now = self._engine.now()
        metadata = decode(written.body)["metadata"]
        key = key_of(metadata["namespace"], metadata["name"])
        with self._engine.lock:
            if written.resource_version:
                self._due.append((now + LIFETIME, key, int(written.resource_version)))
            while self._due and self._due[0][0] <= now:
                _, key, version = self._due.popleft()
                self._remove(key, version)

    def _remove(self, key: str, version: int) -> None:
        found = self._engine.collection(self._served).records.get(key)
        if found is not None and found.version == version:
            try:
                self._engine.remove(self._served, found)
            except Moved:
                return


def expires(storage: str) -> bool:
    """Whether the objects of the collection expire."""
    return storage == EVENT_STORAGE
