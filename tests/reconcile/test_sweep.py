"""What a namespace keeps of the runner's objects (credentials.md: The namespace sweep)."""

from captfctl.cluster.errors import Unavailable
from captfctl.model import keys
from captfctl.model.core import Lease, RoleBinding, RoleRef, ServiceAccount
from captfctl.model.meta import ObjectMeta
from captfctl.model.resources import LEASES, ROLE_BINDINGS, SERVICE_ACCOUNTS, TERRAFORM_CLUSTERS
from captfctl.model.terraform import JobPolicy
from captfctl.reconcile.sweep import managed_namespaces, sweep, sweep_quietly
from tests.support.cluster_world import NAMESPACE, World, terraform_cluster
from tests.support.doors import Overridden

MANAGED = {keys.MANAGED: "true"}


def leftovers(world: World) -> None:
    """An empty namespace with one of each, and a binding of somebody else."""
    world.delete()
    meta = {"namespace": NAMESPACE, "labels": dict(MANAGED)}
    world.create(SERVICE_ACCOUNTS, ServiceAccount(metadata=ObjectMeta(name="captf-runner", **meta)))
    world.create(LEASES, Lease(metadata=ObjectMeta(name="captf-run-x", **meta)))
    role = RoleRef(api_group="rbac.authorization.k8s.io", kind="ClusterRole", name="captf-runner")
    ours = ObjectMeta(name="captf-runner", **meta)
    world.create(ROLE_BINDINGS, RoleBinding(metadata=ours, role_ref=role))
    other = ObjectMeta(name="other", namespace=NAMESPACE)
    world.create(ROLE_BINDINGS, RoleBinding(metadata=other, role_ref=role))


def test_an_empty_namespace_loses_what_is_managed_and_keeps_the_rest(world: World):
    leftovers(world)
    assert managed_namespaces(world.door) == {NAMESPACE}
    assert sweep(world.door, NAMESPACE) == 3
    assert [b.metadata.name for b in world.door.list(ROLE_BINDINGS, NAMESPACE).items] == ["other"]
    assert world.door.list(LEASES, NAMESPACE).items == []


def test_an_object_that_comes_between_the_looks_keeps_everything(world: World):
    leftovers(world)

    def late(resource, namespace="", **options):
        page = world.door.list(resource, namespace, **options)
        if not world.door.list(TERRAFORM_CLUSTERS, NAMESPACE).items:
            world.create(TERRAFORM_CLUSTERS, terraform_cluster())
        return page

    door = Overridden(world.door, list={"leases": late})
    assert sweep(door, NAMESPACE) == 0
    assert len(world.door.list(SERVICE_ACCOUNTS, NAMESPACE).items) == 1


def test_what_changed_after_the_look_stays(world: World):
    leftovers(world)

    def touched(resource, namespace="", **options):
        page = world.door.list(resource, namespace, **options)
        change = {"metadata": {"labels": {"x": "y"}}}
        world.door.patch(LEASES, "captf-run-x", NAMESPACE, change)
        return page

    assert sweep(Overridden(world.door, list={"leases": touched}), NAMESPACE) == 2
    assert len(world.door.list(LEASES, NAMESPACE).items) == 1


def test_a_sweep_that_fails_is_logged_and_nobodys_failure(world: World, caplog):
    def broken(*_, **__):
        raise Unavailable("not now")

    sweep_quietly(Overridden(world.door, list={"terraformclusters": broken}), NAMESPACE)
    assert "not now" in caplog.text


def use_account(name: str):
    return lambda obj: setattr(obj.spec, "jobs", JobPolicy(service_account_name=name))


def subjects(world: World) -> list[str]:
    binding = world.door.get(ROLE_BINDINGS, "captf-runner", NAMESPACE)
    return [subject.name for subject in binding.subjects]


def test_an_account_keeps_its_rights_as_long_as_something_runs_as_it(world: World):
    labels = {keys.RUNNER: "true"}
    for name in ("a", "b"):
        meta = ObjectMeta(name=name, namespace=NAMESPACE, labels=labels)
        world.create(SERVICE_ACCOUNTS, ServiceAccount(metadata=meta))
    world.edit(use_account("a"))
    world.settle(2)
    job = world.active_job()
    world.edit(use_account("b"))
    sweep(world.door, NAMESPACE)
    assert subjects(world) == ["a"]
    world.runner.succeed(job)
    world.settle(2)
    assert subjects(world) == ["a", "b"]
    sweep(world.door, NAMESPACE)
    assert subjects(world) == ["b"]
    before = world.door.get(ROLE_BINDINGS, "captf-runner", NAMESPACE)
    sweep(world.door, NAMESPACE)
    assert world.door.get(ROLE_BINDINGS, "captf-runner", NAMESPACE) == before
