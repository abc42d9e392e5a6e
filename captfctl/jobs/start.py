"""Starting a Job, in an order that survives a crash after any step (11 §6)."""

from collections.abc import Callable
from dataclasses import dataclass

from captfctl.clock import Clock
from captfctl.cluster.door import Door
from captfctl.jobs.build import RunnerSettings, RunSpec
from captfctl.jobs.leases import Leases
from captfctl.model.core import Job
from captfctl.model.events import Note
from captfctl.model.terraform import ActiveJob
from captfctl.state.lock import StateLock


@dataclass(frozen=True, slots=True)
class Started:
    """The Job runs. `adopted`: an earlier, interrupted start had created it."""

    job: Job
    active: ActiveJob
    adopted: bool
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class Deferred:
    """Not now, and no failure: look again in 5 s. `why` is for the log.

    `block_move` tells whether the annotation is on the object on the server.
    """

    why: str
    block_move: bool


class Starter:
    """Starts Jobs. The leases were taken before, by `Leases.acquire` for the run's name."""

    def __init__(
        self,
        door: Door,
        leases: Leases,
        clock: Clock,
        settings: RunnerSettings,
        random_bytes: Callable[[int], bytes],
    ) -> None: ...

    def start(
        self, run: RunSpec, *, explanation: str, lock: StateLock | None = None
    ) -> Started | Deferred:
        """Start the run, or adopt it. `explanation` ends the note of `JobCreated`.

        Raises the door's errors. Whether the leases were given back then follows 11 §6.
        """
        raise NotImplementedError
