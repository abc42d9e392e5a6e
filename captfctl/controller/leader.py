"""Leader election on a Lease, with client-go's rules (manager.md: Leader election)."""

import logging
import math
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from captfctl.clock import Clock
from captfctl.cluster.door import Door
from captfctl.cluster.errors import AlreadyExists, ApiError, Conflict, NotFound
from captfctl.errors import InputError
from captfctl.model.core import Lease, LeaseSpec
from captfctl.model.meta import ObjectMeta, micro_time
from captfctl.model.resources import LEASES

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionSettings:
    """All in seconds. Raises `InputError` unless lease > renew > retry > 0
    (manager.md: Flags of the manager)."""

    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    def __post_init__(self) -> None:
        if not self.lease_duration > self.renew_deadline > self.retry_period > 0:
            raise InputError(
                "the times of leader election do not fit together",
                why=f"lease duration {self.lease_duration:g} s, renew deadline "
                f"{self.renew_deadline:g} s, retry period {self.retry_period:g} s",
                do="make the lease duration longer than the renew deadline, and that longer than "
                "the retry period, which must be more than zero",
            )


class LeaderElector:
    """Takes part in one election.

    Another holder's clock is never trusted: its Lease is over when we have seen it unchanged for
    the Lease's duration, in seconds of our own monotonic time. Our own leadership ends
    `renew_deadline` seconds after the *start* of the last renewal that succeeded, whatever a
    request in flight does: others wait `lease_duration` from a later moment, so that two never lead
    at once as long as clocks run equally fast.

    `on_started` and `on_lost` are called once each at most, in that order, from threads of the
    elector; `on_lost` is not called when `stop` gives the leadership up. After a loss the elector
    takes part no more: the process is meant to end.
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
    ) -> None:
        self.identity = identity
        self._door = door
        self._name = name
        self._namespace = namespace
        self._settings = settings
        self._clock = clock
        self._on_started = on_started
        self._on_lost = on_lost
        self._observed: Lease | None = None
        self._observed_at = -math.inf  # monotonic
        self._lock = threading.Lock()
        self._leads_until = -math.inf  # monotonic
        self._led = False
        self._over = threading.Event()  # stopped, or lost
        self._acquired = threading.Event()  # leading, or over
        self._threads = [
            threading.Thread(target=self._compete, name="leader-election", daemon=True),
            threading.Thread(target=self._guard, name="leader-deadline", daemon=True),
            # Starting controllers takes time, during which the Lease must be renewed.
            threading.Thread(target=self._begin, name="leader-start", daemon=True),
        ]

    @property
    def leading(self) -> bool:
        """Whether this process leads now; False as soon as the renew deadline has passed."""
        return not self._over.is_set() and self._clock.monotonic() < self._leads_until

    @property
    def holder(self) -> str:
        """Who held the Lease when it was last read; empty: nobody, or not read yet."""
        return self._observed.spec.holder_identity if self._observed else ""

    def start(self) -> None:
        """Take part. Once per elector."""
        for thread in self._threads:
            thread.start()

    def stop(self, timeout: float) -> bool:
        """Leave the election; a leader releases the Lease. Tell whether all threads ended."""
        self._over.set()
        self._acquired.set()
        started = [thread for thread in self._threads if thread.ident is not None]
        for thread in started:
            thread.join(timeout)
        return not any(thread.is_alive() for thread in started)

    def attempt(self) -> bool:
        """Try once to acquire or renew the Lease; tell whether we lead now.

        Raises the door's errors; a write that lost against another one is no error.
        """
        began = self._clock.monotonic()
        try:
            lease = self._door.get(LEASES, self._name, self._namespace)
        except NotFound:
            renewed = self._create()
        else:
            self._observe(lease)
            if not self._may_take(lease):
                if self._led:
                    self._lose(f"{lease.spec.holder_identity} holds it")
                return False
            renewed = self._take(lease)
        if not renewed:
            return False
        with self._lock:
            # Once over, a renewal that comes back late must not make us lead again.
            if self._over.is_set() or (self._led and began >= self._leads_until):
                return False
            self._leads_until = began + self._settings.renew_deadline
            self._led = True
        return True

    def release(self) -> None:
        """Give the Lease up, if it is ours, so that others need not wait for its end."""
        lease = self._door.get(LEASES, self._name, self._namespace)
        if lease.spec.holder_identity != self.identity:
            return
        now = micro_time(self._clock.now())
        # One second, as client-go writes: even a stale read delays a candidate no longer.
        spec = {
            "holderIdentity": "",
            "leaseDurationSeconds": 1,
            "acquireTime": now,
            "renewTime": now,
        }
        self._write(lease, spec)

    # One attempt's parts.

    def _create(self) -> bool:
        now = micro_time(self._clock.now())
        lease = Lease(
            metadata=ObjectMeta(name=self._name, namespace=self._namespace),
            spec=LeaseSpec(
                holder_identity=self.identity,
                lease_duration_seconds=self._duration,
                acquire_time=now,
                renew_time=now,
                lease_transitions=0,
            ),
        )
        try:
            self._observe(self._door.create(LEASES, lease, self._namespace))
        except AlreadyExists:
            return False
        return True

    def _observe(self, lease: Lease) -> None:
        if self._observed is None or _version(self._observed) != _version(lease):
            self._observed = lease
            self._observed_at = self._clock.monotonic()

    def _may_take(self, lease: Lease) -> bool:
        if lease.spec.holder_identity in ("", self.identity):
            return True
        # The holder's own duration counts when it is the longer one: it may be set differently.
        duration = max(self._settings.lease_duration, lease.spec.lease_duration_seconds or 0)
        return self._clock.monotonic() - self._observed_at >= duration

    def _take(self, lease: Lease) -> bool:
        now = micro_time(self._clock.now())
        spec: dict[str, object] = {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": self._duration,
            "renewTime": now,
        }
        if lease.spec.holder_identity != self.identity:
            spec["acquireTime"] = now
            spec["leaseTransitions"] = (lease.spec.lease_transitions or 0) + 1
        return self._write(lease, spec)

    def _write(self, lease: Lease, spec: Mapping[str, object]) -> bool:
        try:
            written = self._door.patch(
                LEASES,
                self._name,
                self._namespace,
                {"spec": spec},
                resource_version=lease.metadata.resource_version,
            )
        except (Conflict, NotFound):
            return False
        self._observe(written)
        return True

    @property
    def _duration(self) -> int:
        """The Lease's duration is a whole number of seconds; never less than we promise."""
        return math.ceil(self._settings.lease_duration)

    # The threads.

    def _compete(self) -> None:
        while not self._over.is_set():
            led = self._led
            try:
                if self.attempt() and not led:
                    log.info("%s leads: it holds Lease %s", self.identity, self._name)
                    self._acquired.set()
            except ApiError as error:
                log.warning("leader election on Lease %s: %s", self._name, error)
            except Exception:
                log.exception("leader election on Lease %s failed", self._name)
            self._clock.wait(self._over, self._pause)
        if self._led and self._clock.monotonic() < self._leads_until:
            self._release_quietly()

    @property
    def _pause(self) -> float:
        """Seconds to the next attempt. A candidate asks twice as often: what a leader that ends in
        order releases is taken over within the retry period, requests included."""
        period = self._settings.retry_period
        return period if self._led else period / 2

    def _release_quietly(self) -> None:
        try:
            self.release()
        except ApiError as error:
            log.warning(
                "Lease %s was not released; another process takes over in %g s: %s",
                self._name,
                self._settings.lease_duration,
                error,
            )

    def _begin(self) -> None:
        self._acquired.wait()
        if self._led and not self._over.is_set():
            self._on_started()

    def _guard(self) -> None:
        """Notice the end of our leadership even while a request hangs."""
        self._acquired.wait()
        while not self._over.is_set():
            left = self._leads_until - self._clock.monotonic()
            if left > 0:
                self._clock.wait(self._over, left)
            else:
                self._lose(f"it could not be renewed within {self._settings.renew_deadline:g} s")

    def _lose(self, why: str) -> None:
        with self._lock:
            if self._over.is_set():
                return
            self._leads_until = -math.inf
            self._over.set()
        log.error("%s leads no more: Lease %s: %s", self.identity, self._name, why)
        self._on_lost()


def _version(lease: Lease) -> tuple[str, str]:
    return lease.metadata.uid, lease.metadata.resource_version
