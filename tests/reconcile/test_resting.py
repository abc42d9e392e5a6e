"""Objects that need nothing cost no live read, also right after a manager's start."""

import json
from typing import Any

import msgspec
import pytest

from captfctl.cluster.errors import ApiError
from captfctl.model import keys, names
from captfctl.model.resources import (
    CLUSTERS,
    LEASES,
    NAMESPACES,
    ROLE_BINDINGS,
    SECRETS,
    TERRAFORM_CLUSTER_IDENTITIES,
    TERRAFORM_CLUSTERS,
)
from captfctl.settings import ManagerSettings, PassSettings
from captfctl.terraform.state.record_store import applied_name, attempt_name
from tests.support.cluster_world import NAMESPACE, RUNNER_IMAGE, World, annotated, variables
from tests.support.faults import HookedDoor


@pytest.fixture
def resting(ready: World) -> World:
    """A cluster whose last pass found nothing to do."""
    ready.look_at_credentials()
    ready.settle(2)
    assert ready.obj.status.settled is not None
    return ready


def requests(world: World, refused: ApiError | None = None) -> list[str]:
    """What one pass asks the server for, besides what the caches give it; the first request may be
    refused."""
    asked: list[str] = []

    def note(method: str, resource: Any) -> None:
        asked.append(f"{method} {resource.plural}")
        if refused is not None and len(asked) == 1:
            raise refused

    world.run(world.env(door=HookedDoor(world.door, before=note)))
    return asked


def test_an_object_with_nothing_to_do_costs_no_request(resting: World):
    assert requests(resting) == []


def test_the_next_pass_comes_when_something_is_due(resting: World):
    until = resting.obj.status.settled.until
    assert resting.run().requeue_after == (until - resting.clock.now()).total_seconds()
    resting.clock.advance((until - resting.clock.now()).total_seconds())
    resting.run()
    assert [job.metadata.labels[keys.OP] for job in resting.running()] == ["drift"]


def test_settling_is_written_once(resting: World):
    resting.writes.forget()
    resting.settle(3)
    resting.advance(minutes=3)
    resting.settle(3)
    assert resting.writes.seen == []


def test_the_gauges_of_a_resting_object_are_shown_by_a_new_manager(resting: World):
    before = resting.metrics.gauges["prod"]
    resting.metrics.gauges.clear()
    assert requests(resting) == []
    assert resting.metrics.gauges["prod"] == before


def touch(world: World, resource: Any, name: str, namespace: str = NAMESPACE) -> None:
    patch = {"metadata": {"annotations": {"touched": "yes"}}}
    world.door.patch(resource, name, namespace, patch)


CHANGES = {
    "its spec": lambda world: world.edit(variables('{"region":"eu-9"}')),
    "an annotation": lambda world: world.edit(annotated({"example.com/note": "new"})),
    "its status": lambda world: world.door.patch(
        TERRAFORM_CLUSTERS,
        "prod",
        NAMESPACE,
        {"status": {"pendingRefreshes": 3}},
        subresource="status",
    ),
    "a pause of its Cluster": lambda world: world.edit_cluster(
        lambda cluster: setattr(cluster.spec, "paused", True)
    ),
    "its state": lambda world: touch(world, SECRETS, names.state_secret(world.owner.suffix)),
    "the attempt record": lambda world: touch(world, SECRETS, attempt_name(world.owner)),
    "the applied record": lambda world: touch(world, SECRETS, applied_name(world.owner)),
    "the credentials' copy": lambda world: touch(world, SECRETS, names.credentials_mirror("cloud")),
    "the runner's rights": lambda world: world.door.patch(
        ROLE_BINDINGS, "captf-runner", NAMESPACE, {"subjects": []}
    ),
    "the labels of its namespace": lambda world: world.door.patch(
        NAMESPACES, NAMESPACE, "", {"metadata": {"labels": {"team": "b"}}}
    ),
    "the identity": lambda world: world.door.patch(
        TERRAFORM_CLUSTER_IDENTITIES, "cloud", "", {"spec": {"requiredKeys": ["OTHER"]}}
    ),
    "the version of the credentials": lambda world: (
        touch(world, SECRETS, "cloud", "captf-system"),
        world.look_at_credentials(),
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_change_of_anything_it_depends_on_is_looked_at(resting: World, change: Any):
    assert requests(resting) == []
    change(resting)
    assert requests(resting) != []


def test_a_lost_state_is_noticed(resting: World):
    name = names.state_secret(resting.owner.suffix)
    resting.door.patch(SECRETS, name, NAMESPACE, {"metadata": {"finalizers": []}})
    resting.door.delete(SECRETS, name, NAMESPACE)
    resting.run()
    assert resting.reason("StateReadable") == "False/StateLost"


def test_a_foreign_lock_is_noticed(resting: World):
    lock = resting.door.get(LEASES, names.state_lock(resting.owner.suffix), NAMESPACE)
    lock.spec.holder_identity = "lock-of-a-person"
    resting.door.update(LEASES, lock)
    resting.run()
    assert resting.reason("StateReadable") == "False/StateLocked"


def test_a_rotated_secret_reaches_the_copy_once_its_version_is_told(resting: World):
    patch = {"data": {"TOKEN": "bmV3"}}
    resting.door.patch(SECRETS, "cloud", "captf-system", patch)
    assert requests(resting) == []
    resting.look_at_credentials()
    resting.run()
    assert resting.secret(names.credentials_mirror("cloud")).data == {"TOKEN": b"new"}


def test_another_user_of_the_same_credentials_and_rights_changes_nothing(resting: World):
    name = names.credentials_mirror("cloud")
    copy = resting.secret(name)
    other = {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": "uid-of-other"}
    references = [*json.loads(msgspec.json.encode(copy.metadata.owner_references)), other]
    resting.door.patch(SECRETS, name, NAMESPACE, {"metadata": {"ownerReferences": references}})
    account = {"kind": "ServiceAccount", "name": "another", "namespace": NAMESPACE}
    binding = resting.door.get(ROLE_BINDINGS, "captf-runner", NAMESPACE)
    subjects = [*json.loads(msgspec.json.encode(binding.subjects)), account]
    resting.door.patch(ROLE_BINDINGS, "captf-runner", NAMESPACE, {"subjects": subjects})
    assert requests(resting) == []


def test_another_version_of_the_settings_looks_at_everything_again(resting: World):
    resting.settings = PassSettings(runner_image=RUNNER_IMAGE + "-next")
    assert requests(resting) != []


def test_a_move_or_a_cleared_status_is_looked_at(resting: World):
    patch = {"status": {"settled": None}}
    resting.door.patch(TERRAFORM_CLUSTERS, "prod", NAMESPACE, patch, subresource="status")
    assert requests(resting) != []


class Behind:
    """A cache whose Secrets stand still."""

    def __init__(self, world: World) -> None:
        self._cache = world.cache
        self._state = world.cache.state_secrets(world.owner)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)

    def state_secrets(self, owner: Any) -> Any:
        return self._state


def test_a_pass_that_read_more_than_its_cache_knew_is_followed_by_another(resting: World):
    """The fingerprint names what was cached before: it must not cover a state that came later."""
    cache = Behind(resting)
    touch(resting, SECRETS, names.state_secret(resting.owner.suffix))
    resting.edit(annotated({"example.com/note": "new"}))
    resting.run(resting.env(cache=cache))
    assert requests(resting) != []
    assert requests(resting) == []


def test_an_object_that_waits_is_not_settled(ready: World):
    ready.look_at_credentials()
    ready.edit_cluster(lambda cluster: setattr(cluster.spec, "paused", True))
    ready.settle(3)
    assert requests(ready) != []


def test_an_object_without_an_owner_is_not_settled(resting: World):
    resting.door.delete(CLUSTERS, "prod", NAMESPACE)
    assert requests(resting) != []


def test_a_manager_that_is_started_again_under_another_name_finds_it_resting(resting: World):
    for name in ("pod-1", "pod-2"):
        resting.settings = ManagerSettings(runner_image=RUNNER_IMAGE, identity=name)
        if name == "pod-1":
            resting.settle(2)
    assert requests(resting) == []
