"""Run lease and cluster write lease (11 §10)."""

from dataclasses import dataclass
from datetime import timedelta

from captfctl.clock import Clock
from captfctl.cluster.door import Door
from captfctl.jobs.reader import JobsReader
from captfctl.jobs.waits import Wait
from captfctl.model.core import Lease
from captfctl.model.ops import Op
from captfctl.model.owner import Owner

FRESH = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class LeaseClaim:
    """What is asked for: the right to run `job`. `deadline` is the Job's, in seconds."""

    owner: Owner
    op: Op
    job: str
    deadline: int


class Leases:
    """Who may run. `gate` is the flag `--cluster-operation-gate`."""

    def __init__(
        self, door: Door, jobs: JobsReader, clock: Clock, *, gate: bool = True
    ) -> None: ...

    def acquire(self, claim: LeaseClaim) -> Wait | None:
        """Take the run lease and pass the gate (11 §10.2, §10.5); None: taken.

        A gate error gives everything back and is raised.
        """
        raise NotImplementedError

    def freshen(self, claim: LeaseClaim) -> bool:
        """Just before the create (11 §10.4): False means defer the start."""
        raise NotImplementedError

    def release(self, owner: Owner, job: str) -> None:
        """Give back what `job` holds. Failures are logged: the backstop frees it (11 §10.6)."""
        raise NotImplementedError

    def run_lease_live(self, owner: Owner) -> bool:
        """Whether some Job holds the object's run lease. Nothing is cleaned up while one does."""
        raise NotImplementedError

    def read_run_lease(self, owner: Owner) -> Lease | None:
        """The object's run lease, read live."""
        raise NotImplementedError

    def is_free(self, lease: Lease) -> bool:
        """Whether anybody may take it (11 §10.3)."""
        raise NotImplementedError
