"""Runs without processes: every Job succeeds as soon as it is seen."""

import queue
import threading
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from captfctl.clock import SystemClock
from captfctl.cluster.errors import NotFound
from captfctl.cluster.live import LiveDoor
from captfctl.controller import Handler, Informer
from captfctl.model import keys
from captfctl.model.core import Job
from captfctl.model.kinds import CLUSTER, MACHINE, MACHINE_POOL
from captfctl.model.resources import JOBS
from captfctl.runs.jobs import is_finished
from tests.support.fake_runner import OUTPUTS, FakeRunner

_OUTPUTS: Mapping[str, Mapping[str, Any]] = {
    CLUSTER.name: OUTPUTS,
    MACHINE.name: {
        "provider_id": "cloud:///zone-a/i-1",
        "addresses": [{"type": "InternalIP", "address": "10.0.0.7"}],
        "failure_domain": "zone-a",
        "interruptible": False,
        "health": {"state": "running", "healthy": True},
    },
    MACHINE_POOL.name: {
        "provider_id": "cloud:///pools/p-1",
        "provider_id_list": ["cloud:///zone-a/i-1"],
        "replicas": 1,
        "instances": [{"provider_id": "cloud:///zone-a/i-1", "state": "running"}],
        "health": {"state": "running", "healthy": True},
    },
}
_WORKERS = 4


class _Runner(FakeRunner):
    """Ends Jobs as Kubernetes' Job controller does: a real API server refuses anything else."""

    def _show_active(self, job: Job, now: datetime) -> None:
        """Not shown: it ends at once."""

    def end(self, job: Job, *, ok: bool, result: Any, **_: Any) -> None:
        self._end_pod(job, ok=ok, result=result)
        now = self._clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        conditions = [
            {"type": kind, "status": "True", "reason": "Done", "lastTransitionTime": now}
            for kind in ("SuccessCriteriaMet", "Complete")
        ]
        status = {
            "startTime": now,
            "completionTime": now,
            "active": 0,
            "succeeded": 1,
            "ready": 0,
            "terminating": 0,
            "uncountedTerminatedPods": {},
            "conditions": conditions,
        }
        meta = job.metadata
        self._door.patch(JOBS, meta.name, meta.namespace, {"status": status}, subresource="status")


class Finishing:
    """Follows the Jobs, from now until it is closed."""

    def __init__(self, door: LiveDoor) -> None:
        self._door = door
        self._runner = _Runner(door, SystemClock())
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._failures: list[Exception] = []
        selector = f"{keys.MANAGED}={keys.TRUE}"
        self._informer: Informer[Job] = Informer(door, JOBS, SystemClock(), labels=selector)
        self._informer.add_handler(Handler(on_add=self._jobs.put))
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(_WORKERS)]
        self._informer.start()
        for thread in self._threads:
            thread.start()

    def check(self) -> None:
        """Raises what kept a run from ending."""
        if self._failures:
            raise self._failures[0]

    def close(self) -> None:
        self._informer.stop(10)
        for _ in range(_WORKERS):
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                if not is_finished(job):
                    self._runner.succeed(job, _OUTPUTS[job.metadata.labels[keys.OWNER_KIND]])
            except NotFound:
                continue  # the Job was deleted
            except Exception as failure:
                self._failures.append(failure)
