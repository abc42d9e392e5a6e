"""The engine runs what is no Terraform: a tiny subject whose runs copy a text.

Nothing of `captfctl.terraform`, of our API group or of its operations is in here, so what this test
needs of the engine is all that the next user of it needs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from captfctl.cluster.door import Door, find
from captfctl.cluster.errors import AlreadyExists
from captfctl.embedded.store import EmbeddedStore
from captfctl.model import keys, names
from captfctl.model.core import ConfigMap, Container, Job, JobSpec, PodSpec, PodTemplate, Secret
from captfctl.model.meta import ObjectMeta, OwnerReference
from captfctl.model.reasons import WaitReason
from captfctl.model.resources import CONFIG_MAPS, JOBS, LEASES, NAMESPACES, SECRETS
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
from captfctl.runs.reader import DoorJobs, own_jobs
from captfctl.runs.run import Run
from captfctl.runs.slots import Slots
from captfctl.runs.start import Deferred, Started, Starter
from captfctl.runs.stuck import Starting, StuckKind, remove_unstarted
from tests.support.clock import FakeClock
from tests.support.faults import WRITES, Crash, HookedDoor, crashing_after

NAMESPACE = "apps"


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
        self.door.delete(SECRETS, names.run_secret(self.run.name), NAMESPACE)


@dataclass(frozen=True)
class Copied:
    """A finished run, as its subject reads it."""

    job: Job
    finished_at: datetime
    bookkept: bool
    ok: bool
    timed_out: bool
    pod_runs: bool = False

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


class World:
    """A store with one app. `copied` counts each run once, as an app's history would."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.door = EmbeddedStore.in_memory(self.clock).door()
        meta = ObjectMeta(name=NAMESPACE)
        self.door.create(NAMESPACES, NAMESPACES.type(metadata=meta))
        stored = self.door.create(
            CONFIG_MAPS,
            ConfigMap(
                api_version="v1",
                kind="ConfigMap",
                metadata=ObjectMeta(name="blog", namespace=NAMESPACE),
            ),
            NAMESPACE,
        )
        self.app = App("blog", stored.metadata.uid)
        self.copied: list[str] = []

    def run(self, attempt: int = 1, app: App | None = None, operation: str = "copy") -> Run:
        app = app or self.app
        name = f"{app.name}-{operation}-{attempt}"
        return Run(subject=app, operation=operation, name=name, deadline_seconds=60)

    def one_pass(self, door: Door) -> Started | Deferred | None:
        """What wants exactly one successful run does in each of its passes."""
        leases = Leases(door, DoorJobs(door), self.clock)
        jobs = own_jobs(DoorJobs(door), self.app)
        runs = finished.newest_first(read(job) for job in jobs if is_finished(job))
        self.copied += [run.job.metadata.name for run in finished.retire(door, runs)]
        prune(door, jobs, successful=1, failed=1)
        finished.release(leases, self.app, runs)
        finished.mark(door, [run for run in runs if not run.bookkept])
        active = finished.running_job(jobs)
        if active is not None:
            self._remove_if_stuck(door, active)
            return None
        listed = [job.metadata.name for job in jobs]
        lag = check_lag(
            door, leases, self.app, listed=listed, active_job="", block_move=True, deleting=False
        )
        if lag is Lag.LAGGING or any(run.ok for run in runs):
            return None
        run = self.run(next_attempt(jobs, "copy"))
        if leases.acquire(run) is not None:
            return None
        slots = Slots(door, DoorJobs(door), self.clock, 0)
        starter = Starter(door, leases, slots, self.clock)
        return starter.start(run, Copying(door, run, "hello"), str)

    def _remove_if_stuck(self, door: Door, job: Job) -> None:
        name = names.run_secret(job.metadata.name)

        def provided() -> bool:
            return find(door, SECRETS.metadata_only(), NAMESPACE, name) is not None

        stuck = Starting(door, self.clock.now(), job).stuck(provided=provided)
        if stuck is not None:
            assert stuck.kind is StuckKind.MISSING_PROVISION
            remove_unstarted(door, job, lambda: None)

    def end_jobs(self, ran: list[str]) -> None:
        """What a cluster does: a Job whose Secret exists runs and succeeds."""
        secrets = {secret.metadata.name for secret in self.door.list(SECRETS, NAMESPACE).items}
        for job in self.jobs():
            name = job.metadata.name
            if not is_finished(job) and names.run_secret(name) in secrets:
                ran.append(name)
                self.end(job, "Complete")

    def end(self, job: Job, kind: str, reason: str = "") -> None:
        now = self.clock.now().isoformat()
        condition = {"type": kind, "status": "True", "reason": reason, "lastTransitionTime": now}
        patch = {"status": {"conditions": [condition], "startTime": now}}
        self.door.patch(JOBS, job.metadata.name, NAMESPACE, patch, subresource="status")

    def jobs(self) -> list[Job]:
        return list(self.door.list(JOBS, NAMESPACE).items)

    def leases(self) -> list[str]:
        return [lease.metadata.name for lease in self.door.list(LEASES, NAMESPACE).items]


def writes_of_a_life() -> int:
    world, count = World(), 0

    def note(method: str, _: object) -> None:
        nonlocal count
        count += method in WRITES

    door = HookedDoor(world.door, before=note)
    world.one_pass(door)
    world.end_jobs([])
    world.one_pass(door)
    return count


def test_one_job_runs_and_is_read_once_whichever_write_the_process_dies_after():
    total = writes_of_a_life()
    assert total > 5
    for writes in range(1, total + 1):
        world, ran = World(), []
        try:
            door = crashing_after(world.door, writes)
            for _ in range(4):
                world.one_pass(door)
                world.end_jobs(ran)
                world.clock.advance(61)
        except Crash:
            world.end_jobs(ran)
        for _ in range(5):  # the next process
            world.clock.advance(61)
            world.one_pass(world.door)
            world.end_jobs(ran)
        assert len(ran) == 1, f"after write {writes}"
        assert world.leases() == []
        assert len(world.copied) <= 1  # a process that dies counts for itself
        assert all(is_bookkept(job) for job in world.jobs())


def test_a_run_that_fails_is_tried_with_the_next_attempt():
    world = World()
    world.one_pass(world.door)
    (job,) = world.jobs()
    world.end(job, "Failed", "DeadlineExceeded")
    assert read(world.jobs()[0]).timed_out
    world.one_pass(world.door)
    assert sorted(job.metadata.name for job in world.jobs()) == ["blog-copy-1", "blog-copy-2"]
    assert world.copied == ["blog-copy-1"]


def test_apps_of_one_team_share_its_limit():
    world = World()
    team = Group("team", "team-lease", "Team", frozenset({"migrate"}))
    world.one_pass(world.door)
    other = App("shop", "uid-shop", team)
    slots = Slots(world.door, DoorJobs(world.door), world.clock, limit=0)
    wait = slots.take(world.run(app=other), 1, world.clock.now())
    assert wait is not None
    assert wait.reason is WaitReason.JOB_SLOT


def test_an_exclusive_operation_of_a_team_keeps_those_of_its_apps_out():
    world = World()
    group = Group("team", "team-lease", "Team", frozenset({"migrate"}))
    leases = Leases(world.door, DoorJobs(world.door), world.clock)
    team, app = App("team", "uid-team", group, kind="Team"), App("shop", "uid-shop", group)
    assert leases.acquire(world.run(app=team, operation="migrate")) is None
    wait = leases.acquire(world.run(app=app, operation="migrate"))
    assert wait is not None
    assert wait.reason is WaitReason.CLUSTER_OPERATION
    assert leases.acquire(world.run(app=app, operation="copy")) is None
