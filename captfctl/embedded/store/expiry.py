"""Events live for an hour after their last change, as in a cluster; of very many only the newest:
here they are in memory."""

from collections import deque
from collections.abc import Mapping
from datetime import datetime, timedelta

from captfctl.cluster.errors import Unavailable
from captfctl.embedded.store.builtin import EVENT_STORAGE
from captfctl.embedded.store.collection import Record, key_of
from captfctl.embedded.store.engine import Engine
from captfctl.embedded.store.objects import decode
from captfctl.embedded.store.requests import Written
from captfctl.model.meta import parse_time
from captfctl.model.resource import Document
from captfctl.model.resources import EVENTS

LIFETIME = timedelta(hours=1)
MOST = 5_000


class EventExpiry:
    """Guarded by the engine's lock. Events of an earlier process go by their own last time."""

    def __init__(self, engine: Engine, most: int = MOST) -> None:
        self._engine = engine
        self._most = most
        self._served = engine.registry.find(EVENTS.group, EVENTS.version, EVENTS.plural)
        now = engine.now()
        records = engine.collection(self._served).records.values()
        self._due: deque[tuple[datetime, str, int]] = deque(
            sorted(
                (_last_time(record, now) + LIFETIME, record.key, record.version)
                for record in records
            )
        )
        self.sweep()

    def written(self, written: Written) -> None:
        """An Event was written: note its end, and remove those whose time has come."""
        metadata = decode(written.body)["metadata"]
        key = key_of(metadata["namespace"], metadata["name"])
        if written.resource_version:
            with self._engine.lock:
                due = self._engine.now() + LIFETIME
                self._due.append((due, key, int(written.resource_version)))
        self.sweep()

    def sweep(self) -> None:
        """Remove the Events whose time has come, and the oldest of too many, in one transaction."""
        now = self._engine.now()
        if not self._surplus() and (not self._due or self._due[0][0] > now):
            return
        with self._engine.lock:
            records = self._engine.collection(self._served).records
            over: list[Record] = []
            passed, surplus = 0, self._surplus()
            for due, key, version in self._due:
                if due > now and len(over) >= surplus:
                    break
                passed += 1
                if _is(records, key, version):
                    over.append(records[key])
            try:
                self._engine.replace_all(self._served, [(record, None) for record in over])
            except Unavailable:
                return  # a full disk must not fail who reads: the next one tries again
            for _ in range(passed):
                self._due.popleft()

    def _surplus(self) -> int:
        """How many are too many. Some more are let in first: each removal is a transaction."""
        surplus = len(self._engine.collection(self._served).records) - self._most
        return surplus if surplus > self._most // 20 else 0


def _is(records: Mapping[str, Record], key: str, version: int) -> bool:
    found = records.get(key)
    return found is not None and found.version == version


def _last_time(record: Record, now: datetime) -> datetime:
    """When the Event last happened, as far as it tells; never later than now."""
    event = decode(record.body)
    told: list[Document] = [event, event.get("series") or {}, event["metadata"]]
    fields = ("lastTimestamp", "eventTime", "lastObservedTime", "creationTimestamp")
    times = [parse_time(part.get(field) or "") for part in told for field in fields]
    return min(max((time for time in times if time is not None), default=now), now)


def expires(storage: str) -> bool:
    """Whether the objects of the collection expire."""
    return storage == EVENT_STORAGE
