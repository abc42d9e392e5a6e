"""The manager and the runner have what they use and use what they have."""

import contextlib

import pytest

from captfctl.cluster.errors import Forbidden
from captfctl.cluster.live import LiveDoor
from captfctl.install import permissions
from captfctl.install.permissions import Permission
from captfctl.model.core import (
    Container,
    Job,
    JobSpec,
    PodSpec,
    PodTemplate,
    RoleBinding,
    RoleRef,
    Secret,
    Subject,
)
from captfctl.model.meta import ObjectMeta, OwnerReference
from captfctl.model.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    JOBS,
    ROLE_BINDINGS,
    SECRETS,
    SERVICE_ACCOUNTS,
    TERRAFORM_CLUSTERS,
)
from tests.e2e import scenarios
from tests.e2e.scenarios import NAME, Story
from tests.e2e.site import eventually
from tests.kubernetes.audit import requests
from tests.kubernetes.site import NAMESPACE

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(300)]

MANAGER = f"system:serviceaccount:{NAMESPACE}:captf-manager"

# These never show as requests: the API server asks for them while it admits another one. That each
# is needed is shown below, by taking it away.
ASKED_AT_ADMISSION = {
    ("batch", "jobs/finalizers", "update"),
    ("infrastructure.cluster.x-k8s.io", "terraformclusters/finalizers", "update"),
    ("rbac.authorization.k8s.io", "clusterroles", "bind"),
}


def granted(rules: tuple[Permission, ...]) -> set[tuple[str, str, str]]:
    return {(p.group, r, v) for p in rules for r in p.resources for v in p.verbs}


def used(site, user: str) -> set[tuple[str, str, str]]:
    return {request.right for request in requests(site.plane.audit_log) if request.user == user}


def refused(site, user: str) -> list[str]:
    return [
        f"{r.verb} {r.group}/{r.resource} {r.namespace}/{r.name}"
        for r in requests(site.plane.audit_log)
        if r.user == user and r.code == 403
    ]


def test_a_whole_life_needs_every_permission_of_the_manager_and_no_other(site):
    story = Story(site, "rights")
    scenarios.lives_and_dies(story)
    eventually(lambda: ("", "serviceaccounts", "delete") in used(site, MANAGER), "the sweep", 30)

    assert refused(site, MANAGER) == []
    seen = used(site, MANAGER)
    allowed = granted(permissions.MANAGER) | granted(permissions.LEADER)
    assert seen - allowed == set()
    never = granted(permissions.MANAGER) - seen - ASKED_AT_ADMISSION
    assert not never, "\n".join(map(str, sorted(never)))


def test_a_run_needs_every_permission_of_the_runner_and_no_other(site):
    story = Story(site, "runner-rights")
    story.create()
    story.wait_settled()
    user = f"system:serviceaccount:{story.namespace}:captf-runner"
    assert refused(site, user) == []
    assert used(site, user) <= granted(permissions.RUNNER)
    # A chunk of a large state is deleted when the state shrinks: not in a state of this size.
    never = granted(permissions.RUNNER) - used(site, user) - {("", "secrets", "delete")}
    assert never == set()


def without(site, name: str, right: tuple[str, str, str]) -> LiveDoor:
    """A door of an account that has the manager's permissions but for one."""
    door = site.door()
    rules = tuple(
        Permission(p.group, tuple(r for r in p.resources if (p.group, r) != right[:2]), p.verbs, "")
        for p in permissions.MANAGER
    )
    account = SERVICE_ACCOUNTS.type(
        api_version="v1",
        kind="ServiceAccount",
        metadata=ObjectMeta(name=name, namespace=NAMESPACE),
    )
    door.create(SERVICE_ACCOUNTS, account, NAMESPACE)
    kept = tuple(p for p in rules if p.resources)
    door.create(CLUSTER_ROLES, permissions.cluster_role(f"test-{name}", kept))
    binding = RoleBinding(
        api_version=CLUSTER_ROLE_BINDINGS.api_version,
        kind=CLUSTER_ROLE_BINDINGS.kind,
        metadata=ObjectMeta(name=f"test-{name}"),
        role_ref=RoleRef(
            api_group="rbac.authorization.k8s.io", kind="ClusterRole", name=f"test-{name}"
        ),
        subjects=[Subject(kind="ServiceAccount", name=name, namespace=NAMESPACE)],
    )
    door.create(CLUSTER_ROLE_BINDINGS, binding)
    kubeconfig = site.folder / f"{name}.kubeconfig"
    site.plane.write_kubeconfig(kubeconfig, site.token(door, name, NAMESPACE))
    door.close()
    return LiveDoor.from_kubeconfig(kubeconfig)


def owned_by(api_version: str, kind: str, name: str, uid: str) -> ObjectMeta:
    reference = OwnerReference(
        api_version=api_version,
        kind=kind,
        name=name,
        uid=uid,
        controller=True,
        block_owner_deletion=True,
    )
    return ObjectMeta(generate_name="test-", namespace="default", owner_references=[reference])


def test_a_job_that_its_object_owns_needs_the_objects_finalizers(site):
    right = ("infrastructure.cluster.x-k8s.io", "terraformclusters/finalizers", "update")
    story = Story(site, "owned")
    story.create()
    uid = story.cluster().metadata.uid
    meta = owned_by(TERRAFORM_CLUSTERS.api_version, TERRAFORM_CLUSTERS.kind, NAME, uid)
    pod = PodSpec(restart_policy="Never", containers=[Container(name="c", image="c")])
    spec = JobSpec(template=PodTemplate(spec=pod))
    job = Job(api_version=JOBS.api_version, kind=JOBS.kind, metadata=meta, spec=spec)
    with (
        contextlib.closing(without(site, "no-finalizers", right)) as door,
        pytest.raises(Forbidden, match="blockOwnerDeletion"),
    ):
        door.create(JOBS, job, "default")


def test_binding_an_extended_runner_role_needs_bind(site):
    door = site.door()
    extended = permissions.cluster_role(
        "test-extended", (Permission("", ("endpoints",), ("get",), ""),)
    )
    door.create(CLUSTER_ROLES, extended)
    binding = RoleBinding(
        api_version=ROLE_BINDINGS.api_version,
        kind=ROLE_BINDINGS.kind,
        metadata=ObjectMeta(name="test-extended", namespace="default"),
        role_ref=RoleRef(
            api_group="rbac.authorization.k8s.io", kind="ClusterRole", name="test-extended"
        ),
        subjects=[Subject(kind="ServiceAccount", name="captf-runner", namespace="default")],
    )
    door.close()
    right = ("rbac.authorization.k8s.io", "clusterroles", "bind")
    with (
        contextlib.closing(without(site, "no-bind", right)) as limited,
        pytest.raises(Forbidden, match="attempting to grant RBAC permissions"),
    ):
        limited.create(ROLE_BINDINGS, binding, "default")


def test_the_manager_cannot_read_what_it_has_no_business_with(site):
    with contextlib.closing(LiveDoor.from_kubeconfig(site.manager_kubeconfig)) as door:
        with pytest.raises(Forbidden):
            door.list(CLUSTER_ROLES)
        secret = Secret(
            api_version="v1", kind="Secret", metadata=ObjectMeta(name="own", namespace="default")
        )
        door.create(SECRETS, secret, "default")
