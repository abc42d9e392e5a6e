"""Informers and elections over the live door, a faulty network and the embedded API server."""

import threading
from urllib.parse import urlsplit

import pytest
import yaml

from captfctl.clock import SystemClock
from captfctl.cluster.live import LiveDoor
from captfctl.cluster.live_requests import Limits
from captfctl.controller import ElectionSettings, Handler, Informer, LeaderElector
from captfctl.embedded.apiserver import ApiServer
from captfctl.embedded.store import EmbeddedStore
from captfctl.model.core import ConfigMap, Lease
from captfctl.model.meta import ObjectMeta
from captfctl.model.resources import CONFIG_MAPS, LEASES
from tests.support.clock import DEADLINE, eventually
from tests.support.proxy import FaultProxy

NAMESPACE = "default"
LIMITS = Limits(connect=5, read=2, silence=1)

# A connection that is reset between the TCP and the TLS handshake leaves its socket to the garbage
# collector: `SSLSocket._create` raises without closing what it took over.
pytestmark = pytest.mark.filterwarnings(
    r"ignore:Exception ignored in. <ssl\.SSLSocket:pytest.PytestUnraisableExceptionWarning"
)


@pytest.fixture
def store():
    store = EmbeddedStore.in_memory(SystemClock())
    yield store
    store.close()


@pytest.fixture
def server(store, tmp_path):
    server = ApiServer(store, data_dir=tmp_path / "server", clock=SystemClock())
    server.start()
    yield server
    server.stop()


@pytest.fixture
def proxy(server):
    with FaultProxy("127.0.0.1", urlsplit(server.url).port) as proxy:
        yield proxy


@pytest.fixture
def door(server, proxy, tmp_path):
    """A live door through the proxy."""
    config = yaml.safe_load(server.kubeconfig_path.read_text())
    config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{proxy.port}"
    path = tmp_path / "through-proxy"
    path.write_text(yaml.safe_dump(config))
    door = LiveDoor.from_kubeconfig(path, limits=LIMITS, environ={})
    yield door
    door.close()


def config_map(number):
    metadata = ObjectMeta(name=f"c{number:03}", namespace=NAMESPACE)
    return ConfigMap(metadata=metadata, data={"n": str(number)})


class Follower:
    """An informer, and the world as its handlers describe it."""

    def __init__(self, door):
        self.told: dict[str, str] = {}
        self.mistakes: list[str] = []
        self.informer = Informer(
            door, CONFIG_MAPS, SystemClock(), namespace=NAMESPACE, fields="metadata.name!=kube"
        )
        self.informer.add_handler(Handler(self._added, self._updated, self._deleted))
        self.informer.start()

    def _added(self, obj):
        if obj.metadata.name in self.told:
            self.mistakes.append(f"{obj.metadata.name} added twice")
        self.told[obj.metadata.name] = obj.metadata.resource_version

    def _updated(self, old, new):
        if self.told.get(new.metadata.name) != old.metadata.resource_version:
            self.mistakes.append(f"{new.metadata.name}: an update was missed or repeated")
        self.told[new.metadata.name] = new.metadata.resource_version

    def _deleted(self, obj):
        if self.told.pop(obj.metadata.name, None) is None:
            self.mistakes.append(f"{obj.metadata.name} deleted twice")

    def holds(self, store):
        """Whether cache and handlers agree with the store."""
        stored = {
            obj.metadata.name: obj.metadata.resource_version
            for obj in store.door().list(CONFIG_MAPS, NAMESPACE).items
        }
        cached = {obj.metadata.name: obj.metadata.resource_version for obj in self.informer.list()}
        return stored == cached == self.told


@pytest.fixture
def follower(door):
    follower = Follower(door)
    assert follower.informer.wait_synced(DEADLINE)
    yield follower
    assert follower.informer.stop()


def churn(store, rounds=60):
    """Creates, changes and deletes."""
    door = store.door()
    for number in range(rounds):
        door.create(CONFIG_MAPS, config_map(number))
        if number % 2:
            door.patch(CONFIG_MAPS, f"c{number:03}", NAMESPACE, {"data": {"x": "y"}})
        if number % 3 == 0:
            door.delete(CONFIG_MAPS, f"c{number:03}", NAMESPACE)


def test_a_watch_that_is_cut_again_and_again_misses_nothing(store, proxy, follower):
    with proxy.cutting_every(0.1):
        for _ in range(5):
            churn(store, 20)
            for obj in store.door().list(CONFIG_MAPS, NAMESPACE).items:
                store.door().delete(CONFIG_MAPS, obj.metadata.name, NAMESPACE)
    churn(store)
    eventually(lambda: follower.holds(store))
    assert follower.mistakes == []


def test_a_watch_whose_server_hangs_is_given_up_and_nothing_is_missed(store, proxy, follower):
    before = proxy.connections
    proxy.hang()
    churn(store)
    eventually(lambda: proxy.connections > before, "another attempt")
    proxy.heal()
    eventually(lambda: follower.holds(store))
    assert follower.mistakes == []


def test_a_server_that_refuses_for_a_while_is_followed_again(store, proxy, follower):
    proxy.refuse()
    proxy.cut()
    churn(store)
    eventually(lambda: follower.informer.last_error is not None)
    proxy.heal()
    eventually(lambda: follower.holds(store))
    assert follower.mistakes == []


def test_a_server_that_forgot_the_version_is_listed_again(store, proxy, follower):
    proxy.refuse()
    proxy.cut()
    churn(store)
    store.compact()
    proxy.heal()
    eventually(lambda: follower.holds(store))
    assert follower.mistakes == []


def test_a_watch_over_tls_ends_at_once_when_the_informer_stops(door):
    informer = Informer(door, CONFIG_MAPS, SystemClock())
    informer.start()
    assert informer.wait_synced(DEADLINE)
    clock = SystemClock()
    before = clock.monotonic()
    assert informer.stop()
    assert clock.monotonic() - before < 1


def test_a_leader_cut_off_from_the_server_loses_in_time_and_another_follows(store, proxy, door):
    times = ElectionSettings(lease_duration=3, renew_deadline=2, retry_period=0.2)
    clock = SystemClock()
    log = []

    def elector(door, identity):
        return LeaderElector(
            door,
            "election",
            NAMESPACE,
            identity,
            times,
            clock,
            on_started=lambda: log.append(f"{identity} leads"),
            on_lost=lambda: log.append(f"{identity} lost"),
        )

    first = elector(door, "first")
    first.start()
    eventually(lambda: first.leading)
    second = elector(store.door(), "second")
    second.start()
    eventually(lambda: second.holder == "first")
    proxy.hang()
    eventually(lambda: "second leads" in log)
    proxy.heal()
    assert first.stop(DEADLINE) and second.stop(DEADLINE)
    assert log == ["first leads", "first lost", "second leads"]
    lease: Lease = store.door().get(LEASES, "election", NAMESPACE)
    assert lease.spec.holder_identity == ""


def test_many_threads_share_one_door_while_connections_are_cut(store, proxy, door):
    names = [f"c{number:03}" for number in range(40)]
    for number in range(40):
        store.door().create(CONFIG_MAPS, config_map(number))
    failures = []

    def read():
        for name in names:
            try:
                assert door.get(CONFIG_MAPS, name, NAMESPACE).metadata.name == name
            except Exception as error:
                failures.append(error)

    threads = [threading.Thread(target=read) for _ in range(4)]
    with proxy.cutting_every(0.2):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(DEADLINE)
    # A cut may hit one request twice; whatever else comes back must be the right object.
    assert {type(error).__name__ for error in failures} <= {"Unavailable"}
    assert len(failures) < len(names) * 4
