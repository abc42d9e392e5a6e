"""Limits on running Jobs, and who is next (runs.md: Limits on running Jobs)."""

from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from captfctl.cluster.errors import Unavailable
from captfctl.model.ops import Op
from captfctl.model.owner import Owner
from captfctl.model.reasons import WaitReason
from captfctl.model.resources import JOBS
from captfctl.runs.slots import UNSHOWN_AFTER, SlotOwner, Slots
from tests.support.clock import START, FakeClock
from tests.support.faults import failing
from tests.support.runs import World, run_spec

NO_LIMIT = 0


def crowd(count: int, cluster: str = "prod") -> World:
    world = World()
    for index in range(count):
        world.add_job(run_spec(member(f"m{index}", cluster)))
    return world


def member(name: str, cluster: str = "prod") -> Owner:
    return Owner("TerraformMachine", "team-a", name, f"uid-{name}", cluster)


@pytest.mark.parametrize(
    ("limit", "active", "op", "starts"),
    [
        (20, 15, Op.DRIFT, True),
        (20, 16, Op.DRIFT, False),
        (20, 16, Op.REFRESH, False),
        (20, 19, Op.APPLY, True),
        (20, 20, Op.APPLY, False),
        (20, 20, Op.DESTROY, False),
        (5, 3, Op.DRIFT, True),
        (5, 4, Op.DRIFT, False),
        (4, 2, Op.DRIFT, True),
        (4, 3, Op.DRIFT, False),
        (2, 0, Op.DRIFT, True),
        (2, 1, Op.DRIFT, False),
        (2, 1, Op.APPLY, True),
        (1, 0, Op.DRIFT, True),
        (1, 1, Op.APPLY, False),
    ],
)
@pytest.mark.parametrize("of", ["the manager", "Cluster prod"])
def test_background_runs_leave_a_fifth_of_the_slots_and_at_least_one_to_others(
    limit, active, op, starts, of
):
    world = crowd(active)
    limits = (limit, NO_LIMIT) if of == "the manager" else (NO_LIMIT, limit)
    wait = world.slots(limits[0]).take(world.run(op).run, limits[1], START)
    assert (wait is None) is starts
    if wait is not None:
        assert wait.reason is WaitReason.JOB_SLOT
        assert f"{of} is at its limit of {limit} " in wait.message


def test_no_limit_never_waits():
    assert crowd(5).slots(NO_LIMIT).take(run_spec(member("x")).run, NO_LIMIT, START) is None


def test_managers_limit_is_reported_before_the_clusters():
    world = crowd(2)
    wait = world.slots(2).take(world.run().run, 2, START)
    assert wait is not None
    assert "the manager" in wait.message


def test_finished_jobs_and_other_clusters_take_no_slot():
    world = crowd(1, cluster="other")
    world.finished()
    assert world.slots().take(world.run().run, 1, START) is None


def test_unknown_cluster_has_no_limit():
    world = crowd(1, cluster="")
    assert world.slots().take(run_spec(member("x", "")).run, 1, START) is None


def test_message_does_not_change_with_the_number_of_running_jobs():
    few, many = crowd(2), crowd(4)
    wait = few.slots(2).take(few.run().run, NO_LIMIT, START)
    assert wait == many.slots(2).take(many.run().run, NO_LIMIT, START)


@dataclass
class Shown:
    """The Jobs as a cache shows them that is behind until it is told otherwise."""

    running: set[tuple[str, str]] = field(default_factory=set)
    ended: set[tuple[str, str]] = field(default_factory=set)

    def running_keys(self, namespace="", group=""):
        return {key for key in self.running if not group or key[1].startswith(f"captf-m-{group}-")}

    def has_job(self, namespace, name):
        return (namespace, name) in self.running | self.ended


class Office:
    """Slots over such a cache, and who was woken."""

    def __init__(self, limit: int, door=None) -> None:
        self.shown, self.woken, self.clock = Shown(), [], FakeClock()
        self.world = World()
        self.door = door or self.world.door
        self.slots = Slots(self.door, self.shown, self.clock, limit, self._wake)

    def _wake(self, owner: SlotOwner) -> None:
        self.woken.append(owner.name)

    def run(self, name: str, op: Op = Op.APPLY, cluster: str = "prod"):
        return run_spec(member(name, cluster), op).run

    def ask(self, name: str, op: Op = Op.APPLY, *, since: float = 0, **more) -> bool:
        """A whole pass that asks; whether it got a slot."""
        at = START + timedelta(seconds=since)
        taken = self.slots.take(
            self.run(name, op, more.get("cluster", "prod")), more.get("of", 0), at
        )
        self.slots.passed(self.owner(name))
        return taken is None

    def owner(self, name: str) -> SlotOwner:
        return SlotOwner("TerraformMachine", "team-a", name)

    def show(self, name: str, op: Op = Op.APPLY) -> None:
        self.shown.running.add(("team-a", self.run(name, op).name))

    def end(self, name: str, op: Op = Op.APPLY) -> None:
        key = ("team-a", self.run(name, op).name)
        self.shown.running.discard(key)
        self.shown.ended.add(key)
        self.slots.freed()


def test_a_slot_is_taken_before_any_cache_shows_its_job():
    office = Office(1)
    assert office.ask("a")
    assert not office.ask("b")
    office.show("a")
    assert not office.ask("b")
    office.end("a")
    assert office.ask("b")


def test_a_start_that_comes_to_nothing_gives_its_slot_to_the_next():
    office = Office(1)
    assert office.ask("a")
    assert not office.ask("b")
    office.slots.give_up(office.run("a"))
    assert office.woken == ["b"]
    assert office.ask("b")


def test_a_job_that_ends_wakes_who_waited_longest_and_nobody_else():
    office = Office(2)
    for name in ("a", "b"):
        assert office.ask(name)
        office.show(name)
    for name, since in (("late", 30), ("early", 10), ("middle", 20)):
        assert not office.ask(name, since=since)
    office.end("a")
    assert office.woken == ["early"]
    office.end("b")
    assert office.woken == ["early", "middle"]


def test_work_that_somebody_waits_for_comes_before_checks_that_wait_longer():
    office = Office(1)
    assert office.ask("a")
    office.show("a")
    assert not office.ask("check", Op.DRIFT, since=-3600)
    assert not office.ask("person")
    office.end("a")
    assert office.woken == ["person"]


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_a_persons_change_has_the_next_slot_however_many_checks_wait(limit):
    office = Office(limit)
    running = [
        f"check-{number}" for number in range(500) if office.ask(f"check-{number}", Op.DRIFT)
    ]
    assert len(running) == max(1, limit - 1)
    for name in running:
        office.show(name, Op.DRIFT)
    if not office.ask("person"):
        office.end(running[0], Op.DRIFT)
        assert office.woken == ["person"]
        assert office.ask("person")


def test_a_slot_that_is_kept_for_somebody_is_nobody_elses():
    office = Office(1)
    assert office.ask("a")
    office.show("a")
    assert not office.ask("first")
    office.end("a")
    assert not office.ask("second")
    assert office.ask("first")


def test_one_that_was_called_and_wants_no_slot_any_more_lets_the_next_one_in():
    office = Office(1)
    assert office.ask("a")
    office.show("a")
    assert not office.ask("first")
    assert not office.ask("second")
    office.end("a")
    office.slots.passed(office.owner("first"))
    assert office.woken == ["first", "second"]
    assert office.ask("second")


def test_a_call_during_the_pass_that_asked_is_for_the_next_pass():
    office = Office(1)
    assert office.ask("a")
    office.show("a")
    assert office.slots.take(office.run("b"), 0, START) is not None
    office.end("a")
    office.slots.passed(office.owner("b"))
    assert office.woken == ["b"]
    assert not office.ask("c")
    assert office.ask("b")


def test_one_that_waits_for_its_clusters_limit_stops_nobody_else():
    office = Office(3)
    assert office.ask("prod-1", of=1)
    office.show("prod-1")
    office.shown.running_keys = lambda namespace="", group="": (
        {("team-a", "captf-m-prod-1")} if group in ("", "prod") else set()
    )
    assert not office.ask("prod-2", of=1)
    assert office.ask("test-1", of=1, cluster="test")
    assert not office.ask("prod-3", of=1)


def test_reserved_slots_count_for_the_cluster_too():
    office = Office(NO_LIMIT)
    assert office.ask("a", of=1)
    assert not office.ask("b", of=1)
    assert office.ask("c", of=1, cluster="test")


def test_the_same_start_tried_again_keeps_its_slot():
    office = Office(1)
    assert office.ask("a")
    assert office.ask("a")
    assert not office.ask("b")


def test_a_slot_whose_job_exists_nowhere_is_free_after_a_while():
    office = Office(1)
    assert office.ask("a")
    office.clock.advance(UNSHOWN_AFTER.total_seconds())
    assert office.ask("b")


@pytest.mark.parametrize("why", ["its pass goes on", "its Job runs", "nobody can tell"])
def test_a_slot_is_kept_for_as_long_as_its_job_may_run(why):
    office = Office(1)
    assert office.slots.take(office.run("a"), 0, START) is None
    if why != "its pass goes on":
        office.slots.passed(office.owner("a"))
    if why == "its Job runs":
        office.world.add_job(run_spec(member("a")))
    if why == "nobody can tell":
        office.slots._door = failing(office.door, Unavailable("no answer"), "get", JOBS)
    office.clock.advance(3600)
    assert not office.ask("b")


class SlotMachine(RuleBasedStateMachine):
    """Whatever happens in whatever order: never more Jobs than slots, and no slot stands idle while
    somebody who may have it waits and was not called."""

    names = st.sampled_from("abcdefg")

    def __init__(self) -> None:
        super().__init__()
        self.limit = 2
        self.office = Office(self.limit)
        self.real: set[str] = set()  # Jobs that run
        self.starting: set[str] = set()
        self.waiting: set[str] = set()

    def is_shown(self, name: str) -> bool:
        return ("team-a", self.office.run(name).name) in self.office.shown.running

    @rule(name=names, since=st.integers(0, 9))
    def ask(self, name, since):
        if name in self.real | self.starting:
            return
        self.forget_end(name)
        at = START + timedelta(seconds=since)
        self.waiting.discard(name)
        if self.office.slots.take(self.office.run(name), 0, at) is None:
            self.starting.add(name)
        else:
            self.waiting.add(name)
            self.office.slots.passed(self.office.owner(name))

    def forget_end(self, name: str) -> None:
        """The next Job of the name is another one."""
        self.office.shown.ended.discard(("team-a", self.office.run(name).name))

    @precondition(lambda self: self.starting)
    @rule(data=st.data(), created=st.booleans())
    def start_ends(self, data, created):
        name = data.draw(st.sampled_from(sorted(self.starting)))
        self.starting.remove(name)
        if created:
            self.real.add(name)
        else:
            self.office.slots.give_up(self.office.run(name))
        self.office.slots.passed(self.office.owner(name))

    @precondition(lambda self: self.real)
    @rule(data=st.data())
    def cache_shows(self, data):
        self.office.show(data.draw(st.sampled_from(sorted(self.real))))

    @precondition(lambda self: any(map(self.is_shown, self.real)))
    @rule(data=st.data())
    def job_ends(self, data):
        name = data.draw(st.sampled_from(sorted(filter(self.is_shown, self.real))))
        self.real.remove(name)
        self.office.end(name)

    @rule(name=names)
    def pass_without_asking(self, name):
        if name not in self.starting:
            self.waiting.discard(name)
            self.office.slots.passed(self.office.owner(name))

    @invariant()
    def never_more_than_the_limit(self):
        assert len(self.real) + len(self.starting) <= self.limit

    @invariant()
    def no_slot_stands_idle(self):
        slots = self.office.slots
        kept = {owner.name for owner in slots._called}
        assert kept <= self.waiting
        free = self.limit - len(self.real) - len(self.starting) - len(kept)
        assert free == 0 or self.waiting <= kept


TestSlotMachine = SlotMachine.TestCase
