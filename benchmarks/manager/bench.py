"""`captfctl manage` beside an operator of the kopf framework, on a real API server (issue 4)."""

import contextlib
import re
import statistics
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.figures import Figure, Missing, Yardstick, at_most, at_most_times
from benchmarks.manager.measured import DidNotHappen, Measured, Usage, measured
from benchmarks.manager.population import RUNNER_IMAGE, Population, Subject, subjects
from benchmarks.manager.watching import AuditLog, NewJobs
from benchmarks.timing import percentile
from captfctl.cluster.live import LiveDoor
from tests.controlplane.assets import Assets, AssetsMissingError, find
from tests.controlplane.processes import ControlPlane, free_port

CHANGES = 100
REST_SECONDS = 30.0
_START_SECONDS = 1800.0
_SETTLE_SECONDS = 5.0
_JOB_SECONDS = 30.0
_IDLE_SECONDS = 1.0
_PASS_POLL = 0.1
_USER = "admin"
_MEGABYTE = 1e6
_MEMORY_LIMIT = 200.0
_DELAY_LIMIT = 100.0
_OPERATOR = Path(__file__).with_name("kopf_operator.py")
_PASSES = re.compile(
    r'^controller_runtime_reconcile_total{controller="terraform(?:cluster|machine|machinepool)".*}'
    r" (.+)$",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Started:
    """A start: what it used, and CPU seconds per minute at rest afterwards."""

    seconds: float
    usage: Usage
    rest: float


def run(counts: Sequence[int]) -> Iterator[Figure]:
    try:
        assets = find()
    except AssetsMissingError as error:
        raise Missing(f"{error}; `make control-plane` builds what is missing") from None
    for count in counts:
        with tempfile.TemporaryDirectory() as place:
            yield from _measure(assets, Path(place), count)


def _measure(assets: Assets, folder: Path, count: int) -> Iterator[Figure]:
    with bare_plane(assets, folder / "plane") as plane, contextlib.closing(door_to(plane)) as door:
        wanted = subjects(count)
        _tell(f"making {count} objects with their Jobs, states and records")
        Population(door).make(wanted)
        changed = wanted[:: max(1, count // CHANGES)][:CHANGES]
        yield from figures(plane, door, count, changed, folder)


def figures(
    plane: ControlPlane, door: LiveDoor, count: int, changed: Sequence[Subject], folder: Path
) -> Iterator[Figure]:
    """Everything that is measured of one population of `count`; some of them are changed."""
    _tell("the start of the manager")
    audit = AuditLog(plane.audit_log, _USER)
    with _manager(plane, folder, count) as (_, started):
        written = audit.writes()
        _tell(f"{len(changed)} changes")
        delays = _changes(door, changed)
    _tell("the yardstick")
    with _kopf(plane, folder, count) as (operator, stick):
        seen = _seen_changes(door, changed, operator)
    yield from _start_figures(count, started, stick, written)
    yield from _delay_figures(count, delays, seen)


def _start_figures(
    count: int, started: Started, stick: Started, written: dict[str, int]
) -> Iterator[Figure]:
    name = "kopf that only reads"
    cpu = Yardstick(name=name, value=stick.usage.cpu)
    yield at_most_times(f"{count}: CPU until reconciled", started.usage.cpu, "s", 1.0, cpu)
    wall = Yardstick(name=name, value=stick.seconds)
    yield Figure(
        what=f"{count}: time until reconciled", value=started.seconds, unit="s", yardstick=wall
    )
    memory = Yardstick(name=name, value=stick.usage.memory / _MEGABYTE)
    resident = started.usage.memory / _MEGABYTE
    yield at_most(f"{count}: resident memory", resident, "MB", _MEMORY_LIMIT, yardstick=memory)
    peak = Yardstick(name=name, value=stick.usage.peak / _MEGABYTE)
    yield Figure(
        what=f"{count}: peak memory",
        value=started.usage.peak / _MEGABYTE,
        unit="MB",
        yardstick=peak,
    )
    rest = Yardstick(name=name, value=stick.rest)
    yield Figure(
        what=f"{count}: CPU a minute at rest", value=started.rest, unit="s", yardstick=rest
    )
    yield at_most(f"{count}: writes {written or ''}".rstrip(), sum(written.values()), "", 0)


def _delay_figures(count: int, delays: Sequence[float], seen: Sequence[float]) -> Iterator[Figure]:
    name = "kopf sees the change"
    half = Yardstick(name=name, value=statistics.median(seen) * 1e3)
    yield Figure(
        what=f"{count}: change to Job, p50",
        value=statistics.median(delays) * 1e3,
        unit="ms",
        yardstick=half,
    )
    most = Yardstick(name=name, value=percentile(seen, 0.99) * 1e3)
    yield at_most(
        f"{count}: change to Job, p99",
        percentile(delays, 0.99) * 1e3,
        "ms",
        _DELAY_LIMIT,
        yardstick=most,
    )


@contextlib.contextmanager
def bare_plane(assets: Assets, folder: Path) -> Iterator[ControlPlane]:
    """etcd and the API server alone: no controller touches what is measured."""
    plane = ControlPlane(assets, folder, scheduler=False)
    plane.start()
    try:
        plane.processes["kube-controller-manager"].stop()
        yield plane
    finally:
        plane.stop()


def door_to(plane: ControlPlane) -> LiveDoor:
    """As the administrator."""
    return LiveDoor.from_kubeconfig(plane.kubeconfig)


@contextlib.contextmanager
def _manager(plane: ControlPlane, folder: Path, count: int) -> Iterator[tuple[Measured, Started]]:
    port = free_port()
    with measured(manager_command(plane, port), folder / "manager.log") as process:
        # Asking for the metrics is work too: only once the process has nothing else to do.
        yield (
            process,
            _started(process, lambda: process.idle_for(_IDLE_SECONDS) and _passes(port) >= count),
        )


def manager_command(plane: ControlPlane, port: int) -> list[str]:
    """A manager with the administrator's rights, and its metrics at `port`."""
    return [
        str(Path(sys.executable).with_name("captfctl")),
        "manage",
        f"--kubeconfig={plane.kubeconfig}",
        f"--runner-image={RUNNER_IMAGE}",
        "--health-addr=",
        f"--diagnostics-address=127.0.0.1:{port}",
        "--insecure-diagnostics",
    ]


def _passes(port: int) -> float:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
            text = answer.read().decode()
    except OSError:
        return 0.0
    return sum(float(found) for found in _PASSES.findall(text))


@contextlib.contextmanager
def _kopf(plane: ControlPlane, folder: Path, count: int) -> Iterator[tuple[Measured, Started]]:
    kopf = str(Path(sys.executable).with_name("kopf"))
    command = [kopf, "run", "--standalone", "--all-namespaces", "--quiet", str(_OPERATOR)]
    kubeconfig = {"KUBECONFIG": str(plane.kubeconfig)}
    with measured(command, folder / "kopf.log", **kubeconfig) as process:
        yield process, _started(process, lambda: len(_operator_saw(process)) >= count)


def _started(process: Measured, done: Callable[[], bool]) -> Started:
    begun = time.perf_counter()
    process.wait_until(done, "every object was looked at", _START_SECONDS)
    seconds = time.perf_counter() - begun
    usage = process.usage
    time.sleep(_SETTLE_SECONDS)
    before = process.usage.cpu
    time.sleep(REST_SECONDS)
    return Started(seconds, usage, (process.usage.cpu - before) * 60 / REST_SECONDS)


def _changes(door: LiveDoor, changed: Sequence[Subject]) -> list[float]:
    """Seconds from before each change to its Job at a watch, each when the one before is done."""
    jobs = NewJobs(door)
    try:
        delays = []
        for subject in changed:
            start = time.perf_counter()
            _change(door, subject, "first")
            delays.append(jobs.of(subject.name, _JOB_SECONDS) - start)
            _wait_for_the_end_of_the_pass(door, subject)
        return delays
    finally:
        jobs.close()


def _wait_for_the_end_of_the_pass(door: LiveDoor, subject: Subject) -> None:
    """What a start writes after its Job would otherwise be measured with the next change."""
    deadline = time.monotonic() + _JOB_SECONDS
    while door.get(subject.resource, subject.name, subject.namespace).status.active_job is None:
        if time.monotonic() > deadline:
            raise DidNotHappen(f"{subject.name} does not show its Job")
        time.sleep(_PASS_POLL)
    time.sleep(_PASS_POLL)


def _change(door: LiveDoor, subject: Subject, value: str) -> None:
    patch = {"spec": {"variables": {"change": value}}}
    door.patch(subject.resource, subject.name, subject.namespace, patch)


def _operator_saw(process: Measured, change: str = "") -> dict[str, float]:
    """When (`time.time`) the operator saw each object, or a certain change to it."""
    found: dict[str, float] = {}
    for line in process.output().splitlines():
        words = line.split(" ")
        if len(words) == 4 and words[0] == "saw" and change in ("", words[2]):
            found.setdefault(words[1], float(words[3]))
    return found


def _seen_changes(door: LiveDoor, changed: Sequence[Subject], operator: Measured) -> list[float]:
    """Seconds from before each change until the operator's handler had it."""
    starts = {}
    for subject in changed:
        starts[subject.name] = time.time()
        _change(door, subject, "second")
        seen = partial(_operator_saw, operator, "second")
        operator.wait_until(lambda s=subject, f=seen: s.name in f(), "a change", _JOB_SECONDS)  # type: ignore[misc]
    at = _operator_saw(operator, "second")
    return [at[name] - start for name, start in starts.items()]


def _tell(text: str) -> None:
    print(f"manager: {text}", file=sys.stderr, flush=True)
