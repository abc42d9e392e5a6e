"""Following objects until each is settled: live on a terminal, plain lines in a pipe."""

import queue
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol

from captfctl.cli.settled import Standing, Verdict, due_again, verdict
from captfctl.cli.targets import Target
from captfctl.clock import Clock
from captfctl.cluster.door import Door
from captfctl.cluster.errors import NotFound
from captfctl.controller import Handler, Informer
from captfctl.model import keys
from captfctl.model.core import Event, Pod
from captfctl.model.events import EventReason
from captfctl.model.meta import micro_time
from captfctl.model.resource import Resource
from captfctl.model.resources import EVENTS, PODS
from captfctl.model.terraform import TerraformObject

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
        return micro_time(self.at)

    def ask(self, door: Door, targets: Iterable[Target]) -> None:
        """Ask for it. An object that is gone meanwhile is left out."""
        patch = {"metadata": {"annotations": {keys.RECONCILE_REQUESTED: self.id}}}
        for target in targets:
            with suppress(NotFound):
                door.patch(target.resource, target.name, target.namespace, patch)


PATIENCE_SECONDS = 5.0
"""How long a gate may be closed before it counts as waiting for a person: its owner, identity or
Secret may have been created a moment after it."""


def _job_of(pod: Pod) -> tuple[str, str]:
    """Namespace and name of the pod's Job."""
    return pod.metadata.namespace, pod.metadata.labels.get(keys.JOB_NAME, "")


class Display(Protocol):
    """Where progress goes."""

    def event(self, target: Target, event: Event) -> None:
        """An event of an object was posted."""
        ...

    def standing(self, target: Target, verdict: Verdict, seconds: float) -> None:
        """The verdict on an object changed, `seconds` after the beginning."""
        ...

    def waiting(self, verdicts: Mapping[Target, Verdict]) -> None:
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
    targets: Iterable[Target]
    clock: Clock
    display: Display
    check: Callable[[], None] = lambda: None
    request: Request | None = None
    _inbox: "queue.SimpleQueue[tuple[Target, TerraformObject | Event | None]]" = field(
        default_factory=queue.SimpleQueue
    )

    def __post_init__(self) -> None:
        self._began = self.clock.monotonic()
        self._open = set(self.targets)
        self._since: dict[Target, tuple[Verdict | None, float]] = {}
        self._moved = self._began
        self._shown: dict[Target, Verdict] = {}
        self._pods: dict[tuple[str, str], Pod] = {}
        self._told_before = {event.metadata.uid for event in self.door.list(EVENTS).items}

    def until_settled(self, timeout: float) -> dict[Target, Verdict]:
        """The last verdict of each object, after all are settled or `timeout` seconds passed."""
        verdicts = {target: Verdict(Standing.WORKING, "not looked at yet") for target in self._open}

        def judge(target: Target, obj: TerraformObject | None) -> Verdict:
            gone = Verdict(Standing.WORKING, "is gone")
            verdicts[target] = gone if obj is None else self._verdict(obj)
            return verdicts[target]

        self._run(timeout, judge, verdicts)
        return verdicts

    def until_gone(self, timeout: float) -> dict[Target, Verdict]:
        """The objects that still exist after `timeout` seconds, or whose Jobs cannot start; empty
        as soon as all are gone."""
        exists = Verdict(Standing.WORKING, "still exists")
        left = dict.fromkeys(self._open, exists)

        def judge(target: Target, obj: TerraformObject | None) -> Verdict | None:
            if obj is None:
                left.pop(target, None)
                return None
            left[target] = self._verdict(obj) if obj.deleting else exists
            return left[target]

        self._run(timeout, judge, left)
        return left

    def _verdict(self, obj: TerraformObject) -> Verdict:
        asked = self.request
        active = obj.status.active_job
        job = (obj.metadata.namespace, active.name if active else "")
        pods = [pod for pod in list(self._pods.values()) if _job_of(pod) == job] if active else []
        found = verdict(obj, pods, asked.id if asked else "")
        if asked is None or found.standing is not Standing.FAILED:
            return found
        due = due_again(obj, asked.at, self.clock.now())
        return (
            replace(found, why=f"{found.why}; the next try is due at {due:%H:%M:%SZ}")
            if due
            else found
        )

    def _run(
        self,
        timeout: float,
        judge: Callable[[Target, TerraformObject | None], Verdict | None],
        verdicts: Mapping[Target, Verdict],
    ) -> None:
        """Until every object is settled. `judge` gives None for one that need not be."""
        deadline = self._began + timeout
        done: set[Target] = set()
        current: dict[Target, TerraformObject | None] = {}
        with self._watching():
            while done != self._open and (left := deadline - self.clock.monotonic()) > 0:
                self.check()
                for target, thing in self._next(min(left, 0.5)):
                    if isinstance(thing, Event):
                        self._tell(target, thing)
                    else:
                        current[target] = thing
                found = {target: judge(target, obj) for target, obj in current.items()}
                done = self._finished(found)
                self.display.waiting(verdicts)
        for target, thing in self._next(0.0):
            if isinstance(thing, Event):
                self._tell(target, thing)

    def _finished(self, found: Mapping[Target, Verdict | None]) -> set[Target]:
        """Those that nothing will happen to any more. A gate must have stood for a while, and
        nothing else may have moved meanwhile, which it may wait for."""
        now = self.clock.monotonic()
        for target, new in found.items():
            self._note(target, new, now)
        still = now - self._moved >= PATIENCE_SECONDS
        return {
            target
            for target, new in found.items()
            if new is None or (new.settled and (still or not new.patience))
        }

    def _note(self, target: Target, new: Verdict | None, now: float) -> None:
        if target not in self._since or self._since[target][0] != new:
            self._since[target] = (new, now)
            self._moved = now
        if new is None:
            return
        # A gate that opens in a moment is not worth telling.
        told = not new.patience or now - self._since[target][1] >= PATIENCE_SECONDS
        if told and self._shown.get(target) != new:
            self._shown[target] = new
            self.display.standing(target, new, now - self._began)

    def _tell(self, target: Target, event: Event) -> None:
        if event.reason not in _QUIET:
            self.display.event(target, event)

    def _next(self, seconds: float) -> Iterator[tuple[Target, TerraformObject | Event | None]]:
        """What arrived, after waiting up to `seconds` for the first thing."""
        try:
            yield self._inbox.get(timeout=seconds) if seconds else self._inbox.get_nowait()
            while True:
                yield self._inbox.get_nowait()
        except queue.Empty:
            return

    @contextmanager
    def _watching(self) -> Iterator[None]:
        objects = {
            target.kind: self._objects(target.kind, target.resource) for target in self._open
        }
        events = Informer(self.door, EVENTS, self.clock)
        events.add_handler(Handler(on_add=self._happened))
        pods = Informer(self.door, PODS, self.clock)
        pods.add_handler(
            Handler(
                on_add=self._pod_seen,
                on_update=lambda _, new: self._pod_seen(new),
                on_delete=self._pod_gone,
            )
        )
        informers: tuple[Informer[Any], ...] = (*objects.values(), events, pods)
        for informer in informers:
            informer.start()
        try:
            for target in self._open:
                known = objects[target.kind]
                if known.wait_synced(PATIENCE_SECONDS) and target.key not in known:
                    self._inbox.put((target, None))
            yield
        finally:
            for informer in informers:
                informer.stop()

    def _objects(self, kind: str, resource: Resource[Any]) -> Informer[Any]:
        """The objects of one kind."""

        def tell(obj: TerraformObject, *, gone: bool = False) -> None:
            target = Target(kind, *obj.key)
            if target in self._open:
                self._inbox.put((target, None if gone else obj))

        informer: Informer[Any] = Informer(self.door, resource, self.clock)
        informer.add_handler(
            Handler(
                on_add=tell,
                on_update=lambda _, new: tell(new),
                on_delete=lambda old: tell(old, gone=True),
            )
        )
        return informer

    def _pod_seen(self, pod: Pod) -> None:
        self._pods[pod.key] = pod

    def _pod_gone(self, pod: Pod) -> None:
        self._pods.pop(pod.key, None)

    def _happened(self, event: Event) -> None:
        about = event.regarding
        if about is None or event.metadata.uid in self._told_before:
            return
        target = Target(about.kind, about.namespace, about.name)
        if target in self._open:
            self._inbox.put((target, event))
