"""The controller process as a library, over a store in memory."""

import json
import socket
import threading
import urllib.error
import urllib.request
from dataclasses import replace
from datetime import timedelta

import pytest

from captfctl.clock import SystemClock
from captfctl.cluster.door import find as find_object
from captfctl.cluster.errors import Ended, NotFound
from captfctl.errors import EnvironmentFault, InputError
from captfctl.manager import LEASE_NAME, LeadershipLost, Manager, ManagerSettings
from captfctl.manager.caches import Caches
from captfctl.manager.identity import IdentityReconciler
from captfctl.model import keys, names
from captfctl.model.conditions import find
from captfctl.model.core import Job, Namespace, Secret
from captfctl.model.identity import TerraformClusterIdentity
from captfctl.model.meta import ObjectMeta
from captfctl.model.owner import Owner
from captfctl.model.resources import (
    CLUSTERS,
    EVENTS,
    JOBS,
    LEASES,
    NAMESPACES,
    SECRETS,
    TERRAFORM_CLUSTER_IDENTITIES,
    TERRAFORM_CLUSTERS,
    TERRAFORM_MACHINES,
)
from captfctl.model.terraform import IdentityKind, IdentityRef
from captfctl.reconcile import local_secret, mirror
from captfctl.reconcile.events import NoRecorder
from tests.support.clock import eventually
from tests.support.cluster_world import (
    NAME,
    NAMESPACE,
    RUNNER_IMAGE,
    World,
    cluster,
    terraform_cluster,
    variables,
)
from tests.support.faults import HookedDoor
from tests.support.machine_world import MACHINE_NAME, MachineWorld, terraform_machine

SETTINGS = ManagerSettings(runner_image=RUNNER_IMAGE, health_addr="", diagnostics_address="")


@pytest.fixture
def world() -> World:
    return World(clock=SystemClock()).populate()


@pytest.fixture
def start(world: World):
    """Start managers; all are stopped at the end."""
    started: list[Manager] = []

    def one(settings: ManagerSettings = SETTINGS) -> Manager:
        manager = Manager(world.door, settings, world.clock)
        started.append(manager)
        manager.start()
        return manager

    yield one
    for manager in started:
        manager.stop(5)


def running(world: World) -> list[Job]:
    return [job for job in world.door.list(JOBS, NAMESPACE).items if not job.status.conditions]


def ready(world: World) -> bool:
    found = find(world.obj.status.conditions, "Ready")
    return found is not None and found.status == "True"


def secret_names(world: World) -> set[str]:
    return {secret.metadata.name for secret in world.door.list(SECRETS, NAMESPACE).items}


def run_one(world: World) -> None:
    """Play one Job that the manager starts."""
    eventually(lambda: len(running(world)) == 1, "a Job")
    (job,) = running(world)
    # A pod waits for its inputs before it runs, and so before its Job can end.
    inputs = names.run_secret(job.metadata.name)
    eventually(lambda: inputs in secret_names(world), "its inputs")
    world.runner.succeed(job)


def get(url: str, token: str = "") -> tuple[int, str]:
    request = urllib.request.Request(url)
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()


def test_a_cluster_becomes_ready_and_goes_again(world: World, start):
    start()
    run_one(world)
    eventually(lambda: ready(world), "Ready")
    eventually(lambda: world.obj.status.active_job is None, "the end of the run")
    world.edit(variables('{"region":"eu-2"}'))
    run_one(world)
    eventually(lambda: not running(world), "the end of the second apply")
    eventually(lambda: world.obj.status.active_job is None, "the end of the second run")
    assert len(world.jobs()) == 2
    world.delete()
    run_one(world)
    eventually(lambda: world.gone, "the end of the deletion")
    eventually(lambda: world.leases() == [], "the release of the leases")


def test_a_slot_that_gets_free_is_taken_at_once_and_never_by_two(world: World, start):
    for number in range(3):
        owner = world.create(CLUSTERS, cluster(f"c-{number}"))
        world.create(TERRAFORM_CLUSTERS, terraform_cluster(owner))
    start(replace(SETTINGS, max_active_jobs=1))
    for _ in range(4):
        run_one(world)
    owners = [job.metadata.labels[keys.OWNER_NAME] for job in world.jobs()]
    assert sorted(owners) == sorted([NAME, "c-0", "c-1", "c-2"])


def test_two_managers_at_once_run_one_job(world: World, start):
    start()
    start()
    run_one(world)
    eventually(lambda: ready(world), "Ready")
    eventually(lambda: world.obj.status.active_job is None, "the end of the run")
    eventually(lambda: world.leases() == [], "the release of the leases")
    assert len(world.jobs()) == 1


def test_a_restarted_manager_adopts_the_running_job(world: World, start):
    first = start()
    eventually(lambda: len(running(world)) == 1, "a Job")
    assert first.stop(5)
    world.runner.succeed(running(world)[0])
    start()
    eventually(lambda: ready(world), "Ready")
    assert len(world.jobs()) == 1


def test_a_standby_takes_over_when_the_leader_stops(world: World, start):
    settings = replace(
        SETTINGS,
        leader_elect=True,
        lease_namespace="captf-system",
        leader_elect_retry_period=timedelta(milliseconds=50),
    )
    leader = start(replace(settings, identity="one"))
    eventually(lambda: leader.leading, "the election")
    standby = start(replace(settings, identity="two"))
    eventually(lambda: standby.ready, "the standby's caches")
    assert not standby.leading
    assert leader.stop(5)
    eventually(lambda: standby.leading, "the takeover")
    run_one(world)
    eventually(lambda: ready(world), "Ready")


def test_a_lost_election_ends_the_manager(world: World, start):
    settings = replace(
        SETTINGS,
        leader_elect=True,
        lease_namespace="captf-system",
        leader_elect_lease_duration=timedelta(seconds=3),
        leader_elect_renew_deadline=timedelta(milliseconds=300),
        leader_elect_retry_period=timedelta(milliseconds=50),
    )
    manager = start(settings)
    eventually(lambda: manager.leading, "the election")
    taken = {"spec": {"holderIdentity": "somebody-else"}}
    world.door.patch(LEASES, LEASE_NAME, "captf-system", taken)
    with pytest.raises(LeadershipLost):
        manager.wait(20)


def test_a_pass_under_way_may_end_before_the_manager_does(world: World, start):
    manager = start()
    entered, leave = threading.Event(), threading.Event()
    controller = manager._controllers["TerraformCluster"]

    def slow(key):
        entered.set()
        leave.wait(10)
        raise RuntimeError("over")

    controller._reconcile = slow
    controller.queue.add((NAMESPACE, "other"))
    assert entered.wait(10)
    assert not manager.stop(0.2)
    leave.set()


def test_namespace_and_watch_filter_limit_what_is_reconciled(world: World, start):
    start(replace(SETTINGS, namespace="elsewhere"))
    start(replace(SETTINGS, watch_filter="mine"))
    manager = start(replace(SETTINGS, namespace="captf-system"))
    eventually(lambda: manager.ready, "the caches")
    assert world.obj.metadata.finalizers == []
    world.edit(lambda obj: obj.metadata.labels.update({keys.WATCH_FILTER: "mine"}))
    run_one(world)


def test_an_identity_reports_its_secret_and_its_users(world: World, start):
    start()
    run_one(world)

    def status():
        return world.door.get(TERRAFORM_CLUSTER_IDENTITIES, "cloud").status

    eventually(lambda: status().namespaces == [NAMESPACE], "the namespace of the mirror")
    assert [c.reason for c in status().conditions] == ["SecretFound"]


def identity_of(world: World) -> TerraformClusterIdentity | None:
    return find_object(world.door, TERRAFORM_CLUSTER_IDENTITIES, "", "cloud")


def protected(world: World) -> bool:
    found = identity_of(world)
    return found is not None and keys.IDENTITY_PROTECTION in found.metadata.finalizers


def identity_reason(world: World) -> str:
    found = identity_of(world)
    return found.status.conditions[0].reason if found and found.status.conditions else ""


def test_an_identity_in_use_goes_with_its_last_user(world: World, start):
    start()
    run_one(world)
    eventually(lambda: protected(world), "the finalizer")
    world.door.delete(TERRAFORM_CLUSTER_IDENTITIES, "cloud")
    eventually(lambda: identity_reason(world) == "InUse", "what keeps it")
    (ready,) = identity_of(world).status.conditions
    assert f"{NAMESPACE}/{NAME}" in ready.message
    eventually(lambda: world.obj.status.active_job is None, "the end of the run")
    world.delete()
    run_one(world)
    eventually(lambda: world.gone, "the end of the deletion")
    eventually(lambda: identity_of(world) is None, "the end of the identity")


def test_an_identity_in_use_names_the_machines_that_inherit_it(start):
    world = MachineWorld(clock=SystemClock()).populate()
    manager = Manager(world.door, SETTINGS, world.clock)
    manager.start()
    try:
        eventually(lambda: world.obj.status.active_job is not None, "the run of the machine")
        eventually(lambda: protected(world), "the finalizer")
        world.door.delete(TERRAFORM_CLUSTER_IDENTITIES, "cloud")
        user = f"TerraformMachine {NAMESPACE}/{MACHINE_NAME}"
        eventually(lambda: identity_reason(world) == "InUse", "what keeps it")
        eventually(lambda: user in identity_of(world).status.conditions[0].message, "the machine")
    finally:
        manager.stop(5)


def test_a_secret_that_only_a_machine_names_is_kept_for_it():
    world = MachineWorld(clock=SystemClock()).populate()
    secret = Secret(metadata=ObjectMeta(name="own", namespace=NAMESPACE), data={"K": b"v"})
    local_secret.keep(world.door, world.create(SECRETS, secret))
    world.delete()
    reference = IdentityRef(name="own", kind=IdentityKind.SECRET)
    world.create(TERRAFORM_MACHINES, terraform_machine(world.machine, identity_ref=reference))
    caches = Caches(world.door, SETTINGS, world.clock)
    caches.start()
    try:
        eventually(lambda: caches.synced, "the caches")
        look = IdentityReconciler(world.door, caches, world.clock, NoRecorder())
        look((NAMESPACE, "own"))
        assert kept(world, "own")
        world.delete()
        eventually(lambda: not len(caches.own[TERRAFORM_MACHINES.kind]), "the machine is gone")
        look((NAMESPACE, "own"))
        assert not kept(world, "own")
    finally:
        caches.stop(5)


def use_local_secret(world: World, name: str) -> None:
    secret = Secret(metadata=ObjectMeta(name=name, namespace=NAMESPACE), data={"K": b"v"})
    world.create(SECRETS, secret)
    reference = IdentityRef(name=name, kind=IdentityKind.SECRET)
    world.edit(lambda obj: setattr(obj.spec, "identity_ref", reference))


def kept(world: World, name: str) -> bool:
    found = world.secret(name)
    return found is not None and keys.IDENTITY_PROTECTION in found.metadata.finalizers


def test_a_secret_of_the_namespace_in_use_goes_with_its_last_user(world: World, start):
    use_local_secret(world, "own")
    start()
    run_one(world)
    assert kept(world, "own")
    world.door.delete(SECRETS, "own", NAMESPACE)
    eventually(lambda: world.obj.status.active_job is None, "the end of the run")
    assert world.secret("own").data == {"K": b"v"}
    world.delete()
    run_one(world)
    eventually(lambda: world.gone, "the end of the deletion")
    eventually(lambda: world.secret("own") is None, "the end of the Secret")


def test_a_secret_of_the_namespace_is_free_when_no_object_names_it_any_more(world: World, start):
    use_local_secret(world, "own")
    start()
    run_one(world)
    assert kept(world, "own")
    world.edit(lambda obj: setattr(obj.spec, "identity_ref", IdentityRef(name="cloud")))
    eventually(lambda: not kept(world, "own"), "the end of the finalizer")
    assert world.secret("own").metadata.labels == {}


def test_an_identity_that_nothing_uses_any_more_is_free(world: World, start):
    start()
    run_one(world)
    eventually(lambda: protected(world), "the finalizer")
    world.door.patch(
        TERRAFORM_CLUSTER_IDENTITIES,
        "cloud",
        "",
        {"metadata": {"finalizers": [keys.IDENTITY_PROTECTION, "example.com/mine"]}},
    )
    world.edit(lambda obj: setattr(obj.spec, "identity_ref", IdentityRef(name="another")))
    # Only then: a pass that still saw the old name would make the copy again.
    eventually(lambda: "IdentityNotFound" in world.reason("IdentityAllowed"), "the new name")
    world.door.delete(SECRETS, "captf-creds-cloud", NAMESPACE)
    eventually(lambda: not protected(world), "the end of the finalizer")
    assert identity_of(world).metadata.finalizers == ["example.com/mine"]


def test_a_copy_that_this_manager_does_not_see_keeps_the_identity(world: World, start):
    elsewhere = Owner("TerraformCluster", "elsewhere", "other", "uid-of-other", "other")
    world.create(NAMESPACES, Namespace(metadata=ObjectMeta(name="elsewhere")))
    mirror.ensure(world.door, "cloud", world.door.get(SECRETS, "cloud", "captf-system"), elsewhere)
    finalizers = {"metadata": {"finalizers": [keys.IDENTITY_PROTECTION]}}
    world.door.patch(TERRAFORM_CLUSTER_IDENTITIES, "cloud", "", finalizers)
    world.door.delete(TERRAFORM_CLUSTER_IDENTITIES, "cloud")
    start(replace(SETTINGS, namespace=NAMESPACE))
    eventually(lambda: identity_reason(world) == "InUse", "what keeps it")
    assert protected(world)


def test_an_identity_without_its_secret_says_so_in_the_default_namespace(world: World, start):
    world.door.delete(SECRETS, "cloud", "captf-system")
    start()

    def reasons():
        return [event.reason for event in world.door.list(EVENTS, "default").items]

    eventually(lambda: "IdentitySecretNotFound" in reasons(), "the event")
    found = world.door.get(TERRAFORM_CLUSTER_IDENTITIES, "cloud").status.conditions
    assert [(c.status, c.reason) for c in found] == [("False", "SecretNotFound")]


def test_a_namespace_that_loses_its_right_wakes_its_objects(world: World, start):
    start()
    run_one(world)
    eventually(lambda: ready(world), "Ready")
    elsewhere = {"spec": {"allowedNamespaces": {"selector": None, "list": ["elsewhere"]}}}
    world.door.patch(TERRAFORM_CLUSTER_IDENTITIES, "cloud", "", elsewhere)

    def refused() -> bool:
        return world.reason("IdentityAllowed") == "False/NamespaceNotAllowed"

    eventually(refused, "the refusal")
    eventually(lambda: world.secret("captf-creds-cloud") is None, "the end of the mirror")


def test_events_are_posted_about_the_object(world: World, start):
    start()
    run_one(world)

    def reasons():
        return {event.reason for event in world.door.list(EVENTS, NAMESPACE).items}

    eventually(lambda: {"JobCreated", "JobSucceeded", "Provisioned"} <= reasons(), "the events")
    created = [e for e in world.door.list(EVENTS, NAMESPACE).items if e.reason == "JobCreated"]
    assert len(created) == 1
    event = created[0]
    assert (event.reporting_controller, event.action, event.type) == (
        "captf-manager",
        "Run",
        "Normal",
    )
    assert (event.regarding.kind, event.regarding.name) == ("TerraformCluster", NAME)
    assert event.related.kind == "Job"


def test_probes_tell_alive_and_ready(world: World, start):
    manager = start(replace(SETTINGS, health_addr="127.0.0.1:0"))
    url = f"http://127.0.0.1:{manager.port('health')}"
    assert get(f"{url}/healthz")[0] == 200
    eventually(lambda: get(f"{url}/readyz")[0] == 200, "readiness")
    assert get(f"{url}/elsewhere")[0] == 404


def test_a_stop_gives_up_requests_that_nobody_answers(world: World):
    entered, abandoned = threading.Event(), threading.Event()

    def hang(method: str, resource: object) -> None:
        if resource is SECRETS and method == "get":
            entered.set()
            assert abandoned.wait(20)
            raise Ended("given up")

    door = HookedDoor(world.door, before=hang)
    manager = Manager(door, SETTINGS, world.clock, abandoned.set)
    manager.start()
    assert entered.wait(20)
    assert manager.stop(1.0)
    assert abandoned.is_set()


def test_readiness_names_what_is_missing(world: World):
    manager = Manager(world.door, replace(SETTINGS, health_addr="127.0.0.1:0"), world.clock)
    try:
        manager._servers["health"].start()
        code, text = get(f"http://127.0.0.1:{manager.port('health')}/readyz")
        assert code == 500
        assert "terraformclusters" in text
    finally:
        manager.stop(1)


def test_insecure_diagnostics_serve_metrics_and_nothing_else(world: World, start):
    settings = replace(SETTINGS, diagnostics_address="127.0.0.1:0", insecure_diagnostics=True)
    manager = start(settings)
    url = f"http://127.0.0.1:{manager.port('diagnostics')}"
    run_one(world)

    def shown(text: str) -> bool:
        return text in get(f"{url}/metrics")[1]

    counted = 'captf_jobs_total{kind="TerraformCluster",op="apply",result="succeeded"} 1.0'
    eventually(lambda: shown(counted), "the count of the run")
    ready_series = f'captf_ready{{kind="TerraformCluster",name="{NAME}",namespace="{NAMESPACE}"}}'
    eventually(lambda: shown(f"{ready_series} 1.0"), "the gauge")
    assert shown('captf_build_info{commit="",contract="v1alpha1"')
    assert shown('controller_runtime_reconcile_errors_total{controller="terraformcluster"}')
    assert get(f"{url}/debug/flags/v")[0] == 404


def test_a_port_in_use_is_one_clear_error(world: World, start):
    first = start(replace(SETTINGS, health_addr="127.0.0.1:0"))
    taken = replace(SETTINGS, health_addr=f"127.0.0.1:{first.port('health')}")
    with pytest.raises(EnvironmentFault, match="cannot serve health"):
        Manager(world.door, taken, world.clock)


def test_no_secret_is_in_anything_the_manager_writes_about_a_run(world: World, start):
    start()
    run_one(world)
    eventually(lambda: ready(world), "Ready")
    texts = [TERRAFORM_CLUSTERS.encode(world.obj)]
    texts += [EVENTS.encode(event) for event in world.door.list(EVENTS).items]
    texts += [JOBS.encode(job) for job in world.jobs()]
    assert not any(b"s3cr3t" in text or b"czNjcjN0" in text for text in texts)
    assert json.loads(texts[0])["status"]["conditions"]


def test_settings_that_make_no_sense_are_refused(world: World):
    with pytest.raises(InputError):
        Manager(world.door, replace(SETTINGS, runner_image=""), world.clock)
    with pytest.raises(NotFound):
        world.door.get(LEASES, LEASE_NAME, "captf-system")


def test_a_manager_that_cannot_be_made_leaves_no_thread(world: World):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        before = threading.active_count()
        settings = replace(SETTINGS, health_addr=f"127.0.0.1:{taken.getsockname()[1]}")
        with pytest.raises(EnvironmentFault):
            Manager(world.door, settings, SystemClock())
        assert threading.active_count() == before
