"""Managers, runs, people and faults on one virtual clock, drawn from one seed."""

import contextlib
import random
from dataclasses import dataclass, field

import msgspec

from captfctl.cluster.errors import ApiError, Conflict, NotFound
from captfctl.embedded.store import IN_PROCESS
from captfctl.errors import CaptfError
from captfctl.model import keys, names
from captfctl.model.conditions import find
from captfctl.model.core import Namespace, Secret
from captfctl.model.kinds import CLUSTER, MACHINE, MACHINE_POOL, Kind
from captfctl.model.meta import ObjectMeta
from captfctl.model.resources import (
    CLUSTERS,
    JOBS,
    LEASES,
    NAMESPACES,
    SECRETS,
    TERRAFORM_CLUSTER_IDENTITIES,
    TERRAFORM_CLUSTERS,
)
from captfctl.model.terraform import (
    ApplyPolicy,
    ClusterDrift,
    DriftAction,
    TerraformCluster,
    TerraformObject,
)
from captfctl.reconcile.env import Env
from captfctl.reconcile.events import NoRecorder
from captfctl.reconcile.passes import reconcile
from captfctl.reconcile.sweep import managed_namespaces, sweep
from captfctl.runs.leases import Leases
from captfctl.runs.reader import DoorJobs
from captfctl.runs.slots import Slots
from captfctl.settings import PassSettings
from tests.simulation.caches import FOLLOWED, LaggingCache
from tests.simulation.course import Broken, Course
from tests.simulation.faulty import FaultyDoor, Killed
from tests.simulation.restores import Restores
from tests.simulation.runs import MISSING_IMAGE, Runs
from tests.simulation.shared import SharedLists
from tests.simulation.swaps import Swaps
from tests.simulation.workers import OWN, Workers
from tests.support.cluster_world import (
    IMAGE,
    RUNNER_IMAGE,
    CountingMetrics,
    cluster,
    identity,
    terraform_cluster,
)
from tests.support.prepared_store import prepared_store

Key = tuple[str, str]

QUIET_ROUNDS = 400
LIKELY = {
    "pass": 10.0,
    "see": 6.0,
    "run": 5.0,
    "time": 4.0,
    "person": 0.6,
    "restart": 0.2,
    "swap": 3.0,
    "approve": 1.0,
    "wish": 1.0,
    "restore": 1.0,
    "give up": 0.2,
}
"""How likely each thing is to happen next."""


@dataclass
class Manager:
    """One process: its caches, and when it looks at which object next."""

    name: str
    env: Env
    cache: LaggingCache
    due: dict[Key, float] = field(default_factory=dict)
    failures: dict[Key, int] = field(default_factory=dict)
    busy: set[Key] = field(default_factory=set)


class Simulation(Course):
    """`objects` clusters, each in its own namespace, a machine and a pool of the first of them, and
    `managers` that all think they lead."""

    def __init__(self, seed: int, *, steps: int = 150, objects: int = 2, managers: int = 2) -> None:
        super().__init__(seed, steps)
        self.metrics = CountingMetrics()
        self._store = prepared_store(self.clock, chance=random.Random(seed))
        self._checked: tuple[str, int] = ("", 0)
        self.door = SharedLists(self._store, None, IN_PROCESS)
        self.runs = Runs(self.door, self.clock, self.rng)
        self.swaps = Swaps(self.door, self.rng)
        self.restores = Restores(self.door, self.rng)
        self.runs.pushed = self._pushed
        clusters = [(f"team-{n}", f"c-{n}") for n in range(objects)]
        self.kinds: dict[Key, Kind] = dict.fromkeys(clusters, CLUSTER)
        self.kinds |= {("team-0", "m-0"): MACHINE, ("team-0", "p-0"): MACHINE_POOL}
        self.keys: list[Key] = list(self.kinds)
        self.deleted: set[Key] = set()
        self.applied: set[Key] = set()
        self._untold: set[Key] = set()
        """Whose state was put back or restored, and whose condition no pass has corrected yet."""
        self._populate()
        self._own_writes = self.rng.random() < 0.5
        self.managers = [self._manager(f"manager-{n}") for n in range(managers)]

    # The parts.

    def _populate(self) -> None:
        self._create(NAMESPACES, Namespace(metadata=ObjectMeta(name="captf-system")))
        cloud = ObjectMeta(name="cloud", namespace="captf-system")
        self._create(SECRETS, Secret(metadata=cloud, data={"TOKEN": b"s3cr3t"}))
        self._create(TERRAFORM_CLUSTER_IDENTITIES, identity())
        looked_at = {"status": {"secretVersion": "1"}}  # by the identity's controller
        self.door.patch(TERRAFORM_CLUSTER_IDENTITIES, "cloud", "", looked_at, subresource="status")
        for namespace, name in [key for key in self.keys if self.kinds[key] is CLUSTER]:
            self._create(NAMESPACES, Namespace(metadata=ObjectMeta(name=namespace)))
            owner = cluster(name, namespace)
            owner = self._create(CLUSTERS, owner)
            drift = ClusterDrift(
                interval_seconds=self.rng.choice([0, 600, 1800]),
                action=self.rng.choice(list(DriftAction)),
            )
            policy = self.rng.choice(list(ApplyPolicy))
            wanted = terraform_cluster(owner, drift=drift, apply_policy=policy)
            self._create(TERRAFORM_CLUSTERS, wanted)

        self.workers = Workers(self.door, self.rng)
        for key, kind in self.kinds.items():
            self.workers.create(kind, *key, cluster="c-0")

    def _create(self, resource, obj):
        obj.api_version, obj.kind = resource.api_version, resource.kind
        return self.door.create(resource, obj, obj.metadata.namespace)

    def _manager(self, name: str) -> Manager:
        cache = LaggingCache(self.door, own_writes=self._own_writes)
        door = FaultyDoor(self, name, self._store.door())
        settings = PassSettings(runner_image=RUNNER_IMAGE)
        env = Env(
            door=door,
            cache=cache,
            clock=self.clock,
            settings=settings,
            recorder=NoRecorder(),
            metrics=self.metrics,
            random_bytes=bytes,
            slots=Slots(door, cache, self.clock, settings.max_active_jobs),
        )
        return Manager(name, env, cache)

    # The course of things.

    def run(self) -> None:
        """Most courses begin with what is applied already: there is more that can be changed."""
        if self.steps and self.rng.random() < 0.7:
            self.faults = False
            self._quiet()
            self.faults = True
            self.tell("faults from here on")
        super().run()

    def _step(self) -> None:
        what = self.rng.choices(list(LIKELY), list(LIKELY.values()))[0]
        if what == "pass":
            self._some_pass(self.rng.choice(self.managers))
        elif what == "see":
            self._see(self.rng.choice(self.managers), self.rng.choice(FOLLOWED))
        elif what == "run":
            self._progress()
        elif what == "time":
            self.clock.advance(self.rng.choice([0.5, 2, 10, 40, 70, 200, 700]))
        elif what == "person":
            self._person()
        elif what == "approve":
            self._approve(0.5)
        elif what == "wish":
            self._wish(self.rng.choice([key for key in self.keys if self.kinds[key] is CLUSTER]))
        elif what == "restore":
            self._restore(self.rng.choice(self.keys))
        elif what == "give up":
            self._give_up_restore(self.rng.choice(self.keys), failed=False)
        elif what == "swap":
            self._swap(self.rng.choice([key for key in self.keys if self.kinds[key] is CLUSTER]))
        else:
            self._restart(self.rng.choice(self.managers), "restarted")

    def _see(self, manager: Manager, resource) -> None:
        for key in manager.cache.catch_up(resource):
            if key in self.keys:
                manager.due[key] = min(manager.due.get(key, 1e18), self.clock.monotonic())

    def _some_pass(self, manager: Manager) -> None:
        now = self.clock.monotonic()
        ready = sorted(k for k, at in manager.due.items() if at <= now and k not in manager.busy)
        if ready:
            self._pass(manager, self.rng.choice(ready))

    def _pass(self, manager: Manager, key: Key) -> None:
        manager.busy.add(key)
        manager.due.pop(key, None)
        try:
            result = reconcile(self.kinds[key], key, manager.env)
        except Killed:
            self._restart(manager, "killed")
            return
        except CaptfError as problem:
            failures = manager.failures[key] = manager.failures.get(key, 0) + 1
            again = self.clock.monotonic() + min(0.005 * 2.0**failures, 60)
            manager.due[key] = min(manager.due.get(key, 1e18), again)
            self.tell(f"{manager.name}: pass of {key[1]} failed: {problem}")
        else:
            manager.failures.pop(key, None)
            if result.requeue_after:
                again = self.clock.monotonic() + result.requeue_after
                manager.due[key] = min(manager.due.get(key, 1e18), again)
        finally:
            manager.busy.discard(key)

    def _restart(self, manager: Manager, why: str) -> None:
        self.tell(f"{manager.name}: {why}")
        manager.busy.clear()
        fresh = self._manager(manager.name)
        manager.env, manager.cache = fresh.env, fresh.cache
        manager.due, manager.failures = {}, {}
        for resource in FOLLOWED:
            self._see(manager, resource)

    def _progress(self) -> None:
        self.runs.progress(faults=self.faults)
        self.workers.play_cluster_api()
        while self.runs.told:
            self.tell(self.runs.told.pop(0))
        self._collect()

    def _collect(self) -> None:
        """The garbage collector takes an object's Jobs when it is gone."""
        alive = {o.metadata.uid for r in OWN.values() for o in self.door.list(r).items}
        for job in self.door.list(JOBS).items:
            owner = job.metadata.controller
            if owner is not None and owner.uid not in alive:
                self.door.delete(JOBS, job.metadata.name, job.metadata.namespace)

    # People.

    def _person(self) -> None:
        key = self.rng.choice(self.keys)
        if key in self.deleted:
            return
        image = 2 if self.kinds[key] is CLUSTER else 0  # that of a machine never changes
        what = self.rng.choices(
            ["variables", "pause", "note", "delete", "image", "approve", "by hand"],
            [6, 3, 3, 1, image, 3, image],
        )[0]
        try:
            if what == "variables" and self.kinds[key] is not CLUSTER:
                self.workers.rotate(*key)
            elif what == "variables":
                region = self.rng.choice(["eu-1", "eu-2", "eu-3"])
                self._edit(key, lambda obj: _set_region(obj, region))
            elif what == "approve":
                self._approve(0.8)
            elif what == "by hand":
                self._by_hand(key)
            elif what == "pause":
                self._pause(key, self.rng.random() < 0.4)
            elif what == "image":
                image = self.rng.choice([IMAGE, MISSING_IMAGE])
                self._edit(key, lambda obj: setattr(obj.spec.source, "image", image))
            elif what == "note":
                note = str(self.rng.random())
                self._edit(key, lambda obj: obj.metadata.annotations.update({"x.com/n": note}))
            else:
                self._delete(key)
        except (Conflict, NotFound):
            return
        self.tell(f"somebody: {what} of {key[1]}")

    def _approve(self, chance: float) -> None:
        """Somebody reads the plans that wait, and approves some of them."""
        for plan in self.runs.planning.plans():
            if self.rng.random() < chance and self.runs.planning.approve(plan):
                self.tell(f"somebody: approves {plan.metadata.name}")
                if self.faults and self.rng.random() < 0.3:
                    self._by_hand((plan.metadata.namespace, plan.spec.target_ref.name))

    def _by_hand(self, key: Key) -> None:
        """Somebody changes what exists: whatever was planned for it is another plan now."""
        by_hand, suffix = self.runs.planning.by_hand, self._suffix(key)
        by_hand[suffix] = by_hand.get(suffix, 0) + 1
        self.tell(f"somebody: changes what exists of {key[1]} by hand")

    def _wish(self, key: Key) -> None:
        """Somebody wants what is there to be otherwise."""
        there = self.runs.infrastructure.exists.get(self._suffix(key))
        if key in self.deleted or there is None:
            return
        region = self.rng.choice([name for name in ("eu-1", "eu-2", "eu-3") if name != there])
        with contextlib.suppress(Conflict, NotFound):
            self._edit(key, lambda obj: _set_region(obj, region))
            self.tell(f"somebody: wants {region} of {key[1]}, which is {there}")

    def _edit(self, key: Key, change) -> None:
        resource = OWN[self.kinds[key]]
        obj = self.door.get(resource, key[1], key[0])
        change(obj)
        self.door.update(resource, obj)

    def _delete(self, key: Key) -> None:
        """As Cluster API does: with a cluster go all that belongs to it."""
        self.deleted.add(key)
        self.door.delete(OWN[self.kinds[key]], key[1], key[0])
        if self.kinds[key] is CLUSTER:
            for other in self.keys:
                if other[0] == key[0] and other not in self.deleted:
                    self._delete(other)

    def _suffix(self, key: Key) -> str:
        return names.state_suffix(self.kinds[key].name, *key)

    def _pause(self, key: Key, paused: bool) -> None:
        owner = self.door.get(CLUSTERS, f"c-{key[1][2:]}", key[0])
        owner.spec.paused = paused
        self.door.update(CLUSTERS, owner)

    def _swap(self, key: Key) -> None:
        """Somebody replaces the state, or puts it back, while nobody else does anything."""
        obj = self._object(key)
        if obj is None or keys.RESTORE_STATE in obj.metadata.annotations:
            return
        if self.rng.random() < 0.1:
            if self.swaps.put_back(obj):
                self._untold.add(key)
                self.tell(f"somebody: puts the state of {key[1]} back")
        elif how := self.swaps.swap(obj):
            self.tell(f"somebody: the state of {key[1]} is {how}")

    def _put_back(self, key: Key) -> None:
        """Once it is told."""
        obj = self._object(key)
        state = find(obj.status.conditions, "StateReadable") if obj is not None else None
        if obj is None or state is None or state.reason != "StateReplaced":
            self._untold.discard(key)
            return
        if keys.RESTORE_STATE in obj.metadata.annotations or self._rather_restored(key):
            return
        if self.swaps.put_back(obj):
            self._untold.add(key)
            self.tell(f"somebody: puts the state of {key[1]} back as told")
        elif key not in self._untold:
            raise Broken(f"{key[1]}: its own state is not believed: {state.message}")

    def _rather_restored(self, key: Key) -> bool:
        """Some restore the backup that the message names."""
        return self.rng.random() < 0.5 and self._restore(key)

    def _restore(self, key: Key) -> bool:
        """Somebody asks for a restore; whether there is something to restore."""
        obj = self._object(key)
        if obj is None or key in self.deleted:
            return False
        serial = self.restores.ask(self.kinds[key], obj, cluster=f"c-{key[0][5:]}")
        if serial:
            self.tell(f"somebody: restores serial {serial} of {key[1]}")
        return bool(serial)

    def _pushed(self, suffix: str) -> None:
        self.restores.pushed(suffix)
        self.swaps.forget(suffix)
        self._untold |= {key for key in self.keys if self._suffix(key) == suffix}

    def _give_up_restore(self, key: Key, *, failed: bool) -> None:
        """Somebody takes a request back."""
        obj = self._object(key)
        if obj is None or (failed and not self.restores.failed(obj)):
            return
        if serial := self.restores.take_back(self.kinds[key], obj):
            self.tell(f"somebody: takes back the restore of serial {serial} of {key[1]}")

    def _vouch(self, key: Key) -> None:
        """Say that an apply created nothing, after having looked."""
        obj = self._object(key)
        if obj is None:
            return
        state = find(obj.status.conditions, "StateReadable")
        if state is None or state.reason != "ApplyOutcomeUnknown":
            return
        attempt = self.door.get(SECRETS, names.attempt_record(obj.kind, key[1]), key[0])
        job = attempt.metadata.annotations.get(keys.INTERRUPTED_APPLY, "")
        suffix = self._suffix(key)
        if job and suffix not in self.runs.infrastructure.exists:
            self.tell(f"somebody: vouches for {job}")
            mark = {keys.CONFIRM_NO_RESOURCES: job}
            self._edit(key, lambda found: found.metadata.annotations.update(mark))

    # What must hold, always.

    def check(self) -> None:
        seen = self._store.resource_version, len(self.metrics.uids)
        if seen != self._checked:
            self._check()
            self._checked = seen

    def _check(self) -> None:
        running: dict[str, list[str]] = {}
        for job in self.door.list(JOBS).items:
            if not job.status.conditions and job.metadata.controller is not None:
                running.setdefault(job.metadata.controller.uid, []).append(job.metadata.name)
                self._check_apply(job)
        self.workers.check()
        self.runs.planning.check()
        for jobs in running.values():
            if len(jobs) > 1:
                raise Broken(f"several live Jobs of one object: {jobs}")
        if len(self.metrics.uids) != len(set(self.metrics.uids)):
            raise Broken(f"a Job was counted twice: {self.metrics.runs}")
        if self.runs.infrastructure.twice:
            raise Broken(f"created what existed already: {self.runs.infrastructure.twice}")
        for key in self.keys:
            self._check_gone(key)

    def _check_apply(self, job) -> None:
        """A state that was lost is never followed by a plain apply."""
        if job.metadata.labels[keys.OP] != "apply":
            return
        owner = job.metadata.controller
        suffix = names.state_suffix(owner.kind, job.metadata.namespace, owner.name)
        if suffix not in self.runs.infrastructure.exists:
            return
        with contextlib.suppress(NotFound):
            self.door.get(SECRETS, names.state_secret(suffix), job.metadata.namespace)
            return
        raise Broken(f"{job.metadata.name} applies although the state of what exists is gone")

    def _check_gone(self, key: Key) -> None:
        suffix = self._suffix(key)
        if self._object(key) is None and suffix in self.runs.infrastructure.exists:
            raise Broken(f"{key[1]} is gone and its infrastructure is still there")

    def _object(self, key: Key) -> TerraformObject | None:
        try:
            return self.door.get(OWN[self.kinds[key]], key[1], key[0])
        except NotFound:
            return None

    # Where everything must end.

    def _quiet(self) -> None:
        for key in self.keys:
            with contextlib.suppress(ApiError):
                self._pause(key, False)
            if self.kinds[key] is CLUSTER:
                with contextlib.suppress(ApiError):
                    self._edit(key, lambda obj: setattr(obj.spec.source, "image", IMAGE))
        for manager in self.managers:
            manager.due = dict.fromkeys(self.keys, 0.0)
        left = ["nothing was tried"]
        for _ in range(QUIET_ROUNDS):
            self._round()
            left = [text for key in self.keys for text in self._unfinished(key)]
            if not left:
                return
            self.clock.advance(min(self._next_due(), 600.0))
        raise Broken(f"it does not come to rest: {left}")

    def _round(self) -> None:
        for manager in self.managers:
            for resource in FOLLOWED:
                self._see(manager, resource)
        for manager in self.managers:
            for key in sorted(manager.due):
                if manager.due.get(key, 1e18) <= self.clock.monotonic():
                    self._pass(manager, key)
                    self.check()
        for key in self.keys:
            self._vouch(key)
            self._put_back(key)
            self._give_up_restore(key, failed=True)
        self._approve(1)
        self._progress()
        for namespace in sorted(managed_namespaces(self.door)):  # as each manager does at times
            sweep(self.door, namespace)
        self.check()

    def _next_due(self) -> float:
        """Seconds to the next pass; a short while when a Job has something to do."""
        if any(not job.status.conditions for job in self.door.list(JOBS).items):
            return 20.0
        now = self.clock.monotonic()
        times = [at - now for manager in self.managers for at in manager.due.values()]
        return max(1.0, min(times, default=1.0))

    def _unfinished(self, key: Key) -> list[str]:
        """Why the object is not where a run without faults would have brought it."""
        namespace, name = key
        obj = self._object(key)
        suffix = self._suffix(key)
        exists = self.runs.infrastructure.exists
        # One that was taken for a Job nobody wants any more stays, but anybody may take it.
        judge = Leases(self.door, DoorJobs(self.door), self.clock)
        leases = [
            lease.metadata.name
            for lease in self.door.list(LEASES, namespace, labels=keys.LEASE).items
            if not judge.is_free(lease)
        ]
        left = [f"{name}: lease {lease}" for lease in leases]
        if key in self.deleted:
            if obj is not None:
                left.append(f"{name}: still there, {_shown(obj)}")
            if suffix in exists:
                left.append(f"{name}: its infrastructure is still there")
            return left
        assert obj is not None
        for kind in ("Ready", "InputsApplied"):
            found = find(obj.status.conditions, kind)
            if found is None or found.status != "True":
                left.append(f"{name}: {_shown(obj)}")
        left += self.runs.planning.unfinished(namespace, name)
        left += self.restores.unfinished(obj)
        region = self._wanted(key, obj)
        if exists.get(suffix) != region and suffix not in self.runs.infrastructure.unlike:
            left.append(f"{name}: {exists.get(suffix)} exists, {region} is wanted")
        if keys.BLOCK_MOVE in obj.metadata.annotations or obj.status.active_job is not None:
            left.append(f"{name}: a Job is still shown")
        return left

    def _wanted(self, key: Key, obj: TerraformObject) -> str:
        """What the infrastructure is to be made for: never another thing for a machine."""
        if self.kinds[key] is CLUSTER:
            return str(msgspec.json.decode(bytes(obj.spec.variables))["region"])
        if self.kinds[key] is MACHINE:
            return self.runs.infrastructure.exists.get(self._suffix(key), "")
        return self.workers.bootstrap(*key)


def _set_region(obj: TerraformCluster, region: str) -> None:
    obj.spec.variables = msgspec.Raw(msgspec.json.encode({"region": region}))


def _shown(obj: TerraformObject) -> str:
    wanted = ("Ready", "StateReadable", "ApplyJobSucceeded", "InputsApplied", "Deleting")
    found = [c for c in obj.status.conditions if c.type in wanted]
    return "; ".join(f"{c.type} {c.status}/{c.reason}" for c in found)
