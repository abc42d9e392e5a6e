"""A tiny second subject of the runs engine, whose runs copy a text.

Nothing of `captfctl.terraform`, of our API group or of its operations is in here, so what this
needs of the engine is all that the next user of it needs.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from captfctl.clock import Clock
from captfctl.cluster.door import Door, find
from captfctl.cluster.errors import AlreadyExists, NotFound
from captfctl.model import keys, names
from captfctl.model.core import Container, Job, JobSpec, PodSpec, PodTemplate, Secret
from captfctl.model.meta import ObjectMeta, OwnerReference
from captfctl.model.resources import JOBS, SECRETS
from captfctl.model.subject import Group
from captfctl.runs import finished
from captfctl.runs.jobs import (
    Outcome,
    deadline_exceeded,
    finish_time,
    is_bookkept,
    is_finished,
    next_attempt,
    outcome,
)
from captfctl.runs.lag import Lag, check_lag
from captfctl.runs.leases import Leases
from captfctl.runs.prune import prune
from captfctl.runs.reader import JobsReader, own_jobs
from captfctl.runs.run import Run
from captfctl.runs.slots import SlotOwner, Slots
from captfctl.runs.start import Deferred, Started, Starter
from captfctl.runs.stuck import Starting, StuckKind, remove_unstarted

NAMESPACE = "apps"
TEXT = "example.com/text"
"""The annotation of a Job with the text that it copies."""


@dataclass(frozen=True)
class App:
    """A subject: a ConfigMap that wants a text copied."""

    name: str
    uid: str
    group: Group | None = None
    namespace: str = NAMESPACE
    kind: str = "App"

    @property
    def labels(self) -> Mapping[str, str]:
        return {keys.OWNER_KIND: self.kind, keys.OWNER_NAME: self.name}

    @property
    def run_labels(self) -> Mapping[str, str]:
        return {**self.labels, keys.MANAGED: keys.TRUE, keys.CLUSTER_NAME: "team"}

    @property
    def run_lease(self) -> str:
        return f"app-{self.name}"

    def controls(self, metadata: ObjectMeta) -> bool:
        controller = metadata.controller
        return controller is not None and controller.uid == self.uid

    def run(self, attempt: int = 1, operation: str = "copy") -> Run:
        name = f"{self.name}-{operation}-{attempt}"
        return Run(subject=self, operation=operation, name=name, deadline_seconds=60)


@dataclass(frozen=True)
class Copying:
    """The work of one run: a Job, and a Secret with the text."""

    door: Door
    run: Run
    text: str

    def build(self) -> Job:
        subject = self.run.subject
        owner = OwnerReference(
            api_version="v1", kind="ConfigMap", name=subject.name, uid=subject.uid, controller=True
        )
        attempt = self.run.name.rpartition("-")[2]
        labels = {**subject.run_labels, keys.OP: self.run.operation, keys.ATTEMPT: attempt}
        container = Container(name="copy", image="registry.test/copy:v1")
        return Job(
            api_version=JOBS.api_version,
            kind="Job",
            metadata=ObjectMeta(
                name=self.run.name,
                namespace=subject.namespace,
                labels=labels,
                annotations={TEXT: self.text},
                owner_references=[owner],
            ),
            spec=JobSpec(
                backoff_limit=0,
                active_deadline_seconds=self.run.deadline_seconds,
                template=PodTemplate(spec=PodSpec(restart_policy="Never", containers=[container])),
            ),
        )

    def provide(self, job: Job) -> None:
        secret = Secret(
            api_version="v1",
            kind="Secret",
            metadata=ObjectMeta(name=names.run_secret(job.metadata.name), namespace=NAMESPACE),
            data={"text": self.text.encode()},
        )
        try:
            self.door.create(SECRETS, secret, NAMESPACE)
        except AlreadyExists:
            return

    def withdraw(self) -> None:
        try:
            self.door.delete(SECRETS, names.run_secret(self.run.name), NAMESPACE)
        except NotFound:
            return


@dataclass(frozen=True)
class Copied:
    """A finished run, as its subject reads it."""

    job: Job
    finished_at: datetime
    bookkept: bool
    ok: bool
    timed_out: bool
    pod_runs: bool = False

    @property
    def text(self) -> str:
        return self.job.metadata.annotations.get(TEXT, "")

    def marks(self) -> dict[str, str]:
        return {keys.BOOKKEPT: keys.TRUE}


def read(job: Job) -> Copied:
    return Copied(
        job,
        finish_time(job),
        is_bookkept(job),
        ok=outcome(job) is Outcome.SUCCEEDED,
        timed_out=deadline_exceeded(job),
    )


@dataclass(frozen=True)
class Passes:
    """What wants one successful run for each text does in each of its passes. `count` is told each
    run once, for an app's history."""

    door: Door
    jobs: JobsReader
    clock: Clock
    slots: Slots
    count: Callable[[Job], object]

    def look_at(
        self, app: App, text: str = "hello", operation: str = "copy"
    ) -> Started | Deferred | None:
        """None: there was nothing to start, or it has to wait."""
        try:
            return self._look_at(app, text, operation)
        finally:
            self.slots.passed(SlotOwner.of(app))

    def _look_at(self, app: App, text: str, operation: str) -> Started | Deferred | None:
        leases = Leases(self.door, self.jobs, self.clock)
        jobs = own_jobs(self.jobs, app)
        runs = finished.newest_first(read(job) for job in jobs if is_finished(job))
        self._keep_books(leases, app, jobs, runs)
        active = finished.running_job(jobs)
        if active is not None:
            self._remove_if_stuck(active)
            return None
        listed = [job.metadata.name for job in jobs]
        lag = check_lag(
            self.door, leases, app, listed=listed, active_job="", block_move=True, deleting=False
        )
        if lag is Lag.LAGGING or any(run.ok and run.text == text for run in runs):
            return None
        return self._start(leases, app.run(next_attempt(jobs, operation), operation), text)

    def _keep_books(self, leases: Leases, app: App, jobs: list[Job], runs: list[Copied]) -> None:
        for run in finished.retire(self.door, runs):
            self.count(run.job)
        prune(self.door, jobs, successful=1, failed=1)
        finished.release(leases, app, runs)
        finished.mark(self.door, [run for run in runs if not run.bookkept])

    def _start(self, leases: Leases, run: Run, text: str) -> Started | Deferred | None:
        if self.slots.take(run, 0, self.clock.now()) is not None:
            return None
        if leases.acquire(run) is not None:
            self.slots.give_up(run)
            return None
        starter = Starter(self.door, leases, self.slots, self.clock)
        return starter.start(run, Copying(self.door, run, text), str)

    def _remove_if_stuck(self, job: Job) -> None:
        name = names.run_secret(job.metadata.name)

        def provided() -> bool:
            return find(self.door, SECRETS.metadata_only(), NAMESPACE, name) is not None

        stuck = Starting(self.door, self.clock.now(), job).stuck(provided=provided)
        if stuck is not None:
            assert stuck.kind is StuckKind.MISSING_PROVISION
            remove_unstarted(self.door, job, lambda: None)


def provided_jobs(door: Door) -> list[Job]:
    """The unfinished Jobs that have what their pods mount."""
    secrets = {secret.metadata.name for secret in door.list(SECRETS, NAMESPACE).items}
    return [
        job
        for job in door.list(JOBS, NAMESPACE).items
        if not is_finished(job) and names.run_secret(job.metadata.name) in secrets
    ]


def end(door: Door, clock: Clock, job: Job, kind: str, reason: str = "") -> None:
    """What the Job controller writes at a Job's end."""
    now = clock.now().isoformat()
    condition = {"type": kind, "status": "True", "reason": reason, "lastTransitionTime": now}
    patch = {"status": {"conditions": [condition], "startTime": now}}
    door.patch(JOBS, job.metadata.name, NAMESPACE, patch, subresource="status")
