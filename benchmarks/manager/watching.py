"""What the API server saw and what became of a change: from its audit log and by a watch."""

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from captfctl.clock import SystemClock
from captfctl.cluster.live import LiveDoor
from captfctl.controller import Handler, Informer
from captfctl.model import keys
from captfctl.model.core import Job
from captfctl.model.resources import JOBS

_POLL = 0.01
_WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})


class AuditLog:
    """The requests of one user from now on."""

    def __init__(self, file: Path, user: str) -> None:
        self._file, self._user = file, user
        self._since = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")

    def requests(self) -> Counter[tuple[str, str]]:
        """How often each verb was used on each resource since this was made."""
        return Counter(self._seen())

    def writes(self) -> dict[str, int]:
        """By resource; events are not counted: they are no part of an object."""
        found = self.requests()
        return {
            f"{verb} {resource}": count
            for (verb, resource), count in sorted(found.items())
            if verb in _WRITES and resource != "events"
        }

    def _seen(self) -> Iterator[tuple[str, str]]:
        with self._file.open() as lines:
            for line in lines:
                yield from self._told(line)

    def _told(self, line: str) -> Iterator[tuple[str, str]]:
        if not line.endswith("\n"):
            return  # still being written
        event = json.loads(line)
        about = event.get("objectRef")
        ours = about and event["user"]["username"] == self._user
        if ours and event["requestReceivedTimestamp"] >= self._since:
            yield event["verb"], about["resource"]


class NewJobs:
    """Tells when the first further Job of an object was created, as soon as a watch shows it."""

    def __init__(self, door: LiveDoor) -> None:
        selector = f"{keys.MANAGED}={keys.TRUE}"
        self._seen: dict[str, float] = {}
        self._changed = threading.Condition()
        self._jobs: Informer[Job] = Informer(door, JOBS, SystemClock(), labels=selector)
        self._jobs.start()
        while not self._jobs.synced:
            time.sleep(_POLL)
        replayed = True

        def added(job: Job) -> None:
            if not replayed:
                self._note(job)

        self._jobs.add_handler(Handler(on_add=added))
        replayed = False

    def of(self, owner: str, timeout: float) -> float:
        """When (`time.perf_counter`) the object's Job was seen. Raises `TimeoutError`."""
        deadline = time.monotonic() + timeout
        with self._changed:
            while owner not in self._seen:
                left = deadline - time.monotonic()
                if left <= 0 or not self._changed.wait(left):
                    raise TimeoutError(f"no Job for {owner} within {timeout:.0f} s")
            return self._seen[owner]

    def close(self) -> None:
        self._jobs.stop(10)

    def _note(self, job: Job) -> None:
        with self._changed:
            owner = job.metadata.labels.get(keys.OWNER_NAME, "")
            self._seen.setdefault(owner, time.perf_counter())
            self._changed.notify_all()
