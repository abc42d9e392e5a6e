"""The part of the interrupt matrix with a whole control plane: what happens to pods and nodes.

The API server and its controllers run here, the manager and the node agent as processes of their
own, so that the node agent can be stopped. Each resource of the module takes its time and then
writes its id into a file: an id there that is neither in the state nor destroyed was lost, and its
resource created twice.
"""

import contextlib
import gzip
import json
import os
import random
import re
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from captfctl.clock import SystemClock
from captfctl.cluster.door import Door
from captfctl.embedded.apiserver import ApiServer
from captfctl.embedded.capi import CapiStandIn
from captfctl.embedded.garbage_collector import GarbageCollector
from captfctl.embedded.job_controller import JobController
from captfctl.embedded.plane import install
from captfctl.embedded.scheduler import Scheduler
from captfctl.embedded.store import EmbeddedStore
from captfctl.embedded.supervisor.records import read_claim
from captfctl.model import keys, names
from captfctl.model.conditions import find
from captfctl.model.core import ConfigMap, Pod
from captfctl.model.meta import ObjectMeta
from captfctl.model.ops import Op
from captfctl.model.resources import CONFIG_MAPS, LEASES, SECRETS, TERRAFORM_CLUSTERS
from captfctl.reconcile.kept_pods import kept_pods
from captfctl.runs.jobs import pod_ended
from tests.e2e.scenarios import NAME, Story
from tests.e2e.site import IMAGE, QUICKSTART, Captfctl, Site, eventually
from tests.tools.tally import RoundError, Tally

SLOW = "registry.example.com/slow/cluster:v1"
NODE = "node-1"
RESOURCES = 5
FROZEN_SECONDS = 3.0
DEADLINE = 4
SETTLED_SECONDS = 150.0
_DESTROYED = re.compile(r"Destroying\.\.\. \[id=([0-9a-f-]{36})\]")

MODULE = f"""
variable "record" {{ default = "/dev/null" }}

resource "terraform_data" "slow" {{
  count = {RESOURCES}
  input = count.index
  provisioner "local-exec" {{
    command = "sleep 0.${{count.index + 3}} && echo ${{self.id}} >> ${{var.record}}"
  }}
}}
"""


class Plane(Site):
    """A control plane in this process; manager and node agent in processes of their own."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.kubeconfig = folder / "api" / "kubeconfig"
        self._undo = contextlib.ExitStack()
        self.manager = Captfctl(
            folder / "manager.log",
            "manage",
            f"--kubeconfig={self.kubeconfig}",
            "--runner-image=registry.example.com/captfctl:test",
            "--health-addr=",
            "--diagnostics-address=",
        )
        self.node = Captfctl(
            folder / "node.log",
            "local",
            "node",
            f"--kubeconfig={self.kubeconfig}",
            f"--images={self.images}",
            f"--data={folder / 'node'}",
            f"--name={NODE}",
        )

    def start(self) -> None:
        clock = SystemClock()
        store = EmbeddedStore.in_memory(clock)
        self._undo.callback(store.close)
        door: Door = store.door()
        install(door)
        (self.folder / "api").mkdir()
        server = ApiServer(store, data_dir=self.folder / "api", clock=clock)
        server.start()
        self._undo.callback(server.stop)
        _publish(door, server.ca_path.read_text())
        for part in (
            JobController(door, clock),
            Scheduler(door, clock),
            GarbageCollector(door, lambda: [s.resource for s in store.registry], clock),
            CapiStandIn(door, clock),
        ):
            part.start()
            self._undo.callback(part.stop, 10)
        self.node.start("is up")
        self._undo.callback(self.node.terminate)
        self.manager.start("manager started")
        self._undo.callback(self.manager.terminate)

    def stop(self) -> None:
        self._undo.close()

    def crash_manager(self) -> None:
        self.manager.kill()
        self.manager.start("manager started")

    def crash_node(self) -> None:
        self.node.kill()
        self.node.start("is up")

    @property
    def node_data(self) -> Path:
        return self.folder / "node" / "node"


def _publish(door: Door, authority: str) -> None:
    """What Kubernetes' controller manager does, for nodes to know the server."""
    metadata = ObjectMeta(name="kube-root-ca.crt", namespace="kube-system")
    door.create(
        CONFIG_MAPS, ConfigMap(metadata=metadata, data={"ca.crt": authority}), "kube-system"
    )


def _delete(story: Story, pod: Pod, *more: str) -> None:
    name = pod.metadata.name
    story.site.kubectl("delete", "pod", name, "-n", story.namespace, "--wait=false", *more)


def _pod_deleted(_: Plane, story: Story, pod: Pod) -> None:
    _delete(story, pod)


def _drained(plane: Plane, _: Story, __: Pod) -> None:
    plane.kubectl("drain", NODE, "--disable-eviction", "--force", "--delete-emptydir-data")
    plane.kubectl("uncordon", NODE)


def _deadline(_: Plane, story: Story, __: Pod) -> None:
    """It was set before; the next Job gets another."""

    def told() -> bool:
        return any(
            c.reason == "DeadlineExceeded" for c in story.jobs(Op.APPLY)[0].status.conditions
        )

    _set_deadline(story, 600)
    eventually(lambda: told() or story.settled(), "the deadline", 60)


def _set_deadline(story: Story, seconds: int) -> None:
    jobs = {"activeDeadlineSeconds": seconds, "lockTimeoutSeconds": 1}
    story.door.patch(TERRAFORM_CLUSTERS, NAME, story.namespace, {"spec": {"jobs": jobs}})


def _supervisor_frozen(plane: Plane, story: Story, pod: Pod) -> None:
    home = plane.node_data / "pods" / pod.metadata.uid / "containers" / "source"
    claim = read_claim(home)
    if claim is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(claim.pid, signal.SIGSTOP)
    _delete(story, pod)


def _node_frozen(plane: Plane, story: Story, pod: Pod) -> None:
    plane.node.signal(signal.SIGSTOP)
    try:
        _delete(story, pod)
        time.sleep(FROZEN_SECONDS)
    finally:
        plane.node.signal(signal.SIGCONT)


WAYS: dict[str, Callable[[Plane, Story, Pod], None]] = {
    "pod deleted": _pod_deleted,
    "node drained": _drained,
    "deadline": _deadline,
    "supervisor frozen": _supervisor_frozen,
    "node agent frozen": _node_frozen,
}


def run(rounds: int, rng: random.Random, ways: Sequence[str]) -> dict[str, Tally]:
    """Carry out the rounds of these ways."""
    tallies = {way: Tally() for way in ways}
    with _plane() as plane:
        length = _undisturbed(plane)
        for number in range(rounds):
            for way, tally in tallies.items():
                tally.rounds += 1
                try:
                    _round(
                        plane, f"{way.replace(' ', '-')}-{number}", rng.uniform(0, length), tally
                    )
                except (AssertionError, RoundError, LookupError, OSError) as error:
                    tally.failures.append(f"{way}, round {number}: {error}")
                sys.stderr.write(".")
                sys.stderr.flush()
    sys.stderr.write("\n")
    return tallies


@contextlib.contextmanager
def _plane() -> Iterator[Plane]:
    with tempfile.TemporaryDirectory(prefix="captf-matrix-") as scratch:
        module = Path(scratch) / "module"
        module.mkdir()
        for file in QUICKSTART.glob("*.tf"):
            (module / file.name).write_text(file.read_text())
        (module / "slow.tf").write_text(MODULE)
        plane = Plane(Path(scratch) / "plane")
        plane.add_image(SLOW, module=module)
        try:
            plane.start()
            yield plane
        finally:
            plane.stop()


def _story(plane: Plane, name: str) -> Story:
    story = Story(plane, name)
    story.replace(IMAGE, SLOW)
    record = plane.folder / f"{name}.record"
    record.touch()
    story.replace("    subnets: 2\n", f"    subnets: 2\n    record: {record}\n")
    return story


def _undisturbed(plane: Plane) -> float:
    """How long the first apply takes on this machine."""
    story = _story(plane, "undisturbed")
    story.create()
    eventually(lambda: story.pods(), "a pod", 60)
    begun = time.monotonic()
    story.wait_settled(SETTLED_SECONDS)
    return time.monotonic() - begun


def _round(plane: Plane, name: str, instant: float, tally: Tally) -> None:
    way = name.rpartition("-")[0].replace("-", " ")
    story = _story(plane, name)
    story.create()
    if way == "deadline":
        _set_deadline(story, DEADLINE)
    eventually(lambda: story.pods(), "a pod", 60)
    (pod,) = story.pods()
    if way != "deadline":
        time.sleep(instant)
    tally.hit["over" if pod_ended(_live(story, pod)) else "running"] += 1
    WAYS[way](plane, story, pod)
    story.wait_settled(SETTLED_SECONDS)
    tally.ends[f"{len(story.jobs(Op.APPLY))} Jobs"] += 1
    _judge(plane, story, name)
    tally.state["whole"] += 1
    tally.lock["free"] += 1
    if way == "deadline":
        reasons = find(story.cluster().status.conditions, "ApplyJobSucceeded")
        assert reasons is not None


def _live(story: Story, pod: Pod) -> Pod:
    found = (p for p in story.pods() if p.metadata.uid == pod.metadata.uid)
    return next(found, pod)


def _judge(plane: Plane, story: Story, name: str) -> None:
    kept = _ids(story)
    if len(kept) != RESOURCES + 2:
        raise RoundError(f"{len(kept)} resources are in the state")
    made = (plane.folder / f"{name}.record").read_text().split()
    logs = "".join(
        story.site.kubectl("logs", "-n", story.namespace, pod.metadata.name, check=False)
        for pod in story.pods()
    )
    known = kept | set(_DESTROYED.findall(logs))
    if lost := [identity for identity in made if identity not in known]:
        raise RoundError(f"created and lost: {lost}")
    suffix = names.state_suffix("TerraformCluster", story.namespace, NAME)
    leases = story.door.list(LEASES, story.namespace).items
    held = [lease.metadata.name for lease in leases if lease.spec.holder_identity]
    if held:
        raise RoundError(f"locks are left: {held} of {suffix}")
    eventually(lambda: not kept_pods(story.door, story.namespace), "pods are let go", 30)
    story.wait_quiet()


def _ids(story: Story) -> set[str]:
    """The ids of the resources in the state, as the stored document has them."""
    suffix = names.state_suffix("TerraformCluster", story.namespace, NAME)
    secret = story.door.get(SECRETS, names.state_secret(suffix), story.namespace)
    rows = json.loads(gzip.decompress(secret.data[keys.TFSTATE]))["resources"]
    return {i["attributes"]["id"] for row in rows for i in row["instances"]}
