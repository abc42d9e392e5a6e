"""Starting and adopting (runs.md: Starting a Job)."""

import threading
from dataclasses import replace
from typing import Any

import pytest

from captfctl.cluster.errors import Forbidden, Invalid, TooManyRequests, Unavailable
from captfctl.model import core, keys, names
from captfctl.model.meta import ObjectMeta, PartialObject
from captfctl.model.ops import Op
from captfctl.model.owner import Owner
from captfctl.model.resources import JOBS, LEASES, SECRETS
from captfctl.runs.leases import Leases
from captfctl.runs.start import Deferred, Started, Starter
from captfctl.terraform.job.work import TerraformWork
from captfctl.terraform.state.plan_key import ensure_plan_key
from captfctl.terraform.state.records import read_records
from tests.support.clock import FakeClock
from tests.support.faults import WRITES, HookedDoor, failing, losing_answers
from tests.support.runs import FILES, IMAGE, NAMESPACE, RUNNER, World, fixed_bytes, run_spec


def may_start() -> str:
    return ""


def start(world: World, run, door: Any = None, confirm: Any = may_start):
    door = door or world.door
    leases = Leases(door, world.reader, world.clock)
    starter = Starter(door, leases, world.slots(), world.clock)
    return starter.start(run.run, world.work(run, door), confirm)


def secret(world: World, run) -> core.Secret:
    return world.door.get(SECRETS, names.run_secret(run.name), NAMESPACE)


def test_start_leaves_everything_the_run_needs():
    world = World()
    run = world.run()
    world.acquire(run)
    started = start(world, run)
    assert isinstance(started, Started)
    assert not started.adopted
    job = world.door.get(JOBS, run.name, NAMESPACE)
    assert job.metadata.annotations[keys.STATE_LOCK_VERSION] == "none"
    assert secret(world, run).metadata.owner_references[0].uid == job.metadata.uid
    assert secret(world, run).data == FILES
    attempt = read_records(world.door, world.owner).attempt
    assert (attempt.job, attempt.inputs_hash, attempt.image) == (run.name, "h2:abc", IMAGE)
    assert attempt.files == FILES
    assert world.exists(SECRETS, "captf-plankey-c-prod")


@pytest.mark.parametrize(("seconds", "reads"), [(0.9, 0), (1.1, 1)])
def test_a_lease_written_a_moment_before_is_not_read_again(seconds, reads):
    world = World()
    run = world.run()
    begun = world.clock.monotonic()
    world.acquire(run)
    seen = []

    def note(method: str, resource: Any) -> None:
        if (method, resource) == ("get", LEASES):
            seen.append(resource)

    door = HookedDoor(world.door, before=note)
    starter = Starter(door, Leases(door, world.reader, world.clock), world.slots(), world.clock)
    world.clock.advance(seconds)
    work = world.work(replace(run, state_lock_version="none"), door)
    assert isinstance(starter.start(run.run, work, may_start, leased_at=begun), Started)
    assert len(seen) == reads


def test_the_locks_version_of_the_pass_is_the_one_from_before_the_run():
    """Somebody took the lock meanwhile: the Job tells of the lock as it was before that."""
    world = World()
    run = replace(world.run(), state_lock_version="17")
    world.acquire(run)
    start(world, run)
    job = world.door.get(JOBS, run.name, NAMESPACE)
    assert job.metadata.annotations[keys.STATE_LOCK_VERSION] == "17"


@pytest.mark.parametrize("whose", ["its own", "an earlier object's", "nobody's"])
def test_a_cached_plan_key_counts_only_as_the_objects_own(whose):
    world = World()
    run = world.run()
    world.acquire(run)
    uid = {"its own": run.owner.uid, "an earlier object's": "uid-before", "nobody's": ""}[whose]
    reference = replace(run.owner, uid=uid).owner_reference()
    cached = PartialObject(metadata=ObjectMeta(owner_references=[reference] if uid else []))
    work = TerraformWork(world.door, run, RUNNER, fixed_bytes, lambda *_: cached)
    assert isinstance(world.starter.start(run.run, work, may_start), Started)
    assert world.exists(SECRETS, "captf-plankey-c-prod") is (whose != "its own")


def test_only_an_apply_writes_the_attempt_record():
    world = World()
    run = world.run(Op.DRIFT)
    world.acquire(run)
    start(world, run)
    assert read_records(world.door, world.owner).attempt is None
    assert not world.exists(SECRETS, "captf-plankey-c-prod")


def test_the_lock_version_that_an_apply_may_be_judged_by_is_recorded():
    world = World()
    lock = world.door.create(
        LEASES,
        core.Lease(metadata=ObjectMeta(name=names.state_lock(world.owner.suffix))),
        NAMESPACE,
    )
    run = world.run()
    start(world, run)
    job = world.door.get(JOBS, run.name, NAMESPACE)
    assert job.metadata.annotations[keys.STATE_LOCK_VERSION] == lock.metadata.resource_version


def test_refusal_to_confirm_keeps_the_job_from_starting():
    world = World()
    run = world.run()
    world.acquire(run)
    assert start(world, run, confirm=lambda: "paused meanwhile") == Deferred("paused meanwhile")
    assert world.job_names() == []
    assert world.lease_names() == []


@pytest.mark.parametrize("refusal", [Forbidden("no"), Invalid("bad")])
def test_refused_create_gives_the_leases_back_and_keeps_the_old_record(refusal):
    world = World()
    run = world.run()
    world.acquire(run)
    with pytest.raises(type(refusal)):
        start(world, run, failing(world.door, refusal, "create", JOBS))
    assert world.lease_names() == []
    assert read_records(world.door, world.owner).attempt is None


def test_create_without_an_answer_keeps_the_leases():
    world = World()
    run = world.run()
    world.acquire(run)
    with pytest.raises(Unavailable):
        start(world, run, failing(world.door, Unavailable("no answer"), "create", JOBS))
    assert len(world.lease_names()) == 2


def test_refused_create_of_a_job_that_does_exist_keeps_the_leases():
    world = World()
    run = world.run()
    world.acquire(run)
    with pytest.raises(Forbidden):
        start(world, run, losing_answers(world.door, Forbidden("odd"), "create", JOBS))
    assert world.job_names() == [run.name]
    assert len(world.lease_names()) == 2


def unanswered() -> str:
    raise Unavailable("no answer")


def test_error_before_the_create_gives_the_leases_back():
    world = World()
    run = world.run()
    world.acquire(run)
    with pytest.raises(Unavailable):
        start(world, run, confirm=unanswered)
    assert world.lease_names() == []


def test_error_after_the_create_keeps_the_lease():
    world = World()
    run = world.run(Op.DRIFT)
    world.acquire(run)
    with pytest.raises(Unavailable):
        start(world, run, failing(world.door, Unavailable("no answer"), "create", SECRETS))
    assert world.job_names() == [run.name]
    assert world.lease_names() == [world.owner.run_lease]


def losing_every_second_answer(door: Any) -> HookedDoor:
    """Writes take place; of every two of one kind to one resource the first is not answered."""
    asked: dict[tuple[str, str], int] = {}

    def after(name: str, resource: Any) -> None:
        if name in WRITES:
            key = name, resource.plural
            asked[key] = asked.get(key, 0) + 1
            if asked[key] % 2:
                raise Unavailable("no answer", outcome_unknown=True)

    return HookedDoor(door, after=after)


@pytest.mark.parametrize("op", [Op.APPLY, Op.DRIFT])
def test_a_job_whose_creation_was_not_answered_gets_its_inputs_at_once(op):
    """Left alone it would wait for a minute, and then be removed as stuck."""
    world = World()
    run = world.run(op)
    world.acquire(run)
    lost = Unavailable("no answer", outcome_unknown=True)
    started = start(world, run, losing_answers(world.door, lost, "create", JOBS))
    assert isinstance(started, Started)
    assert secret(world, run).data == FILES


def test_inputs_whose_writing_is_not_answered_are_written_until_it_is_known():
    world = World()
    ensure_plan_key(world.door, world.owner, fixed_bytes)
    run = world.run()
    world.acquire(run)
    started = start(world, run, losing_every_second_answer(world.door))
    assert isinstance(started, Started)
    assert secret(world, run).data == FILES
    assert read_records(world.door, world.owner).attempt.job == run.name


def test_running_job_of_the_same_name_is_adopted():
    world = World()
    run = world.run()
    world.acquire(run)
    job = world.add_job(run)
    started = start(world, run)
    assert isinstance(started, Started)
    assert started.adopted
    assert world.job_names() == [run.name]
    assert secret(world, run).metadata.owner_references[0].uid == job.metadata.uid


def test_finished_job_of_the_same_name_defers_the_start():
    world = World()
    run = world.run()
    world.acquire(run)
    world.finish(world.add_job(run))
    assert isinstance(start(world, run), Deferred)
    assert len(world.lease_names()) == 2
    assert read_records(world.door, world.owner).attempt is None


@pytest.mark.parametrize(("finished", "stays"), [(True, False), (False, True)])
def test_job_of_an_earlier_object_is_removed_once_it_finished(finished, stays):
    world = World()
    run = world.run()
    world.acquire(run)
    earlier = Owner("TerraformCluster", NAMESPACE, "prod", "uid-earlier", "prod")
    job = world.add_job(run_spec(earlier))
    if finished:
        world.finish(job)
    assert isinstance(start(world, run), Deferred)
    assert (run.name in world.job_names()) is stays


class Hurried(FakeClock):
    """Time passes by as soon as somebody waits."""

    def wait(self, event: threading.Event, seconds: float) -> bool:
        self.advance(seconds)
        return event.is_set()


def restarting(world: World, away: float, *, answered: bool) -> HookedDoor:
    """The server goes away with the creation of the Job, for so many seconds of the clock. Then it
    knows no roles, and is busy, for two seconds each."""
    back: list[float] = []

    def before(_: str, __: Any) -> None:
        since_back = world.clock.monotonic() - back[0] if back else 60.0
        if since_back < 0:
            raise Unavailable("connection refused")
        if since_back < 2:
            raise Forbidden("the roles are not known yet")
        if since_back < 4:
            raise TooManyRequests("everybody comes at once")

    def after(name: str, resource: Any) -> None:
        if name == "create" and resource.plural == JOBS.plural and not back:
            back.append(world.clock.monotonic() + away)
            if not answered:
                raise Unavailable("no answer", outcome_unknown=True)

    return HookedDoor(world.door, before=before, after=after)


PATIENCE = 18.0


def start_patiently(world: World, run, door: Any):
    leases = Leases(door, world.reader, world.clock)
    starter = Starter(door, leases, world.slots(), world.clock, patience=PATIENCE)
    return starter.start(run.run, world.work(run, door), may_start)


def hurried(op: Op = Op.APPLY):
    """A world with a run that has its leases, and where waits take no real time."""
    world = World()
    world.clock = Hurried()
    run = world.run(op)
    world.acquire(run)
    return world, run


@pytest.mark.parametrize("op", [Op.APPLY, Op.DRIFT])
@pytest.mark.parametrize("answered", [True, False])
def test_a_server_that_is_started_again_in_the_middle_of_a_start_is_waited_for(op, answered):
    world, run = hurried(op)
    door = restarting(world, 12, answered=answered)
    started = start_patiently(world, run, door)
    assert isinstance(started, Started)
    assert secret(world, run).data == FILES
    assert world.clock.monotonic() <= PATIENCE


def test_a_server_that_stays_away_is_not_waited_for_without_end():
    world, run = hurried()
    door = restarting(world, 60, answered=True)
    with pytest.raises(Unavailable):
        start_patiently(world, run, door)
    assert PATIENCE - 2 < world.clock.monotonic() <= PATIENCE


def test_a_server_that_does_not_answer_is_asked_once_more_after_all_patience():
    world, run = hurried()
    ensure_plan_key(world.door, world.owner, fixed_bytes)
    asked = []

    def hanging(name: str, resource: Any) -> None:
        if (name, resource.plural) == ("create", SECRETS.plural):
            asked.append(name)
            world.clock.advance(30)
            raise Unavailable("no answer within 30 s", outcome_unknown=True)

    door = HookedDoor(world.door, before=hanging)
    with pytest.raises(Unavailable):
        start_patiently(world, run, door)
    assert len(asked) == 2


def test_a_refusal_by_a_server_that_was_never_away_is_not_waited_for():
    world, run = hurried()
    door = failing(world.door, Forbidden("exceeded quota"), "create", SECRETS)
    with pytest.raises(Forbidden):
        start_patiently(world, run, door)
    assert world.clock.monotonic() == 0


def test_adopting_waits_for_the_server_too():
    world, run = hurried()
    world.add_job(run)
    failures = [Unavailable("connection refused"), Unavailable("connection refused")]

    def before(name: str, resource: Any) -> None:
        if (name, resource.plural) == ("get", JOBS.plural) and failures:
            raise failures.pop()

    started = start_patiently(world, run, HookedDoor(world.door, before=before))
    assert isinstance(started, Started)
    assert started.adopted


def test_own_run_secret_stays_as_it_is():
    world = World()
    run = world.run()
    job = world.add_job(run)
    before = world.add_run_secret(run, job)
    start(world, run)
    assert secret(world, run).metadata.resource_version == before.metadata.resource_version


def test_run_secret_of_another_job_is_replaced():
    world = World()
    run = world.run()
    job = world.add_job(run)
    foreign = world.add_run_secret(run, job)
    foreign.metadata.owner_references[0].uid = "another"
    world.door.update(SECRETS, foreign)
    start(world, run)
    assert secret(world, run).metadata.owner_references[0].uid == job.metadata.uid


def test_a_later_attempt_keeps_what_an_earlier_one_may_have_applied():
    world = World()
    first = start(world, world.run(attempt=1))
    world.finish(first.job, ok=False)
    name = names.attempt_record("TerraformCluster", "prod")
    marked = {"metadata": {"annotations": {keys.MAY_HAVE_APPLIED: "true", keys.APPLIED: "true"}}}
    world.door.patch(SECRETS, name, NAMESPACE, marked)
    run = world.run(attempt=2, identity="other", files={"main.tf.json": b"{2}"})
    world.acquire(run)
    start(world, run)
    records = read_records(world.door, world.owner)
    assert records.attempt.job == run.name
    assert records.attempt.identity == "other"
    assert records.attempt.files == {"main.tf.json": b"{2}"}
    assert records.marks.may_have_applied
    assert records.marks.applied
