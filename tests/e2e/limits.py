"""Few Job slots for many objects (runs.md: Limits on running Jobs)."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

from captfctl.cluster.live import LiveDoor
from captfctl.model.conditions import find
from captfctl.model.ops import Op
from captfctl.model.resources import TERRAFORM_CLUSTERS
from tests.e2e.gated import Gate
from tests.e2e.live_jobs import LiveJobs
from tests.e2e.managed import ManagedSite
from tests.e2e.site import Captfctl, eventually
from tests.kubernetes.fleet import Fleet

LIMIT = 2
OBJECTS = 4


class Limited:
    """Objects with runs that wait at a gate, under a manager with few Job slots."""

    def __init__(self, site: ManagedSite, door: LiveDoor, gate: Gate) -> None:
        self._site = site
        self._door = door
        self.gate = gate
        self.namespace = site.fresh_name("limits")
        self.fleet = Fleet(door, self.namespace, OBJECTS, image=gate.image)
        self.jobs = LiveJobs(site.kubeconfig, self.namespace)

    def manage(self, *flags: str) -> Captfctl:
        limits = (f"--max-active-jobs={LIMIT}", f"--namespace={self.namespace}")
        return self._site.add_manager("limited", *limits, *flags)

    def change(self, name: str, subnets: int) -> None:
        wish = {"spec": {"variables": {"subnets": subnets}}}
        self._door.patch(TERRAFORM_CLUSTERS, name, self.namespace, wish)

    def delete(self, name: str) -> None:
        self._door.delete(TERRAFORM_CLUSTERS, name, self.namespace)

    def waiting(self, kind: str) -> set[str]:
        """The objects whose latest version waits for a slot, by this condition."""
        found = self._door.list(TERRAFORM_CLUSTERS, self.namespace).items
        return {
            obj.metadata.name
            for obj in found
            if obj.status.observed_generation == obj.metadata.generation
            and (condition := find(obj.status.conditions, kind)) is not None
            and condition.reason == "WaitingForJobSlot"
        }

    def until(self, check: Callable[[], object], what: str) -> None:
        eventually(check, lambda: f"{what}: {self.jobs.begun}, {self.fleet.explain()}", 150)


@contextmanager
def limited(site: ManagedSite, gate: Gate) -> Iterator[Limited]:
    with site.without_manager(), closing(site.door()) as door:
        story = Limited(site, door, gate)
        with closing(story.jobs):
            yield story


def slots_are_handed_on_and_never_exceeded(site: ManagedSite, gate: Gate) -> None:
    """Also those of a manager that is killed; and what people want comes before checks."""
    with limited(site, gate) as story:
        manager = story.manage()
        story.fleet.create()
        story.until(lambda: gate.came == LIMIT, "two runs")
        others = set(story.fleet.names) - {owner for owner, _ in story.jobs.begun}
        story.until(lambda: story.waiting("ApplyJobSucceeded") == others, "the others wait")
        again = story.jobs.begun[0][0]
        story.change(again, subnets=3)
        manager.kill()
        for name in others:
            story.change(name, subnets=4)
        manager = story.manage()
        story.until(lambda: story.waiting("ApplyJobSucceeded") == others, "they still wait")
        gate.open()
        story.until(story.fleet.settled, "all are ready")
        first, last = story.jobs.begun[:OBJECTS], story.jobs.begun[OBJECTS:]
        assert {owner for owner, _ in first} == set(story.fleet.names)
        assert last == [(again, Op.APPLY)]
        manager.terminate()
        people_come_before_checks(story)
        assert story.jobs.most == LIMIT
        assert story.jobs.most_in_background == LIMIT - 1


def people_come_before_checks(story: Limited) -> None:
    """Drift is due all the time, and its first check waits at the gate."""
    before = len(story.jobs.begun)
    story.gate.shut()
    story.manage("--drift-default-interval=1s")
    story.until(lambda: len(story.jobs.begun) > before, "a drift check")
    ((checked, op),) = story.jobs.begun[before:]
    assert op is Op.DRIFT
    changed, deleted, *rest = sorted(set(story.fleet.names) - {checked})
    story.until(lambda: story.waiting("DriftJobSucceeded") >= set(rest), "more are due")
    story.change(changed, subnets=5)
    story.until(lambda: len(story.jobs.begun) > before + 1, "the change does not wait")
    assert story.jobs.begun[before + 1] == (changed, Op.APPLY)
    story.delete(deleted)
    story.until(lambda: deleted in story.waiting("ApplyJobSucceeded"), "the deletion waits")
    story.gate.open()
    story.until(lambda: len(story.jobs.begun) > before + 3, "drift goes on")
    assert story.jobs.begun[before + 2] == (deleted, Op.DESTROY)
