"""What a person waits for at the terminal where there are 10,000 machines, 10,000 states and 10,000
plans: `approve`, `restore` and `delete`, through the embedded API server.

Each is measured as CPU time, user and system, the least of several runs: a command never sleeps, so
on a machine that does nothing else it is the time that passes, and on a busy one it still says what
the command costs. Of the whole command that of its requests is taken off, which the same calls take
in a thread of this process; how long they wait for the server is no part of either, and what passed
on the clock is a row of its own. Beside it is a Python that imports typer, the library of command
lines. The last rows are a whole Cluster with all of its machines: the requests are part of it, and
its yardstick.
"""

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure, Yardstick, at_most
from captfctl.approvals.checks import check
from captfctl.approvals.evidence import Request, Who, own_user, read
from captfctl.clock import SystemClock
from captfctl.cluster.door import Door
from captfctl.cluster.live import LiveDoor
from captfctl.embedded.apiserver import ApiServer
from captfctl.embedded.capi import capi_crds
from captfctl.embedded.store import EmbeddedStore
from captfctl.model import keys
from captfctl.model.crds import crds
from captfctl.model.kinds import MACHINE
from captfctl.model.owner import Owner
from captfctl.model.resource import Document, Resource
from captfctl.model.resources import (
    CLUSTERS,
    CRDS,
    TERRAFORM_CLUSTERS,
    TERRAFORM_MACHINES,
    TERRAFORM_PLANS,
)
from captfctl.reconcile.deletion_preview import preview_all
from captfctl.reconcile.restore_list import list_backups
from captfctl.reconcile.restore_request import Wish
from captfctl.reconcile.restore_request import check as check_restore
from captfctl.reconcile.restore_situation import Situation
from tests.support.states import put_backup, put_state

OBJECTS = 10_000
ROUNDS = 5
LIMIT = 300.0
NAMESPACE = "default"
CLUSTER = "c"
SOURCE = {"source": {"image": "registry.example.com/a:v1"}, "identityRef": {"name": "cloud"}}
CAPTFCTL = str(Path(sys.executable).with_name("captfctl"))
NAME = f"m{OBJECTS // 2}"


def run() -> Iterator[Figure]:
    """See the module."""
    with tempfile.TemporaryDirectory() as place:
        store = EmbeddedStore.in_memory(SystemClock())
        fill(store.door())
        server = ApiServer(store, data_dir=Path(place), clock=SystemClock())
        server.start()
        try:
            yield from _measure(server.kubeconfig_path)
        finally:
            server.stop()
            store.close()


def fill(door: Door) -> None:
    """A Cluster with its `TerraformCluster`, machines with states, and plans; one machine has
    backups."""
    for document in (*crds(), *capi_crds()):
        door.create(CRDS.untyped(), document)
    reference = {
        "apiGroup": TERRAFORM_CLUSTERS.group,
        "kind": TERRAFORM_CLUSTERS.kind,
        "name": CLUSTER,
    }
    _create(door, CLUSTERS, CLUSTER, {"infrastructureRef": reference})
    target = _create(door, TERRAFORM_CLUSTERS, CLUSTER, {**SOURCE, "applyPolicy": "Manual"})
    for number in range(OBJECTS):
        machine = _create(door, TERRAFORM_MACHINES, f"m{number}", SOURCE)
        meta = machine["metadata"]
        owner = Owner(MACHINE.name, NAMESPACE, meta["name"], meta["uid"], CLUSTER)
        put_state(door, owner, 7, [f"aws_instance.m{number}", "aws_disk.a", "aws_disk.b"])
        if meta["name"] == NAME:
            for serial in range(1, 6):
                put_backup(door, owner, serial, ["aws_disk.a"])
        _plan(door, number, target if number == 0 else None)


def _create(door: Door, kind: Resource[Any], name: str, spec: Document) -> Document:
    labels = {keys.CLUSTER_NAME: CLUSTER}
    document = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
    }
    return door.create(kind.untyped(), document, NAMESPACE)


def _plan(door: Door, number: int, target: Document | None) -> None:
    """Of the cluster, or of one that nobody looks at."""
    uid = target["metadata"]["uid"] if target else f"uid-{number}"
    name = CLUSTER if target else f"other-{number}"
    owner = {
        "apiVersion": TERRAFORM_CLUSTERS.api_version,
        "kind": TERRAFORM_CLUSTERS.kind,
        "name": name,
        "uid": uid,
        "controller": True,
    }
    document = {
        "apiVersion": TERRAFORM_PLANS.api_version,
        "kind": TERRAFORM_PLANS.kind,
        "metadata": {
            "name": f"{name}-0",
            "labels": {keys.PLAN_PHASE: "Pending", keys.DESTRUCTIVE: "false"},
            "ownerReferences": [owner],
        },
        "spec": {
            "targetRef": {"kind": TERRAFORM_CLUSTERS.kind, "name": name},
            "planHash": f"p2:{'a' * 64}",
            "inputsHash": "h2:1",
            "reason": "Manual",
            "summary": {
                "create": 1,
                **dict.fromkeys(("update", "replace", "delete"), 0),
                "resources": ["aws_vpc.main (create)"],
            },
        },
    }
    door.create(TERRAFORM_PLANS.untyped(), document, NAMESPACE)


def _measure(kubeconfig: Path) -> Iterator[Figure]:
    typer = _least([sys.executable, "-c", "import typer"])
    stick = Yardstick(name="python -c 'import typer'", value=typer.cpu)
    for what, arguments, calls in (
        ("approve --dry-run", ("approve", "--target", "tfc/c", "--dry-run"), _approve),
        ("restore --list", ("restore", f"tfm/{NAME}", "--list"), _list),
        ("restore --dry-run", ("restore", f"tfm/{NAME}", "--serial", "3", "--dry-run"), _restore),
        ("delete --dry-run", ("delete", f"tfm/{NAME}", "--dry-run"), _delete),
    ):
        requests = min(_requests(kubeconfig, calls) for _ in range(ROUNDS))
        whole = _least([CAPTFCTL, *arguments, f"--kubeconfig={kubeconfig}"])
        yield Figure(what=f"captfctl {what}, on the clock", value=whole.clock, unit="ms")
        yield Figure(what="  CPU time", value=whole.cpu, unit="ms", yardstick=stick)
        label = f"  without {requests:.0f} ms of requests"
        yield at_most(label, whole.cpu - requests, "ms", LIMIT, yardstick=stick)
    whole = _least(
        [CAPTFCTL, "delete", f"cluster/{CLUSTER}", "--dry-run", f"--kubeconfig={kubeconfig}"]
    )
    requests = min(_requests(kubeconfig, _delete_all) for _ in range(ROUNDS))
    what = f"captfctl delete --dry-run, {OBJECTS} machines"
    yield Figure(what=f"{what}, on the clock", value=whole.clock, unit="ms")
    own = Yardstick(name="its requests", value=requests)
    yield Figure(what="  CPU time", value=whole.cpu, unit="ms", yardstick=own)


@dataclass(frozen=True, slots=True)
class _Taken:
    """Milliseconds on the clock, and of CPU time."""

    clock: float
    cpu: float


def _least(command: list[str]) -> _Taken:
    """The least of several runs, of each."""
    runs = [_command(command) for _ in range(ROUNDS)]
    return _Taken(min(run.clock for run in runs), min(run.cpu for run in runs))


def _command(command: list[str]) -> _Taken:
    start, before = time.perf_counter(), _cpu_of_children()
    subprocess.run(command, check=True, capture_output=True)
    clock = time.perf_counter() - start
    return _Taken(clock * 1e3, (_cpu_of_children() - before) * 1e3)


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class _Timed:
    """A door that adds up the CPU time that its calls take in the calling thread: the server runs
    in others."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self.seconds = 0.0

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._door, name)

        def call(*args: Any, **options: Any) -> Any:
            start = time.thread_time()
            try:
                return method(*args, **options)
            finally:
                self.seconds += time.thread_time() - start

        return call


def _requests(kubeconfig: Path, calls: Callable[[Any], object]) -> float:
    """Milliseconds of CPU time that the command's requests take, with a connection of their own."""
    live = LiveDoor.from_kubeconfig(kubeconfig)
    timed = _Timed(live)
    try:
        calls(timed)
    finally:
        live.close()
    return timed.seconds * 1e3


def _approve(door: Door) -> None:
    who: Who = own_user(door)
    request = Request(namespace=NAMESPACE, kind=TERRAFORM_CLUSTERS.kind, name=CLUSTER)
    check(read(door, request, who))


def _list(door: Door) -> None:
    list_backups(Situation(door, MACHINE, (NAMESPACE, NAME)))


def _restore(door: Door) -> None:
    check_restore(Situation(door, MACHINE, (NAMESPACE, NAME)), Wish(serial=3))


def _delete(door: Door) -> None:
    preview_all(door, [(TERRAFORM_MACHINES, (NAMESPACE, NAME))])


def _delete_all(door: Door) -> None:
    preview_all(door, [(CLUSTERS, (NAMESPACE, CLUSTER))])
