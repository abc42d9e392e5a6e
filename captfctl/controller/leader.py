"""Leader election on a Lease, with client-go's rules (11 §13, 50 §16.4)."""

from collections.abc import Callable
from dataclasses import dataclass

from captfctl.clock import Clock
from captfctl.cluster.door import Door


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionSettings:
    """All in seconds. Raises `InputError` unless lease > renew > retry > 0 (50 §16.2)."""

    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0


class LeaderElector:
    """Takes part in one election.

    Another holder's clock is never trusted: its Lease is over when we have seen it unchanged for
    `lease_duration` seconds of our own monotonic time.
    """

    def __init__(
        self,
        door: Door,
        name: str,
        namespace: str,
        identity: str,
        settings: ElectionSettings,
        clock: Clock,
        *,
        on_started: Callable[[], None],
        on_lost: Callable[[], None],
    ) -> None: ...

    @property
    def leading(self) -> bool:
        """Whether this process leads now; False as soon as the renew deadline has passed."""
        raise NotImplementedError

    def start(self) -> None: ...

    def stop(self, timeout: float) -> bool:
        """Leave the election; a leader releases the Lease. Tell whether all threads ended."""
        raise NotImplementedError
