"""The part of the interrupt matrix with a whole control plane: what happens to pods and nodes.

The manager and the node agent are processes of their own, so that the agent can be stopped. Each
resource of the module takes its time and then writes its id into a file: an id there that is
neither in the state nor destroyed was lost, and its resource created twice.
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

from captfctl.embedded.supervisor.records import read_claim
from captfctl.model import keys, names
from captfctl.model.conditions import find
from captfctl.model.core import Pod
from captfctl.model.ops import Op
from captfctl.model.resources import LEASES, SECRETS, TERRAFORM_CLUSTERS
from captfctl.reconcile.kept_pods import kept_pods
from captfctl.runs.jobs import pod_ended
from tests.e2e.managed import NODE, EmbeddedSite
from tests.e2e.scenarios import NAME, Story
from tests.e2e.site import IMAGE, QUICKSTART, eventually
from tests.tools.tally import RoundError, Tally

SLOW = "registry.example.com/slow/cluster:v1"
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


def _delete(story: Story, pod: Pod, *more: str) -> None:
    name = pod.metadata.name
    story.site.kubectl("delete", "pod", name, "-n", story.namespace, "--wait=false", *more)


def _pod_deleted(_: EmbeddedSite, story: Story, pod: Pod) -> None:
    _delete(story, pod)


def _drained(plane: EmbeddedSite, _: Story, __: Pod) -> None:
    plane.kubectl("drain", NODE, "--disable-eviction", "--force", "--delete-emptydir-data")
    plane.kubectl("uncordon", NODE)


def _deadline(_: EmbeddedSite, story: Story, __: Pod) -> None:
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


def _supervisor_frozen(plane: EmbeddedSite, story: Story, pod: Pod) -> None:
    home = plane.node_data / "pods" / pod.metadata.uid / "containers" / "source"
    claim = read_claim(home)
    if claim is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(claim.pid, signal.SIGSTOP)
    _delete(story, pod)


def _node_frozen(plane: EmbeddedSite, story: Story, pod: Pod) -> None:
    plane.node.signal(signal.SIGSTOP)
    try:
        _delete(story, pod)
        time.sleep(FROZEN_SECONDS)
    finally:
        plane.node.signal(signal.SIGCONT)


WAYS: dict[str, Callable[[EmbeddedSite, Story, Pod], None]] = {
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
def _plane() -> Iterator[EmbeddedSite]:
    with tempfile.TemporaryDirectory(prefix="captf-matrix-") as scratch:
        module = Path(scratch) / "module"
        module.mkdir()
        for file in QUICKSTART.glob("*.tf"):
            (module / file.name).write_text(file.read_text())
        (module / "slow.tf").write_text(MODULE)
        plane = EmbeddedSite(Path(scratch) / "plane")
        plane.add_image(SLOW, module=module)
        try:
            plane.start()
            yield plane
        finally:
            plane.stop()


def _story(plane: EmbeddedSite, name: str) -> Story:
    story = Story(plane, name)
    story.replace(IMAGE, SLOW)
    record = plane.folder / f"{name}.record"
    record.touch()
    story.replace("    subnets: 2\n", f"    subnets: 2\n    record: {record}\n")
    return story


def _undisturbed(plane: EmbeddedSite) -> float:
    """How long the first apply takes on this machine."""
    story = _story(plane, "undisturbed")
    story.create()
    eventually(lambda: story.pods(), "a pod", 60)
    begun = time.monotonic()
    story.wait_settled(SETTLED_SECONDS)
    return time.monotonic() - begun


def _round(plane: EmbeddedSite, name: str, instant: float, tally: Tally) -> None:
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


def _judge(plane: EmbeddedSite, story: Story, name: str) -> None:
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
