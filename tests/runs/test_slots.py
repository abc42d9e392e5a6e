"""Limits on running Jobs (runs.md: Limits on running Jobs)."""

import pytest

from captfctl.model.ops import Op
from captfctl.model.owner import Owner
from captfctl.model.reasons import WaitReason
from captfctl.runs.slots import SlotLimits, slot_wait
from tests.support.runs import World, run_spec


def crowd(count: int, cluster: str = "prod") -> World:
    world = World()
    for index in range(count):
        owner = Owner("TerraformMachine", "team-a", f"m{index}", f"u{index}", cluster)
        world.add_job(run_spec(owner))
    return world


@pytest.mark.parametrize(
    ("active", "op", "starts"),
    [
        (15, Op.DRIFT, True),
        (16, Op.DRIFT, False),
        (16, Op.REFRESH, False),
        (19, Op.APPLY, True),
        (20, Op.APPLY, False),
        (20, Op.DESTROY, False),
    ],
)
def test_background_runs_leave_a_fifth_of_the_slots_to_others(active, op, starts):
    world = crowd(active)
    wait = slot_wait(world.reader, world.run(op).run, SlotLimits(manager=0, group=20))
    assert (wait is None) is starts
    if wait is not None:
        assert wait.reason is WaitReason.JOB_SLOT
        assert "Cluster prod" in wait.message
        assert "20" in wait.message


def test_no_limit_never_waits():
    world = crowd(5)
    assert slot_wait(world.reader, world.run(Op.DRIFT).run, SlotLimits(0, 0)) is None


def test_managers_limit_is_reported_before_the_clusters():
    world = crowd(2)
    wait = slot_wait(world.reader, world.run().run, SlotLimits(manager=2, group=2))
    assert wait is not None
    assert "the manager" in wait.message


def test_finished_jobs_and_other_clusters_take_no_slot():
    world = crowd(1, cluster="other")
    world.finished()
    limits = SlotLimits(manager=0, group=1)
    assert slot_wait(world.reader, world.run().run, limits) is None


def test_unknown_cluster_has_no_limit():
    world = crowd(1, cluster="")
    alone = Owner("TerraformMachine", "team-a", "x", "u", "")
    assert slot_wait(world.reader, run_spec(alone).run, SlotLimits(manager=0, group=1)) is None


def test_message_does_not_change_with_the_number_of_running_jobs():
    limits = SlotLimits(manager=2, group=0)
    few, many = crowd(2), crowd(4)
    assert slot_wait(few.reader, few.run().run, limits) == slot_wait(
        many.reader, many.run().run, limits
    )
