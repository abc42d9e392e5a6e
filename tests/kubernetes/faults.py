"""What goes wrong around managers, and what became of the objects then.

`python -m tests.kubernetes.faults [NAME …]` lets every fault happen at its full length and prints
one row of figures for each; tests/kubernetes/test_faults.py lets the short forms happen.
"""

import contextlib
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from captfctl.model.resources import LEASES
from tests.controlplane.assets import build
from tests.e2e.site import eventually
from tests.kubernetes import skewed
from tests.kubernetes.audit import gate_overlaps, most_live_jobs
from tests.kubernetes.fleet import Fleet
from tests.kubernetes.site import NAMESPACE, RealSite
from tests.support.http_proxy import HttpFaultProxy
from tests.support.proxy import FaultProxy

LEADER_LEASE = "controller-leader-election-captf"


@dataclass(frozen=True, kw_only=True)
class Row:
    """What one fault came to."""

    fault: str
    objects: int
    jobs: int
    most_live: int
    """Of one object at any time."""
    overlaps: int
    """Times that a cluster and something of it were changed at once."""
    twice: int
    """Jobs whose end was told more than once."""
    seconds: float
    """From the objects' creation until all were Ready with their second wish applied."""
    leases: int
    """Left in the end."""

    @property
    def cells(self) -> tuple[str, ...]:
        figures = (self.objects, self.jobs, self.most_live, self.overlaps, self.twice)
        return (self.fault, *map(str, figures), f"{self.seconds:.1f}", str(self.leases))


HEADER = (
    "fault",
    "objects",
    "Jobs",
    "most live",
    "overlaps",
    "told twice",
    "s to Ready",
    "leases left",
)


class Bench:
    """The objects of one fault, on a site without other managers. `full`: at full length."""

    def __init__(self, site: RealSite, name: str, *, full: bool) -> None:
        self.site = site
        self.full = full
        self.name = name
        namespace = site.fresh_name(f"fault-{name}")
        self.folder = site.folder / namespace
        self.folder.mkdir()
        self.undo = contextlib.ExitStack()
        self.door = self.undo.enter_context(contextlib.closing(site.door()))
        self.fleet = Fleet(self.door, namespace, 2, machines=1, pools=1, seconds=1)
        if full:
            self.fleet = Fleet(self.door, namespace, 5, machines=2, pools=1, seconds=2)
        self.patience = 400.0

    def long(self, short: float, full: float) -> float:
        return full if self.full else short

    def last(self, short: float, full: float) -> None:
        """Let the fault last."""
        time.sleep(self.long(short, full))

    @property
    def election(self) -> tuple[str, ...]:
        """The flags of leader election: the defaults at full length."""
        if self.full:
            return ("--leader-elect",)
        return (
            "--leader-elect",
            "--leader-elect-lease-duration=8s",
            "--leader-elect-renew-deadline=5s",
            "--leader-elect-retry-period=1s",
        )

    def behind(self, url: str, ca_path: Path | None = None) -> Path:
        """A kubeconfig of the manager that points to a proxy."""
        path = self.folder / "manager.kubeconfig"
        self.site.plane.write_kubeconfig(path, self.site.manager_token, server=url, ca_path=ca_path)
        return path

    def tcp_proxy(self) -> FaultProxy:
        parts = urlsplit(self.site.plane.url)
        proxy = self.undo.enter_context(FaultProxy("127.0.0.1", parts.port or 0))
        self.site.add_manager("p", kubeconfig=self.behind(f"https://127.0.0.1:{proxy.port}"))
        return proxy

    def http_proxy(self) -> HttpFaultProxy:
        plane = self.site.plane
        proxy = HttpFaultProxy(plane.url, plane.ca_path, self.folder)
        self.undo.enter_context(proxy)
        self.site.add_manager("p", kubeconfig=self.behind(proxy.url, proxy.ca_path))
        return proxy

    def create_and_wait_running(self) -> None:
        self.fleet.create()
        eventually(lambda: self.fleet.jobs(), "Jobs start", 60)

    def wait_settled(self) -> None:
        """Every object is Ready, whatever the API server is doing meanwhile."""
        deadline = time.monotonic() + self.patience
        while not self.fleet.settled():
            assert time.monotonic() < deadline, self.fleet.explain()
            time.sleep(0.25)

    def leader(self) -> str:
        return self.door.get(LEASES, LEADER_LEASE, NAMESPACE).spec.holder_identity

    def wait_leader_other_than(self, identity: str) -> None:
        eventually(lambda: self.leader() not in ("", identity), "another one leads", 60)


Fault = Callable[[Bench], None]


def killed_api_server(bench: Bench) -> None:
    """The API server is killed and comes back."""
    server = bench.site.plane.processes["kube-apiserver"]
    bench.site.add_manager("a")
    bench.create_and_wait_running()
    server.kill()
    bench.last(1, 10)
    bench.site.plane.restart("kube-apiserver")


def hung_api_server(bench: Bench) -> None:
    """The API server takes requests and does not answer (60 s)."""
    server = bench.site.plane.processes["kube-apiserver"]
    bench.site.add_manager("a")
    bench.create_and_wait_running()
    server.signal(signal.SIGSTOP)
    bench.last(8, 60)
    server.signal(signal.SIGCONT)


def killed_etcd(bench: Bench) -> None:
    """etcd is killed and comes back with its data."""
    bench.site.add_manager("a")
    bench.create_and_wait_running()
    bench.site.plane.processes["etcd"].kill()
    bench.last(3, 10)
    bench.site.plane.restart("etcd")


def cut_watches(bench: Bench) -> None:
    """Every connection of the manager is reset each second."""
    proxy = bench.tcp_proxy()
    with proxy.cutting_every(1.0):
        bench.fleet.create()
        bench.wait_settled()


def slow_answers(bench: Bench) -> None:
    """Each answer comes 2 s late: ten workers get five answers a second."""
    bench.patience = 900.0
    proxy = bench.tcp_proxy()
    proxy.delay_answers(bench.long(0.5, 2.0))
    bench.fleet.create()
    bench.wait_settled()
    proxy.heal()


def lost_answers(bench: Bench) -> None:
    """Two of ten writes take place and are not answered: the connection is reset.

    A start needs four answers in a row, and waits twice as long after each failure: with three of
    ten, some object would fail fifteen times and wait for minutes.
    """
    proxy = bench.http_proxy()
    proxy.lose_answers(share=0.2)
    bench.fleet.create()
    bench.wait_settled()
    bench.fleet.change()
    bench.wait_settled()
    proxy.heal()
    assert proxy.faults


def too_many_requests(bench: Bench) -> None:
    """Bursts of 429: each second request for 3 s, then none for 3 s."""
    _refused_in_bursts(bench, 429)


def server_errors(bench: Bench) -> None:
    """Bursts of 500: each second request for 3 s, then none for 3 s."""
    _refused_in_bursts(bench, 500)


def _refused_in_bursts(bench: Bench, status: int) -> None:
    proxy = bench.http_proxy()
    bench.fleet.create()
    for _ in range(int(bench.long(2, 6))):
        proxy.refuse(status, share=0.5)
        time.sleep(3)
        proxy.heal()
        time.sleep(3)
    assert proxy.faults


def clock_ahead(bench: Bench) -> None:
    """The leader's clock is 30 s ahead; it is killed."""
    _skewed_leader(bench, 30)


def clock_behind(bench: Bench) -> None:
    """The leader's clock is 30 s behind; it is killed."""
    _skewed_leader(bench, -30)


def _skewed_leader(bench: Bench, skew: int) -> None:
    first = bench.site.add_manager("a", *bench.election, command=skewed.command(skew))
    eventually(lambda: "leads: it holds" in first.output(), "the first one leads")
    leader = bench.leader()
    second = bench.site.add_manager("b", *bench.election)
    bench.create_and_wait_running()
    # Longer than the Lease: a rival that believed the holder's clock would have taken it.
    bench.last(10, 20)
    assert bench.leader() == leader
    assert "leads: it holds" not in second.output()
    bench.fleet.change()
    first.kill()
    bench.wait_leader_other_than(leader)


def stopped_leader(bench: Bench) -> None:
    """The leader is stopped beyond its Lease, and goes on when another one leads."""
    first = bench.site.add_manager("a", *bench.election)
    eventually(lambda: "leads: it holds" in first.output(), "the first one leads")
    leader = bench.leader()
    bench.site.add_manager("b", *bench.election)
    bench.create_and_wait_running()
    first.signal(signal.SIGSTOP)
    bench.wait_leader_other_than(leader)
    bench.fleet.change()
    eventually(lambda: bench.fleet.running(), "the new leader starts Jobs")
    first.signal(signal.SIGCONT)
    assert first.wait(30) != 0


def two_managers(bench: Bench) -> None:
    """Two managers, neither knows of the other."""
    bench.site.add_manager("a")
    bench.site.add_manager("b")
    bench.fleet.clusters = int(bench.long(5, 13))
    bench.fleet.create()
    bench.wait_settled()


FAULTS: dict[str, Fault] = {
    fault.__name__.replace("_", "-"): fault
    for fault in (
        killed_api_server,
        hung_api_server,
        killed_etcd,
        cut_watches,
        slow_answers,
        lost_answers,
        too_many_requests,
        server_errors,
        clock_ahead,
        clock_behind,
        stopped_leader,
        two_managers,
    )
}


def happen(site: RealSite, name: str, *, full: bool = False) -> Row:
    """Let one fault happen to objects that apply, give them a second wish, and count."""
    bench = Bench(site, name, full=full)
    with bench.undo, site.without_manager():
        began = time.monotonic()
        FAULTS[name](bench)
        bench.wait_settled()
        bench.fleet.change()
        bench.wait_settled()
        seconds = time.monotonic() - began
        eventually(
            lambda: not bench.fleet.leases(), lambda: f"leases left: {bench.fleet.leases()}", 30
        )
        log, namespace = site.plane.audit_log, bench.fleet.namespace
        return Row(
            fault=name,
            objects=bench.fleet.size,
            jobs=len(bench.fleet.jobs()),
            most_live=most_live_jobs(log, namespace),
            overlaps=len(gate_overlaps(log, namespace)),
            twice=sum(count > 1 for count in bench.fleet.outcomes().values()),
            seconds=seconds,
            leases=len(bench.fleet.leases()),
        )


@contextlib.contextmanager
def real_site() -> Iterator[RealSite]:
    with tempfile.TemporaryDirectory(prefix="captf-faults-") as folder:
        site = RealSite(Path(folder), build())
        site.start()
        try:
            yield site
        finally:
            site.stop()


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in FAULTS]
    if unknown:
        known = ", ".join(FAULTS)
        print(f"Error: no such fault: {', '.join(unknown)}; there are {known}", file=sys.stderr)
        return 2
    with real_site() as site:
        print(_line(HEADER), flush=True)
        for name in names or FAULTS:
            print(_line(happen(site, name, full=True).cells), flush=True)
    return 0


def _line(cells: tuple[str, ...]) -> str:
    return f"{cells[0]:<20}" + "".join(f"{cell:>12}" for cell in cells[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
