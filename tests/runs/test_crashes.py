"""A manager that dies between any two writes of a start (runs.md: Starting a Job)."""

from typing import Any

import pytest

from captfctl.model import keys, names
from captfctl.model.core import Job
from captfctl.model.ops import Op
from captfctl.model.resources import JOBS, SECRETS, TERRAFORM_CLUSTERS
from captfctl.model.terraform import JobPolicy
from captfctl.runs import finished
from captfctl.runs.jobs import is_finished, next_attempt
from captfctl.runs.lag import Lag, check_lag
from captfctl.runs.leases import Leases
from captfctl.runs.reader import own_jobs
from captfctl.runs.start import Started, Starter
from captfctl.runs.stuck import Starting, remove_unstarted
from captfctl.terraform.books.bookkeeping import BooksInput, keep_books
from captfctl.terraform.job.work import has_run_secret
from captfctl.terraform.state.records import read_records
from tests.support.faults import WRITES, Crash, HookedDoor, crashing_after
from tests.support.runs import NAMESPACE, World, run_result

MAX_WRITES = 20


def one_pass(world: World, door: Any) -> None:
    """The pass of an object that needs exactly one successful apply, reduced to its Jobs."""
    leases = Leases(door, world.reader, world.clock)
    obj = door.get(TERRAFORM_CLUSTERS, "prod", NAMESPACE)
    given = BooksInput(
        owner=world.owner,
        status=obj.status,
        records=read_records(door, world.owner),
        policy=JobPolicy(),
    )
    jobs = own_jobs(world.reader, world.owner)
    books = keep_books(door, jobs, leases, given)
    finished.mark(door, books.unread)
    if books.active is not None:
        remove_if_stuck(world, door, books.active)
        return
    shown = obj.status.active_job
    lag = check_lag(
        door,
        leases,
        world.owner,
        listed=[job.metadata.name for job in books.jobs],
        active_job=shown.name if shown else "",
        block_move=keys.BLOCK_MOVE in obj.metadata.annotations,
        deleting=False,
    )
    if lag is Lag.LAGGING:
        return
    idle = {"metadata": {"annotations": {keys.BLOCK_MOVE: None}}}
    door.patch(TERRAFORM_CLUSTERS, "prod", NAMESPACE, idle)
    if shown:
        settled = {"status": {"activeJob": None}}
        door.patch(TERRAFORM_CLUSTERS, "prod", NAMESPACE, settled, subresource="status")
    newest = books.newest(Op.APPLY)
    if newest is None or not newest.ok:
        start(world, door, leases, next_attempt(books.jobs, "apply"))


def remove_if_stuck(world: World, door: Any, job: Job) -> None:
    def unlist() -> None:
        if door.get(TERRAFORM_CLUSTERS, "prod", NAMESPACE).status.active_job is not None:
            settled = {"status": {"activeJob": None}}
            door.patch(TERRAFORM_CLUSTERS, "prod", NAMESPACE, settled, subresource="status")

    found = Starting(door, world.clock.now(), job).stuck(provided=lambda: has_run_secret(door, job))
    if found is not None:
        remove_unstarted(door, job, unlist)


def hold_moves(door: Any) -> str:
    busy = {"metadata": {"annotations": {keys.BLOCK_MOVE: "true"}}}
    door.patch(TERRAFORM_CLUSTERS, "prod", NAMESPACE, busy)
    return ""


def start(world: World, door: Any, leases: Leases, attempt: int) -> None:
    run = world.run(attempt=attempt)
    if leases.acquire(run.run) is not None:
        return
    starter = Starter(door, leases, world.slots(), world.clock)
    started = starter.start(run.run, world.work(run, door), lambda: hold_moves(door))
    if isinstance(started, Started):
        active = {"name": run.name, "operation": "apply", "attempt": attempt}
        status = {"status": {"activeJob": active, "stateSecretSuffix": world.owner.suffix}}
        door.patch(TERRAFORM_CLUSTERS, "prod", NAMESPACE, status, subresource="status")


def run_pods(world: World, ran: list[str]) -> None:
    """What a cluster does: a Job whose Secret exists runs and succeeds."""
    for job in world.door.list(JOBS, NAMESPACE).items:
        name = job.metadata.name
        if not is_finished(job) and world.exists(SECRETS, names.run_secret(name)):
            ran.append(name)
            world.add_pod(job, message=run_result(Op.APPLY))
            world.finish(job)


@pytest.mark.parametrize("writes", range(1, MAX_WRITES))
@pytest.mark.parametrize("instantly", [True, False], ids=["pods at once", "pods after the restart"])
def test_exactly_one_job_runs_whichever_write_a_manager_dies_after(writes, instantly):
    world = World()
    ran: list[str] = []
    door = crashing_after(world.door, writes)
    try:
        for _ in range(6):
            one_pass(world, door)
            if instantly:
                run_pods(world, ran)
            world.clock.advance(61)
    except Crash:
        if instantly:
            run_pods(world, ran)
    for _ in range(6):  # the next manager
        world.clock.advance(61)
        one_pass(world, world.door)
        run_pods(world, ran)

    assert len(ran) == 1
    assert world.lease_names() == []
    assert not world.exists(SECRETS, names.run_secret(ran[0]))
    obj = world.object()
    assert keys.BLOCK_MOVE not in obj.metadata.annotations
    assert obj.status.active_job is None
    records = read_records(world.door, world.owner)
    assert records.applied.job == ran[0]
    assert records.marks.applied
    (job,) = (job for job in world.door.list(JOBS, NAMESPACE).items if is_finished(job))
    assert job.metadata.annotations[keys.BOOKKEPT] == "true"


def test_every_write_of_a_runs_life_is_among_those_that_a_manager_dies_after():
    world = World()
    writes: list[str] = []
    door = HookedDoor(
        world.door, after=lambda name, kind: writes.append(name) if name in WRITES else None
    )
    ran: list[str] = []
    one_pass(world, door)
    started = len(writes)
    run_pods(world, ran)
    one_pass(world, door)
    assert len(ran) == 1
    assert 8 < started < len(writes) < MAX_WRITES
