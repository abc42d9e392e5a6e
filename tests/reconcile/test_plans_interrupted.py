"""A manager that ends after any write of the life of a plan: the next one finds what is there
(plans.md: The life of a plan)."""

from typing import Any

import pytest

from captfctl.model import keys
from captfctl.model.plan import PlanPhase
from captfctl.model.terraform import ApplyPolicy
from tests.support.cluster_world import World
from tests.support.faults import Crash, crashing_after
from tests.support.planning import approve, block, change, find_changed, live, planned, plans

WRITES = 45
"""More than either course makes."""


class Managers:
    """Passes by a manager that dies after so many writes, and by the one that comes after it."""

    def __init__(self, world: World, writes: int) -> None:
        self.world = world
        self.died = False
        self._door: Any = crashing_after(world.door, writes)

    def settle(self) -> None:
        for _ in range(4):
            try:
                self.world.run(self.world.env(door=self._door))
            except Crash:
                self.died, self._door = True, self.world.door


def ends_of(world: World) -> list[str]:
    return sorted(str(plan.status.phase) for plan in plans(world))


@pytest.mark.parametrize("writes", range(1, WRITES))
def test_every_change_is_approved_once_and_applied_once(ready: World, writes: int):
    ready.edit(lambda obj: setattr(obj.spec, "apply_policy", ApplyPolicy.MANUAL))
    managers = Managers(ready, writes)
    change(ready)
    managers.settle()
    assert ready.active_job().metadata.labels[keys.OP] == "plan"
    ready.runner.succeed(ready.active_job(), plan=planned("update"))
    managers.settle()
    first = approve(ready)
    managers.settle()
    assert ready.active_job().metadata.annotations[keys.PLAN] == first.metadata.name
    find_changed(ready, ready.active_job(), planned("replace"))
    managers.settle()
    second = live(ready)
    assert second.spec.summary.replace == 1
    assert ready.running() == []
    approve(ready)
    managers.settle()
    assert ready.active_job().metadata.annotations[keys.PLAN] == second.metadata.name
    ready.runner.succeed(ready.active_job())
    managers.settle()
    assert ends_of(ready) == [PlanPhase.APPLIED, PlanPhase.FAILED]
    assert ready.obj.status.pending_plan_ref is None
    assert ready.reason("InputsApplied") == "True/InputsApplied"
    assert managers.died or writes > WRITES / 2


@pytest.mark.parametrize("writes", range(1, 30))
def test_what_is_destroyed_is_approved_once_or_dropped(ready: World, writes: int):
    managers = Managers(ready, writes)
    change(ready)
    managers.settle()
    block(ready, ready.active_job())
    managers.settle()
    first = live(ready)
    change(ready, '{"region":"eu-3"}')
    managers.settle()
    block(ready, ready.active_job(), planned("delete"))
    managers.settle()
    second = live(ready)
    assert second.metadata.name != first.metadata.name
    approve(ready)
    managers.settle()
    ready.runner.succeed(ready.active_job())
    managers.settle()
    assert ends_of(ready) == [PlanPhase.APPLIED, PlanPhase.SUPERSEDED]
    assert ready.obj.status.pending_plan_ref is None
    assert managers.died or writes > 15
