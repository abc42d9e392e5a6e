"""Following objects of several kinds until each is settled."""

from collections.abc import Iterator
from typing import Any

import pytest

from captfctl.cli.progress import PATIENCE_SECONDS, Follower
from captfctl.cli.settled import Standing, Verdict
from captfctl.cli.targets import Target
from captfctl.cluster.door import Door
from captfctl.model.crds import crds
from captfctl.model.resource import Resource
from captfctl.model.resources import TERRAFORM_CLUSTERS, TERRAFORM_MACHINES
from tests.embedded.support import NAMESPACE, create, install, new_store
from tests.support.clock import FakeClock

CLUSTER = Target("TerraformCluster", NAMESPACE, "prod")
MACHINE = Target("TerraformMachine", NAMESPACE, "prod")
READY = {
    "Ready": ("True", "Ready"),
    "InputsApplied": ("True", "InputsApplied"),
    "DependenciesReady": ("True", "DependenciesReady"),
}
WAITING = {"DependenciesReady": ("False", "WaitingForClusterInfrastructure")}


class Seen:
    """A display that keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Standing]] = []

    def event(self, *_: Any) -> None: ...

    def waiting(self, *_: Any) -> None: ...

    def close(self) -> None: ...

    def standing(self, target: Target, verdict: Verdict, _seconds: float) -> None:
        self.told.append((target.kind, verdict.standing))


@pytest.fixture
def door() -> Iterator[Door]:
    store = new_store()
    door = store.door()
    install(door, crds())
    spec = {"source": {"image": "example.com/a:v1"}, "identityRef": {"name": "account"}}
    for resource in (TERRAFORM_CLUSTERS, TERRAFORM_MACHINES):
        create(door, resource, {"metadata": {"name": "prod"}, "spec": spec})
    yield door
    store.close()


def says(
    door: Door, resource: Resource[Any], conditions: dict[str, tuple[str, str]], **other: Any
) -> None:
    listed = [
        {
            "type": kind,
            "status": status,
            "reason": reason,
            "message": "m",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        for kind, (status, reason) in conditions.items()
    ]
    status = {"observedGeneration": 1, "conditions": listed, "activeJob": None, **other}
    door.patch(resource, "prod", NAMESPACE, {"status": status}, subresource="status")


def follow(door: Door, steps: list[Any]) -> tuple[dict[Target, Verdict], Seen]:
    """Follow both objects. At each look one of the steps is done, and some time passes: less than
    a gate is waited for."""
    clock, seen, left = FakeClock(), Seen(), iter(steps)

    def check() -> None:
        clock.advance(PATIENCE_SECONDS * 0.8)
        if (step := next(left, None)) is not None:
            step()

    follower = Follower(door, [CLUSTER, MACHINE], clock, seen, check)
    return follower.until_settled(1000), seen


def nothing() -> None: ...


def test_what_waits_for_an_object_that_still_works_is_waited_for(door: Door) -> None:
    says(door, TERRAFORM_CLUSTERS, {}, activeJob={"name": "job"})
    says(door, TERRAFORM_MACHINES, WAITING)
    steps = [
        *[nothing] * 4,
        lambda: says(door, TERRAFORM_CLUSTERS, READY),
        lambda: says(door, TERRAFORM_MACHINES, READY),
    ]
    verdicts, _ = follow(door, steps)
    assert {verdict.standing for verdict in verdicts.values()} == {Standing.READY}


def test_what_waits_for_nothing_that_moves_ends_the_wait(door: Door) -> None:
    says(door, TERRAFORM_CLUSTERS, READY)
    says(door, TERRAFORM_MACHINES, WAITING)
    verdicts, seen = follow(door, [])
    assert verdicts[CLUSTER].standing is Standing.READY
    assert verdicts[MACHINE].standing is Standing.WAITING
    assert seen.told.count(("TerraformMachine", Standing.WAITING)) == 1


def test_a_gate_that_opens_at_once_is_not_told(door: Door) -> None:
    says(door, TERRAFORM_CLUSTERS, READY)
    says(door, TERRAFORM_MACHINES, WAITING)
    verdicts, seen = follow(door, [lambda: says(door, TERRAFORM_MACHINES, READY)])
    assert verdicts[MACHINE].standing is Standing.READY
    assert ("TerraformMachine", Standing.WAITING) not in seen.told


def test_objects_of_one_name_are_told_apart(door: Door) -> None:
    says(door, TERRAFORM_CLUSTERS, READY)
    door.delete(TERRAFORM_MACHINES, "prod", NAMESPACE)
    clock = FakeClock()
    follower = Follower(door, [CLUSTER, MACHINE], clock, Seen(), lambda: clock.advance(1))
    verdicts = follower.until_settled(20)
    assert verdicts[CLUSTER].standing is Standing.READY
    assert verdicts[MACHINE] == Verdict(Standing.WORKING, "is gone")
