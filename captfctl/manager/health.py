"""Whether a manager does its work, per watch and per queue (manager.md: Health)."""

from collections.abc import Callable, Mapping

from captfctl.controller import WorkQueue
from captfctl.manager.caches import Caches
from captfctl.serving.http import NOT_FOUND, Answer, Request, Respond

SILENT_AFTER = 50.0
"""Seconds without a word about a resource. A watch ends and begins again after 35 at most."""

STALLED_AFTER = 60.0
"""Seconds in which a queue had work and no pass came to an end. A request takes 30 at most."""

STUCK_AFTER = 600.0
"""Seconds after which a thread that has work and ends nothing never will: only a new process helps.
A server that is away is no reason: its refusals and time limits end attempts, too."""


class Health:
    """Each method tells what is wrong, one line each; nothing when all is well."""

    def __init__(self, caches: Caches) -> None:
        self._caches = caches
        self._queues: Mapping[str, WorkQueue[tuple[str, str]]] = {}

    def watch_over(self, queues: Mapping[str, WorkQueue[tuple[str, str]]]) -> None:
        """The queues, by the names of their controllers."""
        self._queues = queues

    def working(self) -> list[str]:
        """Whether the server is heard of, and passes end."""
        return [
            *(f"nothing is heard of {name}" for name in self._caches.silent(SILENT_AFTER)),
            *(f"no pass of {name} comes to an end" for name in self._stalled(STALLED_AFTER)),
        ]

    def ready(self) -> list[str]:
        """The same, and whether every cache has its first list."""
        waiting = self._caches.waiting_for()
        return [f"the first list of {name} is not there yet" for name in waiting] + self.working()

    def alive(self) -> list[str]:
        """Whether every thread goes on, whatever the server does."""
        return [
            *(f"the watch of {name} is stuck" for name in self._caches.idle(STUCK_AFTER)),
            *(f"the workers of {name} are stuck" for name in self._stalled(STUCK_AFTER)),
        ]

    def _stalled(self, seconds: float) -> list[str]:
        return [name for name, queue in self._queues.items() if queue.stalled_for() > seconds]


def probes(health: Health) -> Respond:
    """`/livez`, `/healthz` and `/readyz`, on a standby too."""
    checks: dict[str, Callable[[], list[str]]] = {
        "/livez": health.alive,
        "/healthz": health.working,
        "/readyz": health.ready,
    }

    def respond(request: Request) -> Answer:
        if request.method == "PUT":
            return Answer(405, b"only GET\n")
        check = checks.get(request.path)
        if check is None:
            return NOT_FOUND
        wrong = check()
        if not wrong:
            return Answer(200, b"ok\n")
        return Answer(500, "".join(f"{line}\n" for line in wrong).encode())

    return respond
