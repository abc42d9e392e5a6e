"""The capacity of machine templates, as autoscalers read it (api.md: Capacity)."""

from collections.abc import Iterator
from typing import Any

import pytest

from captfctl.clock import SystemClock
from captfctl.manager import Manager, ManagerSettings
from captfctl.manager.caches import Caches
from captfctl.manager.templates import TemplateReconciler
from captfctl.model.conditions import find
from captfctl.model.meta import ObjectMeta
from captfctl.model.resources import TERRAFORM_MACHINE_TEMPLATES
from captfctl.model.templates import (
    Architecture,
    MachineFromTemplate,
    MachineFromTemplateSpec,
    NodeInfo,
    TerraformMachineTemplate,
    TerraformMachineTemplateSpec,
)
from captfctl.model.terraform import Source
from tests.support.clock import eventually
from tests.support.cluster_world import NAMESPACE, RUNNER_IMAGE, World

SETTINGS = ManagerSettings(runner_image=RUNNER_IMAGE, health_addr="", diagnostics_address="")
NAME = "workers"
CAPACITY: dict[str, int | str] = {"cpu": 4, "memory": "8Gi"}


@pytest.fixture
def world() -> Iterator[World]:
    """A world with a manager."""
    world = World(clock=SystemClock()).populate()
    manager = Manager(world.door, SETTINGS, world.clock)
    manager.start()
    yield world
    manager.stop()


def create(world: World, **spec: Any) -> None:
    machine = MachineFromTemplateSpec(source=Source(image="registry.example.com/machine:v1"))
    template = TerraformMachineTemplate(
        metadata=ObjectMeta(name=NAME, namespace=NAMESPACE),
        spec=TerraformMachineTemplateSpec(template=MachineFromTemplate(spec=machine), **spec),
    )
    world.create(TERRAFORM_MACHINE_TEMPLATES, template)


def found(world: World) -> TerraformMachineTemplate:
    return world.door.get(TERRAFORM_MACHINE_TEMPLATES, NAME, NAMESPACE)


def observed(world: World) -> bool:
    template = found(world)
    return template.status.observed_generation == template.metadata.generation


def reason(world: World) -> str:
    condition = find(found(world).status.conditions, "CapacityResolved")
    assert condition is not None
    return f"{condition.status}/{condition.reason}"


def test_the_capacity_that_a_template_declares_is_shown_in_its_status(world: World) -> None:
    node = NodeInfo(architecture=Architecture.ARM64, operating_system="linux")
    create(world, capacity=CAPACITY, node_info=node)
    eventually(lambda: observed(world), "the status")
    status = found(world).status
    assert (status.capacity, status.node_info) == (CAPACITY, node)
    assert reason(world) == "True/CapacityResolved"


def test_a_template_without_a_capacity_says_so(world: World) -> None:
    create(world)
    eventually(lambda: observed(world), "the status")
    assert found(world).status.capacity == {}
    assert reason(world) == "True/CapacityNotDeclared"


def test_the_status_follows_a_capacity_that_changes_or_is_taken_back(world: World) -> None:
    create(world, capacity=CAPACITY)
    for capacity, said in (({"cpu": 8}, "CapacityResolved"), (None, "CapacityNotDeclared")):
        world.door.patch(TERRAFORM_MACHINE_TEMPLATES, NAME, NAMESPACE, {"spec": {"capacity": None}})
        change = {"spec": {"capacity": capacity}}
        world.door.patch(TERRAFORM_MACHINE_TEMPLATES, NAME, NAMESPACE, change)
        eventually(lambda: observed(world), "the status")
        assert found(world).status.capacity == (capacity or {})
        assert reason(world) == f"True/{said}"


def test_a_status_that_is_right_is_not_written_again() -> None:
    world = World().populate()
    create(world, capacity=CAPACITY)
    caches = Caches(world.door, SETTINGS, world.clock)
    look = TemplateReconciler(world.writes, caches, world.clock)
    caches.start()
    eventually(lambda: caches.synced, "the caches")
    world.writes.forget()
    look((NAMESPACE, NAME))
    assert world.writes.seen == ["patch terraformmachinetemplates"]
    assert caches.templates is not None
    templates = caches.templates
    written = found(world).metadata.resource_version
    eventually(lambda: templates.list()[0].metadata.resource_version == written, "the cache")
    look((NAMESPACE, NAME))
    caches.stop(5)
    assert world.writes.seen == ["patch terraformmachinetemplates"]
