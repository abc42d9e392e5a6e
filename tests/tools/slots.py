#!/usr/bin/env python3
"""Many objects under a limit of active Jobs: are there ever more, and how long do slots stand idle?

    python tests/tools/slots.py [--limits 1 2 5] [--objects 50] [--checks 500] [--seconds 2]

A real manager over an embedded store; Jobs only act as if: each takes `--seconds` and leaves a
state. For each limit all objects are created before the manager starts. Its row tells how many Jobs
there were at once at most, which part of the slots' time went by while something waited for one,
and the median pause from the end of a Job to the beginning of the next.

Then the drift of `--checks` objects is due all the time, and a person changes one of them, five
times: the row tells how long the changes waited for their Jobs. Exits with 1 when a limit was
exceeded, 5 % of the slots' time was idle, or a change waited for longer than one run.
"""

import argparse
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY))

from captfctl.clock import SystemClock  # noqa: E402
from captfctl.cluster.door import find  # noqa: E402
from captfctl.controller import Controller, Handler, Informer, Result  # noqa: E402
from captfctl.manager import Manager  # noqa: E402
from captfctl.model import keys  # noqa: E402
from captfctl.model.core import Job  # noqa: E402
from captfctl.model.ops import Op  # noqa: E402
from captfctl.model.resources import CLUSTERS, JOBS, TERRAFORM_CLUSTERS  # noqa: E402
from captfctl.runs.jobs import is_finished  # noqa: E402
from captfctl.settings import ManagerSettings  # noqa: E402
from tests.support.cluster_world import (  # noqa: E402
    NAMESPACE,
    World,
    cluster,
    terraform_cluster,
)

IDLE = 0.05
CHANGES = 5
PATIENCE = 900.0
FIRST_LIMIT = 20
SLACK = 0.5
"""Seconds that a change may wait beyond a run, for what a busy machine takes."""


class Span(NamedTuple):
    """When a Job was there, in seconds of the monotonic clock."""

    operation: str
    owner: str
    begun: float
    ended: float | None


class Acting:
    """Lets each Job take its time and succeed, and notes when it was there."""

    def __init__(self, world: World, seconds: float) -> None:
        self.seconds = seconds
        self._world = world
        self._lock = threading.Lock()
        self._spans: dict[str, Span] = {}
        self._before: set[str] = set()
        self._jobs = Informer(world.door, JOBS, world.clock)
        self._jobs.add_handler(Handler(on_add=self._seen, on_update=lambda _, job: self._seen(job)))
        self._controller: Controller[tuple[str, str]] = Controller(
            "acting", self._act, world.clock, workers=8
        )

    def start(self) -> None:
        self._jobs.start()
        self._controller.start()

    def stop(self) -> None:
        self._controller.stop(5)
        self._jobs.stop(5)

    def spans(self) -> list[Span]:
        """Of every Job, in the order of their beginnings."""
        with self._lock:
            return sorted(self._spans.values(), key=lambda span: span.begun)

    def forget(self) -> None:
        """Begin to note anew: Jobs of before do not count, whatever still happens to them."""
        with self._lock:
            self._before.update(self._spans)
            self._spans.clear()

    def _seen(self, job: Job) -> None:
        now, uid = time.monotonic(), job.metadata.uid
        labels = job.metadata.labels
        over = is_finished(job)
        with self._lock:
            if uid in self._before:
                return
            span = self._spans.get(uid)
            if span is None:
                end = now if over else None
                self._spans[uid] = Span(labels[keys.OP], labels[keys.OWNER_NAME], now, end)
            elif span.ended is None and over:
                self._spans[uid] = span._replace(ended=now)
        if span is None and not over:
            self._controller.queue.add(job.key)

    def _act(self, key: tuple[str, str]) -> Result:
        job = find(self._world.door, JOBS, *key)
        if job is None or is_finished(job):
            return Result()
        with self._lock:
            left = self._spans[job.metadata.uid].begun + self.seconds - time.monotonic()
        if left > 0:
            return Result(requeue_after=left)
        self._world.runner.succeed(job)
        return Result()


@contextmanager
def objects(count: int, seconds: float) -> Iterator[tuple[World, Acting]]:
    """A world with so many clusters, and Jobs that take `seconds`."""
    world = World(clock=SystemClock())  # type: ignore[arg-type]
    world.populate()
    for number in range(1, count):
        owner = world.create(CLUSTERS, cluster(f"c-{number}"))
        world.create(TERRAFORM_CLUSTERS, terraform_cluster(owner))
    acting = Acting(world, seconds)
    acting.start()
    try:
        yield world, acting
    finally:
        acting.stop()
        world.store.close()


@contextmanager
def manager(world: World, limit: int, drift_every: timedelta = timedelta(days=1)) -> Iterator[None]:
    settings = ManagerSettings(
        runner_image="registry.example.com/captfctl:test",
        health_addr="",
        diagnostics_address="",
        max_active_jobs=limit,
        drift_default_interval=drift_every,
    )
    running = Manager(world.door, settings, world.clock)
    running.start()
    try:
        yield
    finally:
        running.stop(30)


def wait(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {PATIENCE:.0f} s")
        time.sleep(0.05)


def most_at_once(spans: list[Span]) -> int:
    moves = [(s.begun, 1) for s in spans] + [(s.ended, -1) for s in spans if s.ended is not None]
    now, most = 0, 0
    for _, move in sorted(moves):
        now += move
        most = max(most, now)
    return most


def idle_part(spans: list[Span], limit: int) -> float:
    """The part of the slots' time in which one was free while something waited for it."""
    moves = sorted([(s.begun, 1) for s in spans] + [(s.ended or s.begun, -1) for s in spans])
    waiting, active, idle = len(spans), 0, 0.0
    last = moves[0][0]
    for at, move in moves:
        idle += (at - last) * (min(limit, active + waiting) - active)
        last = at
        active += move
        waiting -= move > 0
    return idle / (limit * (last - moves[0][0]))


def pauses(spans: list[Span], limit: int) -> list[float]:
    """From each end of a Job to the beginning of the one that took its slot."""
    ends = sorted(span.ended for span in spans if span.ended is not None)
    return [max(0.0, span.begun - end) for span, end in zip(spans[limit:], ends, strict=False)]


def fill(limit: int, count: int, seconds: float) -> bool:
    with objects(count, seconds) as (world, acting), manager(world, limit):
        wait(lambda: sum(s.ended is not None for s in acting.spans()) == count, "all applies")
        spans = acting.spans()
    most, idle = most_at_once(spans), idle_part(spans, limit)
    pause = statistics.median(pauses(spans, limit)) * 1000
    say(f"limit {limit}: {count} objects, at most {most} Jobs at once", end="")
    say(f", {idle:.1%} of the slots' time idle, median pause {pause:.0f} ms")
    return most <= limit and idle <= IDLE


def change_among_checks(limit: int, count: int, seconds: float) -> bool:
    with objects(count, 0.0) as (world, acting):
        with manager(world, FIRST_LIMIT):
            wait(lambda: len(acting.spans()) == count, "all applies")
            wait(lambda: all(s.ended is not None for s in acting.spans()), "their ends")
        acting.seconds = seconds
        acting.forget()
        with manager(world, limit, timedelta(seconds=1)):
            wait(lambda: len(acting.spans()) > limit, "drift checks")
            waited = [change(world, acting, number) for number in range(CHANGES)]
            spans = acting.spans()
    checks, most = sum(span.operation == Op.DRIFT for span in spans), most_at_once(spans)
    say(f"limit {limit}: {checks} of {count} checks begun, at most {most} Jobs at once", end="")
    say(f", changes waited {', '.join(f'{one:.2f}' for one in waited)} s")
    return max(waited) <= seconds + SLACK and most <= limit


def change(world: World, acting: Acting, number: int) -> float:
    """Change an object as a person does; how long its apply waited for a slot."""
    name = f"c-{1 + number}"
    begun = time.monotonic()
    patch = {"spec": {"variables": {"region": f"eu-{number}"}}}
    world.door.patch(TERRAFORM_CLUSTERS, name, NAMESPACE, patch)
    found: list[Span] = []

    def started() -> bool:
        spans = acting.spans()
        found[:] = [s for s in spans if s.owner == name and s.operation == Op.APPLY]
        return bool(found)

    wait(started, f"the apply of {name}")
    wait(lambda: acting.spans()[-1].begun > found[0].begun, "another run")
    return found[0].begun - begun


def say(text: str, end: str = "\n") -> None:
    sys.stdout.write(text + end)
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--limits", type=int, nargs="+", default=[1, 2, 5])
    parser.add_argument("--objects", type=int, default=50, help="of each limit; 0: not at all")
    parser.add_argument("--checks", type=int, default=500, help="objects with drift due; 0: none")
    parser.add_argument("--seconds", type=float, default=2.0, help="how long a run takes")
    options = parser.parse_args()
    good = True
    for limit in options.limits:
        if options.objects:
            good &= fill(limit, options.objects, options.seconds)
    for limit in options.limits:
        if options.checks:
            good &= change_among_checks(limit, options.checks, options.seconds)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
