"""A cache that is behind the server (runs.md: A cache behind the server)."""

from typing import Any

from captfctl.model.resources import JOBS
from captfctl.runs.lag import Lag, check_lag
from captfctl.runs.leases import Leases
from tests.support.faults import HookedDoor
from tests.support.runs import NAMESPACE, World, run_spec


def lag(world: World, door: Any = None, **facts: Any) -> Lag:
    door = door or world.door
    given = {"listed": [], "active_job": "", "block_move": False, "deleting": False, **facts}
    return check_lag(door, Leases(door, world.reader, world.clock), world.owner, **given)


def test_active_job_that_the_cache_lacks_and_the_server_has_is_lag():
    world = World()
    job = world.add_job(world.run())
    assert lag(world, active_job=job.metadata.name) is Lag.LAGGING


def test_finished_active_job_that_the_cache_lacks_is_lag_too():
    world = World()
    job = world.finished()
    assert lag(world, active_job=job.metadata.name) is Lag.LAGGING


def test_active_job_that_exists_nowhere_is_gone():
    assert lag(World(), active_job="captf-c-prod-apply-a1-dbb569") is Lag.GONE


def test_listed_active_job_is_no_lag():
    world = World()
    assert lag(world, active_job="j", listed=["j"]) is Lag.NONE


def test_unseen_holder_of_the_run_lease_is_lag_while_moves_are_blocked():
    world = World()
    run = world.run()
    world.acquire(run)
    world.add_job(run)
    assert lag(world, block_move=True) is Lag.LAGGING
    assert lag(world, deleting=True) is Lag.LAGGING
    assert lag(world, block_move=True, listed=[run.name]) is Lag.NONE


def test_holder_that_does_not_exist_is_no_lag():
    world = World()
    world.acquire(world.run())
    assert lag(world, block_move=True) is Lag.NONE


def test_holder_that_is_somebody_elses_job_is_no_lag():
    world = World()
    run = world.run()
    world.acquire(run)
    job = world.add_job(run)
    labels = {"metadata": {"labels": run_spec(world.machine("md-0")).owner.labels}}
    world.door.patch(JOBS, job.metadata.name, NAMESPACE, labels)
    assert lag(world, block_move=True) is Lag.NONE


def test_started_job_behind_a_vanished_one_is_lag():
    world = World()
    run = world.run(attempt=2)
    world.acquire(run)
    world.add_job(run)
    assert lag(world, active_job="captf-c-prod-apply-a1-000000") is Lag.LAGGING


def test_idle_object_costs_no_request():
    world = World()

    def refuse(method: str, resource: Any) -> None:
        raise AssertionError(f"{method} {resource.plural}")

    assert lag(world, HookedDoor(world.door, before=refuse)) is Lag.NONE
