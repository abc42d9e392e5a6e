"""The engine runs what is no Terraform: the apps of `tests/support/apps.py`. With faults of every
kind: tests/simulation."""

from captfctl.cluster.door import Door
from captfctl.embedded.store import EmbeddedStore
from captfctl.model.core import ConfigMap, Job
from captfctl.model.meta import ObjectMeta
from captfctl.model.reasons import WaitReason
from captfctl.model.resources import CONFIG_MAPS, JOBS, LEASES, NAMESPACES
from captfctl.model.subject import Group
from captfctl.runs.jobs import is_bookkept
from captfctl.runs.leases import Leases
from captfctl.runs.reader import DoorJobs
from captfctl.runs.slots import Slots
from captfctl.runs.start import Deferred, Started
from tests.support.apps import NAMESPACE, App, Passes, end, provided_jobs, read
from tests.support.clock import FakeClock
from tests.support.faults import WRITES, Crash, HookedDoor, crashing_after


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

    def one_pass(self, door: Door) -> Started | Deferred | None:
        jobs = DoorJobs(door)
        slots = Slots(door, jobs, self.clock, 0)
        passes = Passes(door, jobs, self.clock, slots, self._count)
        return passes.look_at(self.app)

    def _count(self, job: Job) -> None:
        self.copied.append(job.metadata.name)

    def end_jobs(self, ran: list[str]) -> None:
        """What a cluster does: a Job whose Secret exists runs and succeeds."""
        for job in provided_jobs(self.door):
            ran.append(job.metadata.name)
            end(self.door, self.clock, job, "Complete")

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
    end(world.door, world.clock, job, "Failed", "DeadlineExceeded")
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
    wait = slots.take(other.run(), 1, world.clock.now())
    assert wait is not None
    assert wait.reason is WaitReason.JOB_SLOT


def test_an_exclusive_operation_of_a_team_keeps_those_of_its_apps_out():
    world = World()
    group = Group("team", "team-lease", "Team", frozenset({"migrate"}))
    leases = Leases(world.door, DoorJobs(world.door), world.clock)
    team, app = App("team", "uid-team", group, kind="Team"), App("shop", "uid-shop", group)
    assert leases.acquire(team.run(operation="migrate")) is None
    wait = leases.acquire(app.run(operation="migrate"))
    assert wait is not None
    assert wait.reason is WaitReason.CLUSTER_OPERATION
    assert leases.acquire(app.run(operation="copy")) is None
