"""Names longer than a label can be: an object with one lives and dies like any other."""

import pytest

from captfctl.model.core import Namespace, Secret
from captfctl.model.identity import TerraformClusterIdentity
from captfctl.model.meta import ObjectMeta
from captfctl.model.resources import (
    CLUSTERS,
    JOBS,
    NAMESPACES,
    SECRETS,
    TERRAFORM_CLUSTER_IDENTITIES,
    TERRAFORM_CLUSTERS,
)
from captfctl.model.terraform import IdentityRef
from tests.support.cluster_world import World, cluster, identity, terraform_cluster

NAMESPACE = "n" * 63
LONGEST = f"{'a.b-' * 62}abcde"


def populated(name: str) -> World:
    """A world whose objects all are called `name`, as far as they may be."""
    world = World(key=(NAMESPACE, name))
    world.create(NAMESPACES, Namespace(metadata=ObjectMeta(name=NAMESPACE)))
    world.create(NAMESPACES, Namespace(metadata=ObjectMeta(name="captf-system")))
    source = Secret(metadata=ObjectMeta(name="cloud", namespace="captf-system"))
    source.data = {"TOKEN": b"s3cr3t"}
    world.create(SECRETS, source)
    account: TerraformClusterIdentity = identity()
    account.metadata.name = name
    world.create(TERRAFORM_CLUSTER_IDENTITIES, account)
    owner = cluster(name[:63].rstrip(".-"), NAMESPACE)
    owner.spec.infrastructure_ref.name = name
    obj = terraform_cluster(world.create(CLUSTERS, owner), identity_ref=IdentityRef(name=name))
    obj.metadata.name = name
    world.create(TERRAFORM_CLUSTERS, obj)
    return world


def running(world: World):
    [job] = [job for job in world.door.list(JOBS).items if not job.status.conditions]
    return job


@pytest.mark.parametrize("length", [57, 63, 64, 253])
def test_an_object_of_any_name_lives_and_dies_and_leaves_nothing_behind(length: int):
    assert len(LONGEST) == 253
    world = populated(LONGEST[-length:].strip(".-"))
    world.settle(2)
    world.runner.fail(running(world))
    world.settle(2)
    world.advance(minutes=2)
    world.run()
    world.runner.succeed(running(world))
    world.settle(2)
    assert world.reason("Ready") == "True/Ready"
    world.advance(minutes=40)
    world.run()
    world.runner.succeed(running(world))  # a drift check
    world.settle(2)

    world.delete()
    world.settle(2)
    world.runner.succeed(running(world), resources=0)
    world.settle(3)

    assert world.gone
    left = [s.metadata.name for s in world.door.list(SECRETS, NAMESPACE).items]
    assert left == []
