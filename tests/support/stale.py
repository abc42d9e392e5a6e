"""A manager whose caches lag behind."""

from captfctl.model.owner import Owner
from captfctl.reconcile.cache import DoorCache
from tests.support.cluster_world import NAMESPACE, World


class Stale(DoorCache):
    """A cache that stands still at the moment it was made."""

    def __init__(self, world: World) -> None:
        super().__init__(world.door)
        self._obj = world.obj
        self._jobs = super().jobs_of(world.owner)
        self._cluster = super().cluster(NAMESPACE, "prod")

    def own(self, resource, namespace, name):
        return resource.copy(self._obj)

    def cluster(self, namespace, name):
        return self._cluster

    def jobs_of(self, owner: Owner):
        return self._jobs
