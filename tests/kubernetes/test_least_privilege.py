"""The manager and the runner have what they use and use what they have."""

import contextlib
import json
import urllib.error
import urllib.request
from datetime import UTC, datetime, timedelta

import pytest

from captfctl.cluster.errors import Forbidden
from captfctl.cluster.live import LiveDoor
from captfctl.install import permissions
from captfctl.install.permissions import Permission
from captfctl.model import keys, names
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
from captfctl.model.ops import Op
from captfctl.model.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    JOBS,
    ROLE_BINDINGS,
    SECRETS,
    SERVICE_ACCOUNTS,
    TERRAFORM_CLUSTERS,
)
from tests.e2e.scenarios import NAME, Story, changes_wait_for_an_approval
from tests.e2e.site import IMAGE, eventually
from tests.kubernetes.audit import Request, requests
from tests.kubernetes.faults import LEADER_LEASE
from tests.kubernetes.site import LARGE_IMAGE, NAMESPACE
from tests.kubernetes.workers import Workers, machine, machine_template, pool

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(300)]

MANAGER = f"system:serviceaccount:{NAMESPACE}:captf-manager"

# These never show as requests: the API server asks for them while it admits another one. That each
# is needed is shown below, by taking it away.
ASKED_AT_ADMISSION = {
    ("batch", "jobs/finalizers", "update"),
    *(
        ("infrastructure.cluster.x-k8s.io", f"{kind}/finalizers", "update")
        for kind in permissions.OBJECTS
    ),
    ("rbac.authorization.k8s.io", "clusterroles", "bind"),
}


def granted(rules: tuple[Permission, ...]) -> set[tuple[str, str, str]]:
    return {(p.group, r, v) for p in rules for r in p.resources for v in p.verbs}


def used(site, user: str) -> set[tuple[str, str, str]]:
    return {request.right for request in requests(site.plane.audit_log) if request.user == user}


@pytest.fixture
def refused(site):
    """What an account was refused since the test began.

    Not before: an API server that was just started refuses everything until it knows the roles,
    and the tests of faults start it again.
    """
    log = site.plane.audit_log
    since = log.stat().st_size

    def refused(user: str) -> list[str]:
        return [
            f"{r.verb} {r.group}/{r.resource} {r.namespace}/{r.name}"
            for r in requests(log, since)
            if r.user == user and r.code == 403
        ]

    return refused


def story_of_everything(site) -> Story:
    """One object that needs whatever the manager can do, from before its birth to its death.

    Its identity allows namespaces by label, its variables come from a ConfigMap, a lease and a
    state lock of runs that are no more are in its way, its ServiceAccount and its credentials
    change, and only its last Job is kept.
    """
    story = Story(site, "rights")
    story.replace(f"list: [{story.namespace}]", "selector: {matchLabels: {team: rights}}")
    story.replace(
        "  variables:\n", "  variablesFrom: [{configMapRef: {name: zone}}]\n  variables:\n"
    )
    story.replace("    region: eu-north\n", "")
    story.objects += f"---\n{zone(story)}---\n{runner_account(story)}---\n{lease_of_nobody(story)}"
    story.create(team="rights")
    story.wait_settled()
    assert json.loads(bytes(story.state().outputs["exports"].value))["region"] == "eu-south"

    story.site.kubectl("apply", "-f", "-", text=lock_of_nobody(story))
    rotated = {"stringData": {"QUICKSTART_TOKEN": "another"}}
    patch(story, "secret/quickstart-credentials", rotated)
    jobs = {"serviceAccountName": "runs", "successfulJobsHistoryLimit": 1}
    # Held as by a manager that died before it created its Job: the object itself is read again.
    held = {"annotations": {keys.BLOCK_MOVE: "true"}}
    change = {"metadata": held, "spec": {"variables": {"subnets": 3}, "jobs": jobs}}
    patch(story, f"terraformcluster/{NAME}", change)
    eventually(lambda: applied(story, "2"), lambda: f"the second apply: {story.explain()}", 90)
    assert mirrored(story) == b"another"

    story.site.kubectl("apply", "-f", "-", text=plans_of_before(story, 11))
    pruned = ("infrastructure.cluster.x-k8s.io", "terraformplans", "delete")
    eventually(lambda: pruned in used(site, MANAGER), lambda: story.explain(), 60)

    workers = Workers(story)
    template = machine_template("workers", signals="/nowhere")
    workers.apply(machine(state="terminated") + pool(most=2) + template)
    workers.wait_pool_ready()
    marked = ("cluster.x-k8s.io", "machines", "patch")
    eventually(lambda: marked in used(site, MANAGER), lambda: workers.explain(), 90)

    site.kubectl("delete", "cluster", NAME, "-n", story.namespace, "--timeout=180s")
    eventually(lambda: ("", "serviceaccounts", "delete") in used(site, MANAGER), "the sweep", 30)
    return story


def zone(story: Story) -> str:
    return f"""
apiVersion: v1
kind: ConfigMap
metadata: {{name: zone, namespace: {story.namespace}, labels: {{{keys.VARIABLES}: "true"}}}}
data: {{region: eu-south}}
"""


def runner_account(story: Story) -> str:
    return f"""
apiVersion: v1
kind: ServiceAccount
metadata: {{name: runs, namespace: {story.namespace}, labels: {{{keys.RUNNER}: "true"}}}}
"""


def suffix(story: Story) -> str:
    return names.state_suffix("TerraformCluster", story.namespace, NAME)


def lease_of_nobody(story: Story) -> str:
    """The run lease of a Job that was never created, by a manager that died two minutes ago."""
    taken = datetime.now(UTC) - timedelta(seconds=120)
    return f"""
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata:
  name: {names.run_lease(suffix(story))}
  namespace: {story.namespace}
  annotations: {{{keys.LEASE_ACQUIRED_AT}: "{taken.isoformat()}"}}
spec: {{holderIdentity: captf-c-{NAME}-apply-a1-000000, leaseDurationSeconds: 4500}}
"""


def plans_of_before(story: Story, count: int) -> str:
    """Plans that came to an end, as a move brings them along: one more than are kept."""
    uid = story.cluster().metadata.uid
    return "".join(
        f"""---
apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1
kind: TerraformPlan
metadata:
  name: {NAME}-{number:010}
  namespace: {story.namespace}
  labels: {{{keys.PLAN_PHASE}: Superseded}}
  ownerReferences:
    - {{apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1, kind: TerraformCluster, name: {NAME},
       uid: {uid}, controller: true}}
spec:
  targetRef: {{kind: TerraformCluster, name: {NAME}}}
  planHash: "p2:{number:064}"
  inputsHash: "h2:{number:064}"
  reason: Manual
  summary: {{create: 1, update: 0, replace: 0, delete: 0}}
"""
        for number in range(count)
    )


def lock_of_nobody(story: Story) -> str:
    """The state lock of a run whose pod is gone."""
    pod = f"captf-c-{NAME}-apply-a1-000000-x7k2p"
    info = json.dumps({"ID": "lock-1", "Operation": "OperationTypeApply", "Who": f"root@{pod}"})
    return f"""
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata:
  name: {names.state_lock(suffix(story))}
  namespace: {story.namespace}
  annotations: {{{keys.LOCK_INFO}: '{info}'}}
spec: {{holderIdentity: lock-1}}
"""


def patch(story: Story, what: str, change: dict) -> None:
    text = json.dumps(change)
    story.site.kubectl("patch", what, "-n", story.namespace, "--type=merge", "-p", text)


def applied(story: Story, attempt: str) -> bool:
    jobs = story.jobs(Op.APPLY)
    return story.settled() and [job.metadata.labels[keys.ATTEMPT] for job in jobs] == [attempt]


def mirrored(story: Story) -> bytes:
    mirror = story.door.get(SECRETS, names.credentials_mirror(story.namespace), story.namespace)
    return mirror.data["QUICKSTART_TOKEN"]


def scrape(site) -> None:
    """Read the metrics of a manager that asks who one is, as an account that may."""
    name = site.fresh_name("scraper")
    account = "\n".join(
        [
            "apiVersion: v1",
            "kind: ServiceAccount",
            f"metadata: {{name: {name}, namespace: {NAMESPACE}}}",
        ]
    )
    site.kubectl("apply", "-f", "-", text=account)
    site.kubectl(
        "create",
        "clusterrolebinding",
        f"test-{name}",
        f"--clusterrole={permissions.METRICS_ROLE}",
        f"--serviceaccount={NAMESPACE}:{name}",
    )
    with contextlib.closing(site.door()) as door:
        token = site.token(door, name, NAMESPACE)
    assert "captf_build_info" in site.diagnostics("/metrics", token)
    with pytest.raises(urllib.error.HTTPError, match="401"):
        site.diagnostics("/metrics", site.plane.token[::-1])


def test_a_whole_life_needs_every_permission_of_the_manager_and_no_other(site, refused):
    changes_wait_for_an_approval(Story(site, "asked"))
    story_of_everything(site)
    scrape(site)

    assert refused(MANAGER) == []
    seen = used(site, MANAGER)
    allowed = granted(permissions.MANAGER) | granted(permissions.LEADER)
    assert seen - allowed == set()
    never = granted(permissions.MANAGER) - seen - ASKED_AT_ADMISSION
    assert not never, "\n".join(map(str, sorted(never)))


def test_leader_election_needs_every_permission_of_its_role_and_no_other(site, refused):
    before = renewals(site)
    with site.without_manager():
        manager = site.add_manager("leader", "--leader-elect")
        eventually(lambda: renewals(site) > before + 1, lambda: f"renewals: {manager.output()}")
        assert manager.terminate() == 0
    assert refused(MANAGER) == []
    asked = {r.right for r in leader_requests(site) if r.code != 404}
    assert asked == granted(permissions.LEADER)


def leader_requests(site) -> list[Request]:
    everything = requests(site.plane.audit_log)
    return [r for r in everything if r.user == MANAGER and r.name == LEADER_LEASE]


def renewals(site) -> int:
    return sum(r.verb == "patch" and r.code == 200 for r in leader_requests(site))


def test_runs_need_every_permission_of_the_runner_and_no_other(site, refused):
    """The state is too large for one Secret at first, and then not any more."""
    story = Story(site, "runner-rights")
    story.replace(IMAGE, LARGE_IMAGE)
    story.replace("    region: eu-north\n    subnets: 2\n", "    large: true\n")
    story.create()
    story.wait_settled(150)
    assert len(story.state().chunks) > 1
    story.set_variables(large=False)
    eventually(lambda: len(story.jobs(Op.APPLY)) == 2, "the second apply")
    story.wait_settled(150)
    assert len(story.state().chunks) == 1

    user = f"system:serviceaccount:{story.namespace}:captf-runner"
    assert refused(user) == []
    assert used(site, user) == granted(permissions.RUNNER)


def without(site, name: str, right: tuple[str, str, str]) -> LiveDoor:
    """A door of an account that has the manager's permissions but for one."""
    name = site.fresh_name(name)
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
    name = site.fresh_name("test-extended")
    door = site.door()
    extended = permissions.cluster_role(name, (Permission("", ("endpoints",), ("get",), ""),))
    door.create(CLUSTER_ROLES, extended)
    binding = RoleBinding(
        api_version=ROLE_BINDINGS.api_version,
        kind=ROLE_BINDINGS.kind,
        metadata=ObjectMeta(name=name, namespace="default"),
        role_ref=RoleRef(api_group="rbac.authorization.k8s.io", kind="ClusterRole", name=name),
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
        meta = ObjectMeta(generate_name="own-", namespace="default")
        secret = Secret(api_version="v1", kind="Secret", metadata=meta)
        door.create(SECRETS, secret, "default")
