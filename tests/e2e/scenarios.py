"""What happens to objects: each function is one story, for any site."""

import json
import os
import shlex
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from captfctl.cluster.door import Propagation
from captfctl.cluster.errors import Forbidden, NotFound
from captfctl.cluster.live import LiveDoor
from captfctl.embedded.supervisor.records import read_claim
from captfctl.model import keys
from captfctl.model.conditions import find
from captfctl.model.core import Event, Job, Namespace, Pod
from captfctl.model.meta import Condition, ObjectMeta
from captfctl.model.ops import Op
from captfctl.model.owner import Owner
from captfctl.model.plan import PlanPhase, TerraformPlan
from captfctl.model.resources import (
    EVENTS,
    JOBS,
    LEASES,
    NAMESPACES,
    PODS,
    SECRETS,
    TERRAFORM_CLUSTERS,
    TERRAFORM_PLANS,
)
from captfctl.model.terraform import TerraformCluster
from captfctl.reconcile.kept_pods import kept_pods
from captfctl.terraform.state.reader import State, read_state
from runner import wire
from tests.e2e.counted import Counted
from tests.e2e.site import IMAGE, ROOT, Captfctl, Site, children, eventually

NAME = "quickstart"


class Story:
    """One TerraformCluster in a namespace of its own, with what a test asks about it."""

    def __init__(self, site: Site, namespace: str, **variables: int) -> None:
        self.site = site
        self.namespace = namespace = site.fresh_name(namespace)
        self.door: LiveDoor = site.door()
        text = (ROOT / "examples" / "quickstart" / "cluster.yaml").read_text()
        text = text.replace("namespace: default", f"namespace: {namespace}")
        text = text.replace("list: [default]", f"list: [{namespace}]")
        text = text.replace(
            "kind: TerraformClusterIdentity\nmetadata:\n  name: quickstart",
            f"kind: TerraformClusterIdentity\nmetadata:\n  name: {namespace}",
        )
        text = text.replace(
            "identityRef:\n    name: quickstart", f"identityRef:\n    name: {namespace}"
        )
        for name, value in variables.items():
            text = text.replace("    subnets: 2\n", f"    subnets: 2\n    {name}: {value}\n")
        if "subnets" in variables:
            text = text.replace("    subnets: 2\n", "")
        self.objects = text

    def replace(self, old: str, new: str) -> None:
        """Change the objects' text before they are created."""
        assert old in self.objects
        self.objects = self.objects.replace(old, new)

    def create(self, **labels: str) -> None:
        """Create the objects in a new namespace with `labels`."""
        namespace = Namespace(
            api_version="v1",
            kind="Namespace",
            metadata=ObjectMeta(name=self.namespace, labels=labels),
        )
        self.door.create(NAMESPACES, namespace)
        self.site.kubectl("apply", "-f", "-", text=self.objects)

    def set_variables(self, **variables: int | str | None) -> None:
        self.door.patch(
            TERRAFORM_CLUSTERS, NAME, self.namespace, {"spec": {"variables": variables}}
        )

    def cluster(self) -> TerraformCluster:
        return self.door.get(TERRAFORM_CLUSTERS, NAME, self.namespace)

    def condition(self, kind: str) -> Condition | None:
        return find(self.cluster().status.conditions, kind)

    def is_true(self, kind: str) -> bool:
        found = self.condition(kind)
        return found is not None and found.status == "True"

    def settled(self) -> bool:
        """Ready with everything applied and nothing running."""
        cluster = self.cluster()
        return (
            cluster.status.observed_generation == cluster.metadata.generation
            and cluster.status.active_job is None
            and self.is_true("Ready")
            and self.is_true("InputsApplied")
        )

    def wait_settled(self, seconds: float = 90.0) -> None:
        eventually(self.settled, lambda: f"{self.namespace} ready: {self.explain()}", seconds)

    def explain(self) -> list[str]:
        conditions = self.cluster().status.conditions
        return [f"{c.type}={c.status}/{c.reason}: {c.message}" for c in conditions]

    def jobs(self, op: Op) -> list[Job]:
        found = self.door.list(JOBS, self.namespace, labels=f"{keys.OP}={op}").items
        return sorted(found, key=lambda job: int(job.metadata.labels[keys.ATTEMPT]))

    def plans(self, phase: PlanPhase | None = None) -> list[TerraformPlan]:
        found = self.door.list(TERRAFORM_PLANS, self.namespace).items
        return [plan for plan in found if phase in (None, plan.status.phase)]

    def pods(self) -> list[Pod]:
        return self.door.list(PODS, self.namespace).items

    def events(self, reason: str) -> list[Event]:
        return [e for e in self.door.list(EVENTS, self.namespace).items if e.reason == reason]

    def state_owner(self) -> Owner:
        return Owner(
            kind="TerraformCluster",
            namespace=self.namespace,
            name=NAME,
            uid=self.cluster().metadata.uid,
            cluster=NAME,
        )

    def state(self) -> State:
        found = read_state(self.door, self.state_owner())
        assert isinstance(found, State), found
        return found

    def processes(self, *words: str) -> dict[int, str]:
        """Processes of this object's pods."""
        uids = [pod.metadata.uid for pod in self.pods()]
        return {pid: line for uid in uids for pid, line in self.site.processes(uid, *words).items()}

    def wait_applying(self) -> int:
        """Wait until Terraform creates a resource (it holds the lock then); its pid."""
        eventually(lambda: self._creating() is not None, "terraform creates a resource", 120)
        pid = self._creating()
        assert pid is not None
        return pid

    def _creating(self) -> int | None:
        """The Terraform whose child is the provisioner of a resource."""
        applying = self.processes("terraform", " apply ")
        return next((pid for pid in applying if children(pid, "sleep")), None)

    def wait_quiet(self) -> None:
        """No process of a pod is left."""
        eventually(lambda: not self.processes(), lambda: f"processes end: {self.processes()}", 30)

    def no_lease_left(self) -> bool:
        return not self.door.list(LEASES, self.namespace, labels=keys.LEASE).items

    def namespace_gone(self) -> bool:
        try:
            self.door.get(NAMESPACES, self.namespace)
        except NotFound:
            return True
        return False

    def gone(self) -> bool:
        try:
            self.cluster()
        except NotFound:
            return True
        return False

    def close(self) -> None:
        self.door.close()


def namespace_is_deleted_first(story: Story) -> None:
    """Nothing can be destroyed there any more: it is said, and the way out works."""
    story.create()
    story.wait_settled()
    story.door.delete(NAMESPACES, story.namespace)

    def told() -> bool:
        found = story.condition("ApplyJobSucceeded")
        return found is not None and found.reason == "NamespaceTerminating"

    eventually(told, lambda: f"it is said: {story.explain()}", 90)
    found = story.condition("ApplyJobSucceeded")
    assert found is not None
    assert "Retain" in found.message
    assert story.state().resources > 0
    story.door.patch(
        TERRAFORM_CLUSTERS, NAME, story.namespace, {"spec": {"deletionPolicy": "Retain"}}
    )
    eventually(story.gone, lambda: f"it is released: {story.explain()}", 60)
    eventually(story.namespace_gone, "the namespace is gone", 60)


def protected_cluster_is_kept(story: Story) -> None:
    """Neither a person nor Cluster API deletes it until the protection is taken off."""
    story.create()
    story.wait_settled()
    kubectl, namespace = story.site.kubectl, ("-n", story.namespace)
    ours = ("patch", "terraformclusters", NAME, *namespace, "--type=merge", "-p")
    kubectl(*ours, '{"spec":{"deletionProtection":true}}')
    with pytest.raises(Forbidden) as refused:
        story.door.delete(TERRAFORM_CLUSTERS, NAME, story.namespace)
    way_out = refused.value.what.partition("first: kubectl ")[2]
    assert way_out

    kubectl("delete", "cluster", NAME, *namespace, "--wait=false")
    cluster = ("get", "cluster", NAME, *namespace, "-o", "jsonpath={.status.phase}")
    eventually(lambda: kubectl(*cluster) == "Deleting", "Cluster API deletes the Cluster", 30)
    assert not story.cluster().deleting
    kubectl(*shlex.split(way_out))
    eventually(story.gone, lambda: f"it is destroyed: {story.explain()}", 90)


def lives_and_dies(story: Story) -> None:
    """Apply, change, delete: one Job for each wish, and nothing left at the end."""
    story.create()
    story.wait_settled()
    cluster = story.cluster()
    assert cluster.spec.control_plane_endpoint is not None
    assert cluster.spec.control_plane_endpoint.host == "quickstart-api.example.com"
    assert [job.metadata.labels[keys.ATTEMPT] for job in story.jobs(Op.APPLY)] == ["1"]
    job = story.jobs(Op.APPLY)[0].metadata.name
    log = story.site.kubectl("logs", "-n", story.namespace, f"job/{job}")
    assert "has been successfully initialized" in log

    story.set_variables(subnets=3)
    eventually(lambda: len(story.jobs(Op.APPLY)) == 2, "the second apply")
    story.wait_settled()
    assert len(story.jobs(Op.APPLY)) == 2
    assert story.no_lease_left()

    story.site.kubectl("delete", "cluster", NAME, "-n", story.namespace, "--timeout=90s")
    assert story.gone()
    eventually(lambda: nothing_left(story), lambda: f"nothing left: {leftovers(story)}", 30)


def changes_wait_for_an_approval(story: Story) -> None:
    """What is planned waits; what is approved, here with kubectl, is applied and nothing else."""
    story.replace("  variables:\n", "  applyPolicy: Manual\n  variables:\n")
    story.create()
    story.wait_settled()
    assert story.plans() == []
    story.set_variables(subnets=3)
    eventually(lambda: story.plans(PlanPhase.PENDING), lambda: f"a plan: {story.explain()}")
    (plan,) = story.plans()
    command = f"captfctl approve {plan.metadata.name} -n {story.namespace}"

    def told() -> bool:  # the object is written after its plan
        said = story.condition("ApplyJobSucceeded")
        return said is not None and said.message.endswith(command)

    eventually(told, lambda: f"how to approve: {story.explain()}")
    assert len(story.jobs(Op.APPLY)) == 1
    user = story.site.kubectl("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")
    approval = json.dumps({"spec": {"approved": True, "approvedBy": user}})
    named = ("terraformplan", plan.metadata.name, "-n", story.namespace)
    story.site.kubectl("patch", *named, "--type=merge", "-p", approval)
    story.wait_settled()
    (plan,) = story.plans(PlanPhase.APPLIED)
    (job,) = (job for job in story.jobs(Op.APPLY) if keys.PLAN in job.metadata.annotations)
    assert job.metadata.annotations[keys.APPROVED_PLAN] == plan.spec.plan_hash
    assert user in story.events("PlanApproved")[0].note


def leftovers(story: Story) -> list[str]:
    secrets = [s.metadata.name for s in story.door.list(SECRETS, story.namespace).items]
    ours = [name for name in secrets if name.startswith(("captf-", "tfstate-"))]
    leases = [lease.metadata.name for lease in story.door.list(LEASES, story.namespace).items]
    jobs = [job.metadata.name for job in story.door.list(JOBS, story.namespace).items]
    return [*ours, *leases, *jobs, *(pod.metadata.name for pod in story.pods())]


def nothing_left(story: Story) -> bool:
    return not leftovers(story)


def manager_is_killed_while_terraform_applies(story: Story) -> None:
    """The same Job is adopted and finishes: there is exactly one apply."""
    story.create()
    story.wait_applying()
    story.site.crash_manager()
    story.wait_settled()
    assert len(story.jobs(Op.APPLY)) == 1
    assert story.state().inputs_hash
    assert story.no_lease_left()
    story.wait_quiet()


def node_is_killed_while_terraform_applies(story: Story) -> None:
    """The run goes on without the node agent, which adopts it again."""
    story.create()
    terraform = story.wait_applying()
    story.site.crash_node()
    assert Path(f"/proc/{terraform}").exists()
    story.wait_settled()
    assert len(story.jobs(Op.APPLY)) == 1
    story.wait_quiet()


def runner_is_killed_while_terraform_applies(story: Story) -> None:
    """A run without a result is a failure; its tree is ended, its lock does not stay in the way."""
    story.create()
    story.wait_applying()
    (runner,) = story.processes("/bin/runner run", "--op=")
    os.kill(runner, signal.SIGKILL)
    story.wait_quiet()
    eventually(lambda: failed_apply(story), lambda: f"the failure shows: {story.explain()}")
    assert story.no_lease_left()
    # Other inputs are tried at once; whatever the dead run holds must not stop them.
    story.set_variables(subnets=3, seconds=0)
    story.wait_settled()
    assert len(story.jobs(Op.APPLY)) == 2
    story.wait_quiet()


def terraform_is_killed_while_it_applies(story: Story) -> None:
    """The runner reports the step; the lock of the dead run is taken off by the next one."""
    story.create()
    os.kill(story.wait_applying(), signal.SIGKILL)
    eventually(lambda: failed_apply(story), lambda: f"the failure shows: {story.explain()}")
    last = story.cluster().status.last_run
    assert last is not None and last.error is not None
    assert (last.error.kind, last.error.step) == ("step", "apply")
    story.wait_quiet()
    assert story.no_lease_left()
    story.set_variables(subnets=3, seconds=0)
    story.wait_settled()
    assert len(story.jobs(Op.APPLY)) == 2


def pod_is_deleted_while_terraform_applies(story: Story) -> None:
    """The result is read before the pod goes: an interruption, tried again at once."""
    pod = pod_that_applies(story)
    story.site.kubectl("delete", "pod", pod, "-n", story.namespace, "--timeout=90s")
    interrupted_apply_is_tried_again(story)


def node_is_drained_while_terraform_applies(story: Story, node: str) -> None:
    """The pod goes once its result is read; the apply is tried again at once."""
    pod = pod_that_applies(story)
    drained = f"captf.io/drained={story.namespace}"  # and no pod of an earlier story
    story.site.kubectl("label", "pod", pod, "-n", story.namespace, drained)
    selected = (f"--pod-selector={drained}", "--delete-emptydir-data", "--timeout=90s")
    try:
        told = story.site.kubectl("drain", node, *selected)
        assert pod not in [left.metadata.name for left in story.pods()], told
    finally:
        story.site.kubectl("uncordon", node)
    interrupted_apply_is_tried_again(story)


def pod_that_applies(story: Story) -> str:
    """Its name."""
    story.create()
    story.wait_applying()
    story.set_variables(seconds=0)  # for the next one
    (pod,) = story.pods()
    return pod.metadata.name


def interrupted_apply_is_tried_again(story: Story) -> None:
    """At once, and as one that told what it did."""
    eventually(lambda: len(story.jobs(Op.APPLY)) == 2, lambda: f"again: {story.explain()}", 30)
    first, second = story.jobs(Op.APPLY)
    assert first.metadata.annotations[keys.INTERRUPTED] == keys.TRUE
    assert keys.AFTER_INTERRUPTED_APPLY not in second.metadata.annotations
    assert story.events("JobInterrupted")
    story.wait_settled()
    assert story.state().resources == 2
    eventually(lambda: not kept_pods(story.door, story.namespace), "the pods are free", 20)


def run_reaches_its_deadline(story: Story) -> None:
    """Condition and event say so, and what the run told is known."""
    jobs = "  jobs: {activeDeadlineSeconds: 12, lockTimeoutSeconds: 5}\n"
    story.replace("  variables:\n", f"{jobs}  variables:\n")
    story.create()
    story.wait_applying()
    story.set_variables(seconds=0)  # for the next one

    def told() -> bool:
        found = story.condition("ApplyJobSucceeded")
        return found is not None and found.reason == "JobDeadlineExceeded"

    eventually(told, lambda: f"the deadline shows: {story.explain()}", 90)
    eventually(lambda: story.events("JobDeadlineExceeded"), "the event")
    last = story.cluster().status.last_run
    assert last is not None and last.error is not None
    assert last.error.kind == "interrupted"
    story.wait_settled()
    assert story.state().resources == 2
    eventually(lambda: not kept_pods(story.door, story.namespace), "the pods are free", 20)


def supervisor_is_frozen_and_its_pod_deleted_by_force(story: Story) -> None:
    """The node ends the tree itself; until then nothing unlocks the state or applies again."""
    story.create()
    terraform = story.wait_applying()
    story.set_variables(seconds=0)  # for the next one
    (pod,) = story.pods()
    home = story.site.node_data / "pods" / pod.metadata.uid / "containers" / "source"
    claim = read_claim(home)
    assert claim is not None
    os.kill(claim.pid, signal.SIGSTOP)
    force = ("--force", "--grace-period=0", "--wait=false")
    story.site.kubectl("delete", "pod", pod.metadata.name, "-n", story.namespace, *force)

    def again() -> bool:
        lives = Path(f"/proc/{terraform}").exists()
        second = len(story.jobs(Op.APPLY)) == 2
        assert not (lives and second), "a second apply beside a living Terraform"
        return second

    eventually(again, lambda: f"again: {story.explain()}", 60)
    story.wait_settled()
    assert story.state().resources == 2
    story.wait_quiet()


def node_is_frozen_while_its_pod_is_deleted_by_force(story: Story, agent: Captfctl) -> None:
    """A pod is there until its node says that it ended: nothing else counts it as dead."""
    story.create()
    terraform = story.wait_applying()
    story.set_variables(seconds=0)  # for the next one
    (pod,) = story.pods()
    agent.signal(signal.SIGSTOP)
    try:
        force = ("--force", "--grace-period=0", "--wait=false")
        story.site.kubectl("delete", "pod", pod.metadata.name, "-n", story.namespace, *force)
        story.door.delete(
            JOBS,
            story.jobs(Op.APPLY)[0].metadata.name,
            story.namespace,
            propagation=Propagation.BACKGROUND,
        )
        eventually(lambda: story.events("JobInterrupted"), "the deletion is noticed", 30)
        assert [found.metadata.uid for found in story.pods()] == [pod.metadata.uid]
        assert not story.jobs(Op.APPLY)
        assert Path(f"/proc/{terraform}").exists()
    finally:
        agent.signal(signal.SIGCONT)
    eventually(lambda: story.jobs(Op.APPLY), lambda: f"again: {story.explain()}", 60)
    assert not Path(f"/proc/{terraform}").exists()
    story.wait_settled()
    assert story.state().resources == 2


def job_is_deleted_while_terraform_applies(story: Story) -> None:
    """Its pod ends in order and tells how; then the apply is tried again, without a wait."""
    story.create()
    story.wait_applying()
    story.set_variables(seconds=0)  # for the next one
    (job,) = story.jobs(Op.APPLY)
    story.door.delete(JOBS, job.metadata.name, story.namespace, propagation=Propagation.BACKGROUND)
    eventually(
        lambda: any(again.metadata.uid != job.metadata.uid for again in story.jobs(Op.APPLY)),
        lambda: f"again: {story.explain()}",
        30,
    )
    # The pass that starts the next one writes the object after it.
    eventually(
        lambda: last_error(story) == (job.metadata.name, "interrupted"),
        lambda: f"it tells: {story.explain()}",
        30,
    )
    story.wait_settled()
    assert story.state().resources == 2
    eventually(lambda: not kept_pods(story.door, story.namespace), "the pods are free", 20)


def last_error(story: Story) -> tuple[str, str] | None:
    """The Job that `status.lastRun` is about, and the kind of its error, if it has one."""
    last = story.cluster().status.last_run
    return (last.job, last.error.kind) if last is not None and last.error is not None else None


def module_refuses_its_variables(story: Story) -> None:
    """Condition, event and lastRun name the step and the error; the correction applies at once."""
    story.create()
    eventually(lambda: failed_apply(story), lambda: f"the failure shows: {story.explain()}")
    condition = story.condition("ApplyJobSucceeded")
    assert condition is not None
    first = story.jobs(Op.APPLY)[0].metadata.name
    assert condition.reason == "ApplyFailed"
    assert f"Job {first}" in condition.message
    assert "plan" in condition.message
    last = story.cluster().status.last_run
    assert last is not None and last.error is not None
    assert last.error.step == "plan"
    assert "Resource precondition failed" in last.error.summary
    eventually(lambda: story.events("JobFailed"), "the event")
    (event,) = story.events("JobFailed")
    assert "plan" in event.note
    assert "next attempt with the same inputs not before" in event.note

    story.set_variables(subnets=2)
    story.wait_settled()
    assert len(story.jobs(Op.APPLY)) == 2


def end_apply_without_a_server(story: Story, counted: Counted, away: Callable[[], None]) -> Path:
    """The API server goes `away` while the apply creates something, and then the apply ends; the
    state that it left."""
    story.replace(IMAGE, counted.image)
    story.create()
    eventually(lambda: counted.times == 1, "the creation", 120)
    away()
    counted.gate.write_text("")
    pods = story.site.node_data / "pods"
    left = f"*/root/captf/work/{wire.ERRORED_STATE}"
    eventually(lambda: list(pods.glob(left)), lambda: f"a state in {list(pods.iterdir())}", 60)
    (file,) = pods.glob(left)
    return file


def server_is_away_while_an_apply_ends(
    story: Story, counted: Counted, away: Callable[[], None], back: Callable[[], None]
) -> None:
    """The run stores its state when the server is `back`; nothing is created twice."""
    file = end_apply_without_a_server(story, counted, away)
    back()
    eventually(lambda: not file.exists(), "the push", 90)
    story.set_variables(subnets=3)  # at once, instead of after the backoff
    story.wait_settled()
    assert counted.times == 1
    assert story.state().resources == 3


def run_dies_with_a_state_that_it_could_not_store(
    story: Story, counted: Counted, away: Callable[[], None], back: Callable[[], None]
) -> None:
    """Its node keeps the state, and the object says so."""
    file = end_apply_without_a_server(story, counted, away)
    (uid, *_) = file.relative_to(story.site.node_data / "pods").parts
    (runner,) = story.site.processes(uid, "/bin/runner run", "--op=")
    os.kill(runner, signal.SIGKILL)
    back()

    def told() -> bool:
        found = story.condition("StateReadable")
        return found is not None and found.reason == "StateNotSaved"

    eventually(told, lambda: f"it is said: {story.explain()}", 60)


def change_stores_what_was_left(story: Story) -> None:
    """Before the next apply, which goes on from it."""
    story.set_variables(subnets=3)
    story.wait_settled()
    assert story.state().resources == 3
    assert not [name for name in leftovers(story) if name.startswith("captf-unsaved-")]


def deletion_stores_what_was_left(story: Story) -> None:
    """Before the destroy."""
    story.site.kubectl("delete", "cluster", NAME, "-n", story.namespace, "--timeout=90s")
    assert story.gone()
    eventually(lambda: nothing_left(story), lambda: f"nothing left: {leftovers(story)}", 30)


def run_is_out_of_memory(story: Story) -> None:
    """Condition, event and lastRun say it; the pod says who held it to its limit."""
    story.create()
    eventually(lambda: failed_apply(story), lambda: f"the failure shows: {story.explain()}")
    said = "out of memory: the run was ended at its limit of 400Mi"
    condition = story.condition("ApplyJobSucceeded")
    assert condition is not None
    assert said in condition.message
    last = story.cluster().status.last_run
    assert last is not None and last.error is not None
    assert said in last.error.summary
    eventually(lambda: story.events("JobFailed"), "the event")
    assert said in story.events("JobFailed")[0].note
    (pod,) = story.pods()
    assert pod.metadata.annotations["captf.io/memory-limit-by"] in ("cgroup", "watchdog")


def module_that_never_worked_is_deleted(story: Story) -> None:
    """Nothing was created, so nothing is destroyed with the module that cannot run."""
    story.create()
    eventually(lambda: failed_apply(story), lambda: f"the failure shows: {story.explain()}")
    story.site.kubectl("delete", "cluster", NAME, "-n", story.namespace, "--timeout=60s")
    assert story.gone()
    assert story.jobs(Op.DESTROY) == []
    eventually(lambda: nothing_left(story), lambda: f"nothing left: {leftovers(story)}", 30)


def manager_writes_under_one_name(story: Story) -> None:
    """Whatever the manager wrote, to an object or its status, is `captf-manager`'s."""
    story.create()
    story.wait_settled()
    found = {
        kind: _writers(story, kind, managed)
        for kind, managed in (
            ("terraformcluster", False),
            ("terraformclusteridentity", False),
            ("job", True),
            ("secret", True),
            ("serviceaccount", True),
            ("rolebinding", True),
        )
    }
    both = {("captf-manager", ""), ("captf-manager", "status")}
    assert both <= found["terraformcluster"]
    assert ("captf-manager", "status") in found["terraformclusteridentity"]
    for kind in ("job", "secret", "serviceaccount", "rolebinding"):
        assert ("captf-manager", "") in found[kind], kind
    del found["terraformclusteridentity"]  # other stories made some of them
    writers = {name for entries in found.values() for name, _ in entries}
    assert {name for name in writers if name.startswith("captfctl")} <= {"captfctl-local"}, found
    assert found["secret"] == {("captf-manager", "")}


def _writers(story: Story, kind: str, managed: bool) -> set[tuple[str, str]]:
    """Who wrote objects of a kind, and to which subresource, as kubectl shows it."""
    selector = [f"--selector={keys.MANAGED}=true,!{keys.TFSTATE}"] if managed else []
    text = story.site.kubectl(
        "get", kind, "-n", story.namespace, "-o", "json", "--show-managed-fields", *selector
    )
    items = json.loads(text)["items"]
    assert items, kind
    entries = [item["metadata"].get("managedFields", []) for item in items]
    assert all(entries), kind
    return {(e["manager"], e.get("subresource", "")) for es in entries for e in es}


def first_apply_fails_half_way(story: Story, gate: Path) -> None:
    """What it left is tainted; the retry replaces that. `gate` lets the module's resource succeed,
    and `subnets` replaces it: once something worked, that needs approval."""
    story.create()
    eventually(lambda: failed_apply(story), lambda: f"the failure shows: {story.explain()}")
    assert story.state().resources > 0
    gate.write_text("")
    story.set_variables(region="eu-2")
    story.wait_settled()
    assert len(story.jobs(Op.APPLY)) == 2

    story.set_variables(subnets=3)
    eventually(
        lambda: has_reason(story, "DestructivePlanBlocked"),
        lambda: f"the guard: {story.explain()}",
    )


def has_reason(story: Story, reason: str) -> bool:
    condition = story.condition("ApplyJobSucceeded")
    return condition is not None and condition.reason == reason


def failed_apply(story: Story) -> bool:
    condition = story.condition("ApplyJobSucceeded")
    return (
        condition is not None
        and condition.reason == "ApplyFailed"
        and story.cluster().status.active_job is None
    )


def image_that_cannot_be_pulled_is_told_and_corrected(story: Story, right: str) -> None:
    """The objects name an image that does not exist; `right` is one that does."""

    def refused() -> bool:
        found = story.condition("ApplyJobSucceeded")
        return found is not None and found.reason == "ImagePullFailed"

    story.create()
    eventually(refused, lambda: f"the image is told: {story.explain()}", 20)
    assert story.events("JobCannotStart")
    (first,) = story.jobs(Op.APPLY)
    patch = {"spec": {"source": {"image": right}}}
    story.door.patch(TERRAFORM_CLUSTERS, NAME, story.namespace, patch)
    story.wait_settled(60)
    assert story.events("UnstartedJobReplaced")
    assert first.metadata.uid not in [job.metadata.uid for job in story.jobs(Op.APPLY)]
    assert story.state().resources > 0


def object_without_its_image_is_deleted(story: Story) -> None:
    """Nothing was ever created: nothing is waited for."""
    story.create()
    eventually(lambda: story.events("JobCannotStart"), lambda: f"told: {story.explain()}", 20)
    story.door.delete(TERRAFORM_CLUSTERS, NAME, story.namespace)
    eventually(story.gone, lambda: f"gone: {story.explain()}", 60)
