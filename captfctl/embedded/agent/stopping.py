"""Why and until when a pod has to end (runs.md: Deadlines and lock timeouts)."""

from dataclasses import dataclass

from captfctl.embedded.agent.directory import Record
from captfctl.model.core import Pod

_DEFAULT_GRACE = 30  # what the API server fills in
SHUT_DOWN = "Terminated"


@dataclass(frozen=True)
class Stop:
    """`kill_at` is a Unix time: what still runs then is killed. `reason` and `message` go into the
    pod's status; empty when the pod was deleted.
    """

    kill_at: float
    reason: str = ""
    message: str = ""


class StopReasons:
    """Everything that can end one pod."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._shut_down_at: float | None = None
        self._shut_down_grace = 0.0
        self._gone_at: float | None = None

    @property
    def gone(self) -> bool:
        """Whether the pod's object is no longer in the API."""
        return self._gone_at is not None

    def vanish(self, now: float) -> None:
        """The pod's object is gone: nothing is left to wait for."""
        self._gone_at = now if self._gone_at is None else self._gone_at

    def shut_down(self, now: float, grace: float) -> None:
        """The machine or the API goes away."""
        self._shut_down_at = now
        self._shut_down_grace = grace

    def deadline(self, pod: Pod) -> float | None:
        """The Unix time of the pod's own deadline."""
        seconds = pod.spec.active_deadline_seconds
        return None if seconds is None else self._record.started_at + seconds

    def current(self, pod: Pod, now: float) -> Stop | None:
        """The earliest end that applies; with a reason, when one of those that apply has one."""
        if self._gone_at is not None:
            return Stop(self._gone_at)
        stops = [stop for stop in self._all(pod, now) if stop is not None]
        if not stops:
            return None
        named = next((stop for stop in stops if stop.reason), stops[0])
        return Stop(min(stop.kill_at for stop in stops), named.reason, named.message)

    def _all(self, pod: Pod, now: float) -> list[Stop | None]:
        return [self._decided(), _deleted(pod), self._shutting_down(pod), self._late(pod, now)]

    def _decided(self) -> Stop | None:
        """What this agent or one before it has begun."""
        record = self._record
        return Stop(record.stop_at, record.reason, record.message) if record.reason else None

    def _shutting_down(self, pod: Pod) -> Stop | None:
        if self._shut_down_at is None:
            return None
        grace = min(self._shut_down_grace, _grace(pod))
        message = "The node agent was shut down, and the pod with it."
        return Stop(self._shut_down_at + grace, SHUT_DOWN, message)

    def _late(self, pod: Pod, now: float) -> Stop | None:
        deadline = self.deadline(pod)
        if deadline is None or now < deadline:
            return None
        message = "The pod was active on the node for longer than its deadline allows."
        return Stop(deadline + _grace(pod), "DeadlineExceeded", message)


def _deleted(pod: Pod) -> Stop | None:
    """The deletion timestamp is the end of the grace period."""
    marked = pod.metadata.deletion_timestamp
    return None if marked is None else Stop(marked.timestamp())


def _grace(pod: Pod) -> float:
    seconds = pod.spec.termination_grace_period_seconds
    return float(_DEFAULT_GRACE if seconds is None else seconds)
