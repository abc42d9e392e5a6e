import pytest

from tests.support.cluster_world import World


@pytest.fixture
def world() -> World:
    """A cluster that no pass has seen yet."""
    return World().populate()


@pytest.fixture
def ready(world: World) -> World:
    """A cluster after its first apply; events and writes so far are forgotten."""
    world.apply()
    world.events.clear()
    world.writes.forget()
    return world
