"""The informers of a manager (manager.md: Caches and workers)."""

from collections.abc import Iterator

import pytest

from captfctl.clock import SystemClock
from captfctl.controller import WorkQueue
from captfctl.manager.caches import Caches, InformerReader
from captfctl.manager.watches import connect
from captfctl.model import keys, names
from captfctl.model.core import Secret
from captfctl.model.kinds import CLUSTER
from captfctl.model.meta import ObjectMeta
from captfctl.model.owner import Owner
from captfctl.model.resources import SECRETS, TERRAFORM_CLUSTERS
from captfctl.reconcile import mirror
from captfctl.settings import ManagerSettings
from tests.embedded.support import until
from tests.support.cluster_world import NAMESPACE, RUNNER_IMAGE, World, terraform_cluster


@pytest.fixture
def world() -> World:
    world = World().populate()
    world.apply()
    return world


@pytest.fixture
def reader(world: World) -> Iterator[InformerReader]:
    clock = SystemClock()
    caches = Caches(world.door, ManagerSettings(runner_image=RUNNER_IMAGE), clock)
    caches.start()
    until(lambda: caches.synced)
    yield InformerReader(caches)
    assert caches.stop(10)


def test_every_secret_that_claims_to_hold_state_is_known(world: World, reader: InformerReader):
    base = names.state_secret(world.owner.suffix)
    (known,) = reader.state_secrets(world.owner)
    assert known.metadata.name == base
    labels = {keys.TFSTATE: "true", keys.TFSTATE_SUFFIX: world.owner.suffix}
    for name, managed in (("ours", {keys.MANAGED: "true"}), ("other", {})):
        meta = ObjectMeta(name=f"{base}-{name[:4]}", namespace=NAMESPACE, labels=labels | managed)
        world.create(SECRETS, Secret(metadata=meta))
    until(lambda: len(reader.state_secrets(world.owner)) == 3)


def test_the_copies_that_an_object_uses_are_known(world: World, reader: InformerReader):
    assert reader.copied_identities(world.owner) == ["cloud"]
    other = Owner("TerraformCluster", NAMESPACE, "other", "uid-other", "other")
    assert reader.copied_identities(other) == []
    source = world.door.get(SECRETS, "cloud", "captf-system")
    mirror.ensure(world.door, "cloud", source, other)
    until(lambda: reader.copied_identities(other) == ["cloud"])
    mirror.drop_user(world.door, "cloud", world.owner)
    until(lambda: reader.copied_identities(world.owner) == [])


def test_an_object_that_was_handed_out_is_the_callers_own(world: World, reader: InformerReader):
    def change_what_was_handed_out() -> None:
        reader.own(TERRAFORM_CLUSTERS, *world.key).metadata.annotations["changed"] = "here"
        assert "changed" not in reader.own(TERRAFORM_CLUSTERS, *world.key).metadata.annotations

    change_what_was_handed_out()
    newer = world.obj
    newer.metadata.resource_version = "999999"  # written, and not seen yet
    reader.wrote(newer)
    change_what_was_handed_out()


@pytest.mark.parametrize("name", ["prod", "p" * 63, "p" * 64, "p" * 253])
def test_a_state_without_an_owner_wakes_the_object_that_it_is_labelled_for(name: str):
    world, clock = World().populate(), SystemClock()
    obj = terraform_cluster()
    obj.metadata.name = name
    if name != "prod":
        world.create(TERRAFORM_CLUSTERS, obj)
    caches = Caches(world.door, ManagerSettings(runner_image=RUNNER_IMAGE), clock)
    queue: WorkQueue[tuple[str, str]] = WorkQueue(clock)
    caches.start()
    until(lambda: caches.synced)
    connect(caches, CLUSTER, queue)
    while (key := queue.try_get()) is not None:
        queue.done(key)  # every object is told once at the start

    owner = Owner("TerraformCluster", NAMESPACE, name, "")
    labels = {**owner.labels, keys.MANAGED: "true", keys.TFSTATE: "true"}
    meta = ObjectMeta(name="state", namespace=NAMESPACE, labels=labels)
    world.create(SECRETS, Secret(metadata=meta))

    until(lambda: len(queue) > 0)
    assert queue.try_get() == (NAMESPACE, name)
    assert caches.stop(10)
