"""The runs engine alone, with apps as its subjects: two managers with stale caches, lost answers, a
server that is away, managers that are killed between writes."""

import random
from dataclasses import dataclass, field

from captfctl.cluster.errors import ApiError
from captfctl.embedded.store import EmbeddedStore
from captfctl.model import keys, names
from captfctl.model.core import ConfigMap, Job
from captfctl.model.meta import ObjectMeta
from captfctl.model.resources import CONFIG_MAPS, JOBS, LEASES, NAMESPACES, SECRETS
from captfctl.model.subject import Group
from captfctl.runs.jobs import is_bookkept, is_finished, operation_of
from captfctl.runs.leases import Leases
from captfctl.runs.reader import DoorJobs
from captfctl.runs.slots import Slots
from tests.simulation.caches import LaggingCache
from tests.simulation.course import Broken, Course
from tests.simulation.faulty import FaultyDoor, Killed
from tests.support.apps import NAMESPACE, App, Passes, end, provided_jobs, read

TEAM = Group("team", "team-lease", "Team", frozenset({"migrate"}))
APPS = ("blog", "shop")
QUIET_ROUNDS = 200


@dataclass
class Manager:
    """One process: its passes, and the cache that they read."""

    name: str
    passes: Passes
    cache: LaggingCache
    busy: set[str] = field(default_factory=set)


class AppSimulation(Course):
    """A team and its apps, each of which wants one successful run for each text. A migration of the
    team and one of an app exclude each other."""

    def __init__(self, seed: int, *, steps: int = 120) -> None:
        super().__init__(seed, steps)
        self.door = EmbeddedStore.in_memory(self.clock, chance=random.Random(seed)).door()
        self.counted: list[str] = []
        self.door.create(NAMESPACES, NAMESPACES.type(metadata=ObjectMeta(name=NAMESPACE)))
        self.apps = [self._app("team", kind="Team"), *map(self._app, APPS)]
        self.managers = [self._manager(f"manager-{n}") for n in range(2)]

    def _app(self, name: str, kind: str = "App") -> App:
        meta = ObjectMeta(name=name, namespace=NAMESPACE)
        data = {"text": "first", "operation": "migrate"}
        config = ConfigMap(api_version="v1", kind="ConfigMap", metadata=meta, data=data)
        stored = self.door.create(CONFIG_MAPS, config, NAMESPACE)
        return App(name, stored.metadata.uid, TEAM, kind=kind)

    def _manager(self, name: str) -> Manager:
        door, cache = FaultyDoor(self, name, self.door), LaggingCache(self.door, own_writes=False)
        slots = Slots(door, cache, self.clock, limit=2)
        return Manager(name, Passes(door, cache, self.clock, slots, self._count), cache)

    def _count(self, job: Job) -> None:
        self.counted.append(job.metadata.uid)

    # The course of things.

    def _step(self) -> None:
        what = self.rng.choices(
            ["pass", "see", "run", "time", "person", "restart"], [10, 6, 5, 4, 1, 0.3]
        )[0]
        if what == "pass":
            self._some_pass(self.rng.choice(self.managers))
        elif what == "see":
            self._see(self.rng.choice(self.managers))
        elif what == "run":
            self._progress()
        elif what == "time":
            self.clock.advance(self.rng.choice([0.5, 2, 10, 40, 70]))
        elif what == "person":
            self._person()
        else:
            self._restart(self.rng.choice(self.managers), "restarted")

    def _see(self, manager: Manager) -> None:
        for _ in manager.cache.catch_up(JOBS):
            pass  # every app is looked at anyway

    def _some_pass(self, manager: Manager) -> None:
        free = [app for app in self.apps if app.name not in manager.busy]
        if free:
            self._pass(manager, self.rng.choice(free))

    def _pass(self, manager: Manager, app: App) -> None:
        wish = self._wish(app)
        manager.busy.add(app.name)
        try:
            manager.passes.look_at(app, wish["text"], wish["operation"])
        except Killed:
            self._restart(manager, "killed")
        except ApiError as problem:
            self.tell(f"{manager.name}: pass of {app.name} failed: {problem}")
        finally:
            manager.busy.discard(app.name)

    def _restart(self, manager: Manager, why: str) -> None:
        self.tell(f"{manager.name}: {why}")
        fresh = self._manager(manager.name)
        manager.passes, manager.cache = fresh.passes, fresh.cache
        manager.busy.clear()
        self._see(manager)

    def _progress(self) -> None:
        """Some Jobs whose Secret is there end."""
        for job in provided_jobs(self.door):
            if self.faults and self.rng.random() < 0.5:
                continue
            fails = self.faults and self.rng.random() < 0.2
            end(self.door, self.clock, job, "Failed" if fails else "Complete")
            self.tell(f"{job.metadata.name} {'failed' if fails else 'succeeded'}")

    def _person(self) -> None:
        app = self.rng.choice(self.apps)
        wish = {
            "text": self.rng.choice(["first", "second", "third"]),
            "operation": self.rng.choice(["migrate", "copy"]),
        }
        self.door.patch(CONFIG_MAPS, app.name, NAMESPACE, {"data": wish})
        self.tell(f"somebody: {app.name} shall {wish['operation']} {wish['text']}")

    def _wish(self, app: App) -> dict[str, str]:
        return dict(self.door.get(CONFIG_MAPS, app.name, NAMESPACE).data)

    # What must hold, always.

    def check(self) -> None:
        live = [job for job in self._jobs() if not is_finished(job)]
        owners = [job.metadata.labels[keys.OWNER_NAME] for job in live]
        if len(owners) != len(set(owners)):
            raise Broken(f"several live Jobs of one app: {[job.metadata.name for job in live]}")
        migrating = {
            owner for job, owner in zip(live, owners, strict=True) if operation_of(job) == "migrate"
        }
        if "team" in migrating and len(migrating) > 1:
            raise Broken(f"the team and an app of it migrate at once: {migrating}")
        if len(self.counted) != len(set(self.counted)):
            raise Broken("a Job was counted twice")

    def _jobs(self) -> list[Job]:
        return self.door.list(JOBS, NAMESPACE).items

    # Where everything must end.

    def _quiet(self) -> None:
        left = ["nothing was tried"]
        for _ in range(QUIET_ROUNDS):
            for manager in self.managers:
                self._see(manager)
                for app in self.apps:
                    self._pass(manager, app)
                    self.check()
            self._progress()
            left = self._unfinished()
            if not left:
                return
            self.clock.advance(20)
        raise Broken(f"it does not come to rest: {left}")

    def _unfinished(self) -> list[str]:
        jobs = self._jobs()
        left = [f"{job.metadata.name} is not read" for job in jobs if not is_bookkept(job)]
        for app in self.apps:
            runs = [read(job) for job in jobs if app.controls(job.metadata)]
            if not any(run.ok and run.text == self._wish(app)["text"] for run in runs):
                left.append(f"{app.name}: its text is not copied")
        judge = Leases(self.door, DoorJobs(self.door), self.clock)
        for lease in self.door.list(LEASES, NAMESPACE).items:
            if not judge.is_free(lease):
                left.append(f"lease {lease.metadata.name} is held")
        names_of_secrets = {secret.metadata.name for secret in self.door.list(SECRETS).items}
        provided = {names.run_secret(job.metadata.name) for job in jobs}
        return left + [f"{name} is left" for name in names_of_secrets & provided]
