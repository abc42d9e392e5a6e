"""Following objects until each is settled: live on a terminal, plain lines in a pipe."""

import queue
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Protocol

from captfctl.cli.settled import Standing, Verdict, due_again, verdict
from captfctl.clock import Clock
from captfctl.cluster.door import Door
from captfctl.cluster.errors import NotFound
from captfctl.controller import Handler, Informer
from captfctl.model import keys
from captfctl.model.core import Event, Pod
from captfctl.model.events import EventReason
from captfctl.model.resources import EVENTS, PODS, TERRAFORM_CLUSTERS
from captfctl.model.terraform import TerraformCluster

Key = tuple[str, str]

# Said by other lines already, or only of interest to somebody who asks for the events.
_QUIET: frozenset[str] = frozenset(
    {
        EventReason.CONDITION_CHANGED,
        EventReason.STATE_ADOPTED,
        *("RunStarted", "StepStarted", "RunFinished"),  # the runner's
    }
)


@dataclass(frozen=True, slots=True)
class Request:
    """A pass of each object that somebody asked for (reconcile.md: Asking for a pass)."""

    at: datetime

    @property
    def id(self) -> str:
        """What the pass repeats in its answer."""
        return f"{self.at:%Y-%m-%dT%H:%M:%S.%fZ}"

    def ask(self, door: Door, keys_: Iterable[Key]) -> None:
        """Ask for it. An object that is gone meanwhile is left out."""
        patch = {"metadata": {"annotations": {keys.RECONCILE_REQUESTED: self.id}}}
        for namespace, name in keys_:
            with suppress(NotFound):
                door.patch(TERRAFORM_CLUSTERS, name, namespace, patch)


PATIENCE_SECONDS = 5.0
"""How long a gate may be closed before it counts as waiting for a person: its owner, identity or
Secret may have been created a moment after it."""


def _job_of(pod: Pod) -> Key:
    """Namespace and name of the pod's Job."""
    return pod.metadata.namespace, pod.metadata.labels.get(keys.JOB_NAME, "")


class Display(Protocol):
    """Where progress goes."""

    def event(self, key: Key, event: Event) -> None:
        """An event of an object was posted."""
        ...

    def standing(self, key: Key, verdict: Verdict, seconds: float) -> None:
        """The verdict on an object changed, `seconds` after the beginning."""
        ...

    def waiting(self, verdicts: Mapping[Key, Verdict]) -> None:
        """How all objects stand, while some are not settled; told again and again."""
        ...

    def close(self) -> None:
        """Nothing more will be shown."""
        ...


@dataclass
class Follower:
    """Watches objects and their events and tells a display.

    `seconds` in what it reports count from its creation. While it waits it calls `check` about
    twice a second, which raises when there is nothing to wait for any more. `request` is the pass
    that was asked for: until one has answered it, what an object says is not about now.
    """

    door: Door
    keys: Iterable[Key]
    clock: Clock
    display: Display
    check: Callable[[], None] = lambda: None
    request: Request | None = None
    _inbox: "queue.SimpleQueue[tuple[Key, TerraformCluster | Event | None]]" = field(
        default_factory=queue.SimpleQueue
    )

    def __post_init__(self) -> None:
        self._began = self.clock.monotonic()
        self._open = set(self.keys)
        self._since: dict[Key, tuple[Verdict, float]] = {}
        self._pods: dict[Key, Pod] = {}
        self._told_before = {event.metadata.uid for event in self.door.list(EVENTS).items}

    def until_settled(self, timeout: float) -> dict[Key, Verdict]:
        """The last verdict of each object, after all are settled or `timeout` seconds passed."""
        verdicts = {key: Verdict(Standing.WORKING, "not looked at yet") for key in self._open}

        def judge(key: Key, cluster: TerraformCluster | None) -> bool:
            gone = Verdict(Standing.WORKING, "is gone")
            verdicts[key] = gone if cluster is None else self._verdict(cluster)
            return self._final(key, verdicts[key])

        self._run(timeout, judge, verdicts)
        return verdicts

    def until_gone(self, timeout: float) -> dict[Key, Verdict]:
        """The objects that still exist after `timeout` seconds, or whose Jobs cannot start; empty
        as soon as all are gone."""
        left = {key: Verdict(Standing.WORKING, "still exists") for key in self._open}

        def judge(key: Key, cluster: TerraformCluster | None) -> bool:
            if cluster is None:
                left.pop(key, None)
                return True
            if not cluster.deleting:
                return False  # the deletion is not seen yet
            left[key] = self._verdict(cluster)
            return self._final(key, left[key])

        self._run(timeout, judge, left)
        return left

    def _verdict(self, cluster: TerraformCluster) -> Verdict:
        asked = self.request
        active = cluster.status.active_job
        job = (cluster.metadata.namespace, active.name if active else "")
        pods = [pod for pod in list(self._pods.values()) if active and _job_of(pod) == job]
        found = verdict(cluster, pods, asked.id if asked else "")
        if asked is None or found.standing is not Standing.FAILED:
            return found
        due = due_again(cluster, asked.at, self.clock.now())
        return (
            replace(found, why=f"{found.why}; the next try is due at {due:%H:%M:%SZ}")
            if due
            else found
        )

    def _run(
        self,
        timeout: float,
        judge: Callable[[Key, TerraformCluster | None], bool],
        verdicts: Mapping[Key, Verdict],
    ) -> None:
        deadline = self._began + timeout
        done: set[Key] = set()
        current: dict[Key, TerraformCluster | None] = {}
        with self._watching():
            while done != self._open and (left := deadline - self.clock.monotonic()) > 0:
                self.check()
                for key, thing in self._next(min(left, 0.5)):
                    if isinstance(thing, Event):
                        self._tell(key, thing)
                    else:
                        current[key] = thing
                for key, cluster in current.items():
                    if judge(key, cluster):
                        done.add(key)
                    else:
                        done.discard(key)
                self.display.waiting(verdicts)
        for key, thing in self._next(0.0):
            if isinstance(thing, Event):
                self._tell(key, thing)

    def _final(self, key: Key, new: Verdict) -> bool:
        """Whether `new` is the end of it; an impatient gate must have stood for a while."""
        now = self.clock.monotonic()
        old, since = self._since.get(key, (None, now))
        if old != new:
            since = now
            self._since[key] = (new, now)
            self.display.standing(key, new, now - self._began)
        return new.settled and (not new.patience or now - since >= PATIENCE_SECONDS)

    def _tell(self, key: Key, event: Event) -> None:
        if event.reason not in _QUIET:
            self.display.event(key, event)

    def _next(self, seconds: float) -> Iterator[tuple[Key, TerraformCluster | Event | None]]:
        """What arrived, after waiting up to `seconds` for the first thing."""
        try:
            yield self._inbox.get(timeout=seconds) if seconds else self._inbox.get_nowait()
            while True:
                yield self._inbox.get_nowait()
        except queue.Empty:
            return

    @contextmanager
    def _watching(self) -> Iterator[None]:
        objects = Informer(self.door, TERRAFORM_CLUSTERS, self.clock)
        events = Informer(self.door, EVENTS, self.clock)
        objects.add_handler(
            Handler(
                on_add=self._seen,
                on_update=lambda _, new: self._seen(new),
                on_delete=lambda old: self._inbox.put((old.key, None)),
            )
        )
        events.add_handler(Handler(on_add=self._happened))
        pods = Informer(self.door, PODS, self.clock)
        pods.add_handler(
            Handler(
                on_add=self._pod_seen,
                on_update=lambda _, new: self._pod_seen(new),
                on_delete=self._pod_gone,
            )
        )
        informers = (objects, events, pods)
        for informer in informers:
            informer.start()
        try:
            if objects.wait_synced(PATIENCE_SECONDS):
                for key in self._open:
                    if objects.get(*key) is None:
                        self._inbox.put((key, None))
            yield
        finally:
            for informer in informers:
                informer.stop()

    def _seen(self, cluster: TerraformCluster) -> None:
        if cluster.key in self._open:
            self._inbox.put((cluster.key, cluster))

    def _pod_seen(self, pod: Pod) -> None:
        self._pods[pod.key] = pod

    def _pod_gone(self, pod: Pod) -> None:
        self._pods.pop(pod.key, None)

    def _happened(self, event: Event) -> None:
        about = event.regarding
        if about is None or about.kind != TERRAFORM_CLUSTERS.kind:
            return
        key = (about.namespace, about.name)
        if key in self._open and event.metadata.uid not in self._told_before:
            self._inbox.put((key, event))
