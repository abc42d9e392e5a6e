"""Many objects, few Job slots: real passes that overlap, over a cache that is behind, on a virtual
clock."""

import random
from typing import Any

import msgspec

from captfctl.controller import WorkQueue
from captfctl.errors import CaptfError
from captfctl.model import keys
from captfctl.model.core import Namespace, Secret
from captfctl.model.kinds import CLUSTER, MACHINE_POOL, Kind
from captfctl.model.meta import ObjectMeta
from captfctl.model.resources import (
    CLUSTERS,
    JOBS,
    NAMESPACES,
    SECRETS,
    TERRAFORM_CLUSTER_IDENTITIES,
    TERRAFORM_CLUSTERS,
    TERRAFORM_MACHINE_POOLS,
)
from captfctl.model.terraform import ClusterDrift
from captfctl.reconcile.env import Env
from captfctl.reconcile.events import NoRecorder
from captfctl.reconcile.metrics import NoMetrics
from captfctl.reconcile.passes import reconcile
from captfctl.runs.jobs import is_finished
from captfctl.runs.slots import SlotOwner, Slots
from captfctl.settings import PassSettings
from tests.simulation.caches import FOLLOWED, LaggingCache
from tests.simulation.workers import OWN, Workers
from tests.support.clock import FakeClock
from tests.support.cluster_world import (
    RUNNER_IMAGE,
    cluster,
    identity,
    terraform_cluster,
)
from tests.support.fake_runner import OUTPUTS, FakeRunner
from tests.support.faults import WRITES, HookedDoor
from tests.support.machine_world import POOL_OUTPUTS
from tests.support.prepared_store import prepared_store

Key = tuple[str, str]

NAMESPACE = "team-a"
REQUEST_SECONDS = 0.003
WORKERS = 4


class Fleet:
    """`count` clusters, at most `limit` Jobs. Each run takes `seconds`.

    `pools` of the first cluster look at their members every `membership` seconds. `started` are the
    runs in order: object, operation and time. `most` is how many Jobs there were at once.
    """

    def __init__(
        self,
        count: int,
        limit: int,
        *,
        seconds: float = 30.0,
        drift: int = 0,
        pools: int = 0,
        membership: int = 86400,
    ) -> None:
        self.limit, self.seconds = limit, seconds
        self.clock = FakeClock()
        self._rng = random.Random(limit)
        self._changed = {resource.plural for resource in FOLLOWED}
        store = prepared_store(self.clock, chance=random.Random(limit))
        self.door = HookedDoor(store.door(), after=self._note)
        self.queue: WorkQueue[Key] = WorkQueue(self.clock)
        self.started: list[tuple[str, str, float]] = []
        self.most = 0
        self._ends: dict[str, float] = {}  # of the Jobs that run
        self._depth = 0
        self._runner = FakeRunner(self.door, self.clock)
        self._cache = LaggingCache(self.door, own_writes=True)
        self._env = self._make_env()
        self._populate(count, drift)
        self._workers = Workers(self.door, self._rng)
        self.pools = [f"p-{number}" for number in range(pools)]
        for name in self.pools:
            self._workers.create(MACHINE_POOL, NAMESPACE, name, "c-0")
            wish = {"spec": {"membershipRefreshIntervalSeconds": membership}}
            self.door.patch(TERRAFORM_MACHINE_POOLS, name, NAMESPACE, wish)

    def _make_env(self) -> Env:
        door = HookedDoor(self.door, before=self._before, after=self._after)
        settings = PassSettings(runner_image=RUNNER_IMAGE, max_active_jobs=self.limit)
        return Env(
            door=door,
            cache=self._cache,
            clock=self.clock,
            settings=settings,
            recorder=NoRecorder(),
            metrics=NoMetrics(),
            random_bytes=bytes,
            slots=Slots(door, self._cache, self.clock, self.limit, self._wake),
        )

    def _populate(self, count: int, drift: int) -> None:
        for name in (NAMESPACE, "captf-system"):
            self._create(NAMESPACES, Namespace(metadata=ObjectMeta(name=name)))
        cloud = ObjectMeta(name="cloud", namespace="captf-system")
        self._create(SECRETS, Secret(metadata=cloud, data={"TOKEN": b"s3cr3t"}))
        self._create(TERRAFORM_CLUSTER_IDENTITIES, identity())
        looked_at = {"status": {"secretVersion": "1"}}
        self.door.patch(TERRAFORM_CLUSTER_IDENTITIES, "cloud", "", looked_at, subresource="status")
        for number in range(count):
            owner = self._create(CLUSTERS, cluster(f"c-{number}", NAMESPACE))
            wanted = terraform_cluster(owner, drift=ClusterDrift(interval_seconds=drift))
            self._create(TERRAFORM_CLUSTERS, wanted)

    def _create(self, resource: Any, obj: Any) -> Any:
        obj.api_version, obj.kind = resource.api_version, resource.kind
        return self.door.create(resource, obj, obj.metadata.namespace)

    # What people do.

    def change(self, name: str, region: str) -> None:
        obj = self.door.get(TERRAFORM_CLUSTERS, name, NAMESPACE)
        obj.spec.variables = msgspec.Raw(msgspec.json.encode({"region": region}))
        self.door.update(TERRAFORM_CLUSTERS, obj)
        self.queue.add(obj.key, urgent=True)

    def rotate(self, name: str) -> None:
        """Give a pool other bootstrap data."""
        self._workers.rotate(NAMESPACE, name)
        self.queue.add((NAMESPACE, name))

    def delete(self, name: str) -> None:
        self.door.delete(OWN[_kind(name)], name, NAMESPACE)
        self.queue.add((NAMESPACE, name), urgent=True)

    @property
    def running(self) -> set[str]:
        """The objects that have a Job."""
        jobs = [job for job in self.door.list(JOBS, NAMESPACE).items if not is_finished(job)]
        return {job.metadata.labels[keys.OWNER_NAME] for job in jobs}

    def starts_since(self, moment: float) -> list[tuple[str, str]]:
        """Object and operation of what started after a time."""
        return [(name, op) for name, op, at in self.started if at > moment]

    # The course of things.

    def run_until(self, started: int) -> None:
        """Until so many runs have started, and no longer than they would take one by one."""
        latest = self.clock.monotonic() + self.seconds * (started + 2)
        while len(self.started) < started:
            assert self.clock.monotonic() < latest, f"only {len(self.started)} runs started"
            self.step()

    def rest(self) -> None:
        """Until no run goes on and nothing is due."""
        while self._ends or len(self.queue):
            self.step()

    def step(self) -> None:
        """The next thing that happens: a pass, or the end of a run, or the time goes on."""
        self._end_due()
        self._see()
        if self._some_pass():
            return
        now = self.clock.monotonic()
        waits = [end - now for end in self._ends.values()]
        due = self.queue.next_due()
        self.clock.advance(max(0.001, min([*waits, *([] if due is None else [due])], default=1.0)))

    def _end_due(self) -> None:
        now = self.clock.monotonic()
        for name in [name for name, end in self._ends.items() if end <= now]:
            job = self.door.get(JOBS, name, NAMESPACE)
            pool = job.metadata.labels[keys.OWNER_KIND] == MACHINE_POOL.name
            self._runner.succeed(job, POOL_OUTPUTS if pool else OUTPUTS)
            del self._ends[name]
        self._workers.play_cluster_api()

    def _see(self) -> None:
        before = set(self._cache.running_keys())
        changed, self._changed = self._changed, set()
        for resource in FOLLOWED:
            if resource.plural in changed:
                for key in self._cache.catch_up(resource):
                    self.queue.add(key)
        if before - set(self._cache.running_keys()):
            self._env.slots.freed()

    def _some_pass(self) -> bool:
        key = self.queue.try_get()
        if key is None:
            return False
        try:
            result = reconcile(_kind(key[1]), key, self._env)
        except CaptfError:
            self.queue.add_rate_limited(key)
        else:
            self.queue.forget(key)
            if result.requeue_after:
                self.queue.add_after(key, result.requeue_after)
        finally:
            self.queue.done(key)
        return True

    def _wake(self, owner: SlotOwner) -> None:
        self.queue.add((owner.namespace, owner.name), urgent=True)

    def _note(self, method: str, resource: Any) -> None:
        if method in WRITES:
            self._changed.add(resource.plural)

    # Between a pass's requests other workers go on.

    def _before(self, method: str, resource: Any) -> None:
        self.clock.advance(REQUEST_SECONDS)
        if self._depth < WORKERS - 1 and self._rng.random() < 0.2:
            self._depth += 1
            self._some_pass()
            self._depth -= 1

    def _after(self, method: str, resource: Any) -> None:
        if (method, resource.plural) != ("create", "jobs"):
            return
        running = [job for job in self.door.list(JOBS, NAMESPACE).items if not is_finished(job)]
        self.most = max(self.most, len(running))
        now = self.clock.monotonic()
        for job in running:
            if job.metadata.name not in self._ends:
                labels = job.metadata.labels
                self._ends[job.metadata.name] = now + self.seconds
                self.started.append((labels[keys.OWNER_NAME], labels[keys.OP], now))


def _kind(name: str) -> Kind:
    return MACHINE_POOL if name.startswith("p-") else CLUSTER
