"""Every Job of a control plane as it comes and goes."""

import threading
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from captfctl.cluster.door import EventType
from captfctl.cluster.live import LiveDoor
from captfctl.cluster.live_requests import Limits
from captfctl.model import keys
from captfctl.model.core import Job
from captfctl.model.ops import Op
from captfctl.model.resources import JOBS
from captfctl.runs.jobs import is_finished

_SILENCE = 600.0
"""Seconds: on a busy machine, no Job may change for longer than a watch usually waits."""


class LiveJobs:
    """Watches the Jobs of one namespace, or of all, from the beginning."""

    def __init__(self, kubeconfig: Path, namespace: str = "") -> None:
        self.begun: list[tuple[str, Op]] = []
        """The owner and the operation of each, as they were created."""
        self.most = 0
        """The most unfinished ones that there ever were at a time."""
        self.most_in_background = 0
        self.most_of_owner: dict[str, int] = defaultdict(int)
        self._live: dict[str, Job] = {}
        self._door = LiveDoor.from_kubeconfig(kubeconfig, limits=Limits(silence=_SILENCE))
        self._watch = self._door.watch(JOBS, namespace)
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def _follow(self) -> None:
        with self._watch as events:
            for event in events:
                if event.object is not None:
                    self._see(event.type, event.object)

    def _see(self, change: EventType, job: Job) -> None:
        uid, owner = job.metadata.uid, _owner(job)
        if change is EventType.ADDED:
            self.begun.append((owner, _op(job)))
        if change is EventType.DELETED or is_finished(job):
            self._live.pop(uid, None)
            return
        self._live[uid] = job
        self.most = max(self.most, len(self._live))
        self.most_in_background = max(
            self.most_in_background, self._count(lambda live: _op(live).background)
        )
        self.most_of_owner[owner] = max(
            self.most_of_owner[owner], self._count(lambda live: _owner(live) == owner)
        )

    def _count(self, kind: Callable[[Job], bool]) -> int:
        return sum(kind(job) for job in self._live.values())

    def close(self) -> None:
        """Fails if the watch ended before: then not all was seen."""
        assert self._thread.is_alive()
        self._watch.close()
        self._thread.join(10)
        self._door.close()


def _owner(job: Job) -> str:
    return job.metadata.labels[keys.OWNER_NAME]


def _op(job: Job) -> Op:
    return Op(job.metadata.labels[keys.OP])
