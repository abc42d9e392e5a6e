"""Two managers at once (leases.md: Two managers)."""

from functools import cache
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from captfctl.model.ops import Op
from captfctl.model.resources import JOBS, LEASES
from captfctl.runs.leases import Leases
from tests.support.interleave import interleave
from tests.support.runs import NAMESPACE, World, run_spec

ORDERS = st.lists(st.integers(0, 1), max_size=14)
BEFORE = st.sampled_from(["nothing", "an old lease", "a lease of a finished Job", "an empty lease"])


@cache
def shared() -> World:
    """One store for all examples: making one costs more than an example."""
    return World()


def fresh(before: str) -> World:
    world = shared()
    for lease in world.door.list(LEASES, NAMESPACE).items:
        world.door.delete(LEASES, lease.metadata.name, NAMESPACE)
    for name in world.job_names():
        world.door.delete(JOBS, name, NAMESPACE)
    if before == "nothing":
        return world
    old = world.run(attempt=9)
    world.acquire(old)
    if before == "an old lease":
        world.clock.advance(61)
    elif before == "a lease of a finished Job":
        world.finish(world.add_job(old))
    else:
        for name in world.lease_names():
            world.door.patch(LEASES, name, NAMESPACE, {"spec": {"holderIdentity": None}})
    return world


def acquiring(world: World, run: Any) -> Any:
    def act(door: Any) -> bool:
        return Leases(door, world.reader, world.clock).acquire(run.run) is None

    return act


@given(order=ORDERS, before=BEFORE)
def test_at_most_one_of_two_managers_takes_the_run_lease(order, before):
    world = fresh(before)
    first, second = world.run(attempt=1), world.run(attempt=2)
    acts = [acquiring(world, first), acquiring(world, second)]
    taken = interleave(world.door, acts, order)
    assert taken.count(True) <= 1
    holder = world.lease(world.owner.run_lease).spec.holder_identity if world.lease_names() else ""
    if taken == [True, False]:
        assert holder == first.name
    if taken == [False, True]:
        assert holder == second.name


@given(order=ORDERS)
def test_cluster_and_machine_never_both_pass_the_gate(order):
    world = fresh("nothing")
    acts = [
        acquiring(world, world.run()),
        acquiring(world, run_spec(world.machine("md-0"), Op.APPLY)),
    ]
    assert interleave(world.door, acts, order).count(True) <= 1


@given(order=ORDERS)
def test_cluster_and_a_refreshing_machine_do_not_hinder_each_other(order):
    world = fresh("nothing")
    acts = [
        acquiring(world, world.run()),
        acquiring(world, run_spec(world.machine("md-0"), Op.REFRESH)),
    ]
    assert interleave(world.door, acts, order) == [True, True]
