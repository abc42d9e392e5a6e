"""In which order a pass reads: what happens in between must not mislead it
(reconcile.md: Cached and live reads)."""

from typing import Any

import pytest

from captfctl.cluster.errors import Unavailable
from captfctl.model import keys, names
from captfctl.model.core import Job
from captfctl.model.resources import JOBS, PODS, TERRAFORM_CLUSTERS
from captfctl.reconcile import mirror
from captfctl.terraform.state.records import read_records
from tests.support.cluster_world import NAMESPACE, World, annotated, variables
from tests.support.doors import Overridden
from tests.support.fake_runner import OUTPUTS


class Unseen:
    """A cache to which the object's Jobs have not come yet."""

    def __init__(self, cache: Any) -> None:
        self._cache = cache

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)

    def jobs_of(self, owner: Any) -> Any:
        return []


def test_a_deletion_never_goes_by_the_state_from_before_an_unseen_job_ended(world: World):
    world.settle(2)
    job = world.active_job()
    world.runner.start(job)
    lost = {"status": {"activeJob": None}}  # the write that ended the start was lost
    world.door.patch(TERRAFORM_CLUSTERS, world.key[1], NAMESPACE, lost, subresource="status")
    world.delete()

    def ending(resource, name, *args, **options):
        """The Job ends while the pass works: before it looks at the run lease."""
        if name == world.owner.run_lease and world.running():
            world.runner.succeed(job)
        return world.door.get(resource, name, *args, **options)

    door = Overridden(world.door, get={"leases": ending})
    world.run(world.env(door=door, cache=Unseen(world.cache)))
    assert not world.gone
    assert world.active_job().metadata.labels[keys.OP] == "destroy"
    assert world.secret(names.state_secret(world.owner.suffix)) is not None


def test_the_lock_tells_of_a_silent_apply_only_when_it_is_read_after_the_pods(world: World):
    world.settle(2)
    job = world.active_job()
    world.runner.start(job)
    world.runner.end(job, ok=False, result=None, reason="DeadlineExceeded", pod=True)
    (pod,) = world.pods()
    world.edit(variables('{"region":"eu-2"}'))

    def outliving(resource, *args, **options):
        """The pod outlives its Job, takes the lock and goes, just before it is looked for."""
        if world.pods():
            world.runner.lock(job)
            world.door.delete(PODS, pod.metadata.name, NAMESPACE, grace_period_seconds=0)
        return world.door.list(resource, *args, **options)

    env = world.env(door=Overridden(world.door, list={"pods": outliving}))
    world.run(env)
    assert read_records(world.door, world.owner).marks.interrupted_apply == job.metadata.name
    assert world.running() == []


def test_what_finished_is_counted_although_the_state_cannot_be_read(world: World):
    world.settle(2)
    world.runner.succeed(world.active_job())

    def unreadable(resource, *args, labels="", **options):
        if keys.TFSTATE_SUFFIX in labels:
            raise Unavailable("the server is away")
        return world.door.list(resource, *args, labels=labels, **options)

    with pytest.raises(Unavailable):
        world.run(world.env(door=Overridden(world.door, list={"secrets": unreadable})))
    assert world.leases() == []
    assert world.obj.status.last_run is not None


def test_a_job_of_an_operation_that_is_not_known_here_is_no_reason_to_fail(ready: World):
    ready.edit(variables('{"region":"eu-2"}'))
    ready.run()
    job = ready.active_job()
    unknown = {"metadata": {"labels": {keys.OP: "an-operation-of-a-later-version"}}}
    ready.door.patch(JOBS, job.metadata.name, NAMESPACE, unknown)
    ready.run()


def outlived(world: World) -> Job:
    """The first apply hit its deadline; its pod runs on, and the Job has been read."""
    world.settle(2)
    job = world.active_job()
    world.runner.start(job)
    world.runner.lock(job)
    world.runner.end(job, ok=False, result=None, reason="DeadlineExceeded", pod=True)
    world.run()
    world.run()
    return job


def at_the_lock(world: World, what: Any) -> Overridden:
    """A door through which `what` happens right before the lock is read."""
    left = [what]

    def get(resource, name, *args, **options):
        if name == names.state_lock(world.owner.suffix) and left:
            left.pop()()
        return world.door.get(resource, name, *args, **options)

    return Overridden(world.door, get={"leases": get})


def test_who_let_the_lock_go_has_left_a_state(world: World):
    job = outlived(world)

    def ends() -> None:
        world.runner.write_state(job, OUTPUTS)
        world.runner.lock(job, held=False)

    world.run(world.env(door=at_the_lock(world, ends)))
    assert world.reason("StateReadable") == "True/StateRead"


def test_a_confirmation_is_not_used_up_when_there_is_a_state_after_all(world: World):
    job = outlived(world)
    world.edit(annotated({keys.CONFIRM_NO_RESOURCES: job.metadata.name}))

    def ends() -> None:
        world.runner.write_state(job, OUTPUTS)
        world.runner.lock(job, held=False)
        for pod in world.pods():
            pod.status.phase = "Failed"
            world.door.update(PODS, pod, subresource="status")

    world.run(world.env(door=at_the_lock(world, ends)))
    assert keys.CONFIRM_NO_RESOURCES in world.obj.metadata.annotations


@pytest.mark.parametrize("ahead", [False, True])
def test_the_state_is_what_somebody_else_left_who_just_let_the_lock_go(ready: World, ahead: bool):
    (job,) = ready.jobs()
    ready.runner.lock(job, who="me@laptop")
    if ahead:
        ready.edit(variables('{"region":"eu-2"}'))
    before = ready.obj.status.observed_state_serial

    def ends() -> None:
        ready.runner.write_state(job, OUTPUTS)
        ready.runner.lock(job, held=False)

    env = ready.env(door=at_the_lock(ready, ends))
    ready.run(env)
    assert ready.obj.status.observed_state_serial == before + 1


def test_a_pause_of_the_cluster_right_after_moves_are_held_stops_the_start(world: World):
    """As `clusterctl move` does: it pauses, then waits until no object holds it back."""
    world.settle(1)
    left = ["pause"]

    def patch(resource, name, namespace, body, **options):
        answer = world.door.patch(resource, name, namespace, body, **options)
        if keys.BLOCK_MOVE in str(body) and left:
            left.pop()
            world.edit_cluster(lambda cluster: setattr(cluster.spec, "paused", True))
        return answer

    door = Overridden(world.door, patch={"terraformclusters": patch})
    env = world.env(door=door)
    world.run(env)
    assert left == []
    assert world.running() == []
    assert keys.BLOCK_MOVE not in world.obj.metadata.annotations


def test_a_mirror_is_looked_at_after_the_identity_that_allows_it(ready: World):
    left = ["revoke"]

    def identity(resource, name, *args, **options):
        if left:  # denied for a moment, and allowed again
            left.pop()
            assert mirror.revoke(ready.door, NAMESPACE, "cloud")
        return ready.door.get(resource, name, *args, **options)

    door = Overridden(ready.door, get={"terraformclusteridentities": identity})
    ready.edit(variables('{"region":"eu-2"}'))
    env = ready.env(door=door)
    ready.run(env)
    assert ready.secret(names.credentials_mirror("cloud")) is not None


class Reads:
    """The requests of a door up to the creation of a Job."""

    def __init__(self, door: Any) -> None:
        self._door = door
        self.seen: list[tuple[str, str, str]] = []
        self.over = False

    def __getattr__(self, method: str) -> Any:
        call = getattr(self._door, method)

        def noted(resource: Any, *args: Any, **options: Any) -> Any:
            if not self.over:
                name = args[0] if args and isinstance(args[0], str) else ""
                self.seen.append((method, resource.plural, name))
            self.over = self.over or (method, resource.plural) == ("create", "jobs")
            return call(resource, *args, **options)

        return noted


def test_a_start_asks_for_nothing_twice_and_for_little(ready: World):
    ready.edit(variables('{"region":"eu-2"}'))
    door = Reads(ready.door)
    ready.run(ready.env(door))
    assert len(ready.running()) == 1
    asked = [request for request in door.seen if request[0] in ("get", "list")]
    assert len(asked) == len(set(asked))
    assert len(door.seen) <= 13
