"""Writes, reads, lists and watches of the embedded store, against yardsticks of the same run.

The same door requests in memory, on SQLite and over HTTP by the live client. Yardsticks:

- a create: one row of the same size committed to an SQLite file with the same settings
- a read: decoding the same JSON
- a list: decoding the same JSON, object by object
- a watch: handing one item from thread to thread through a queue
"""

import contextlib
import queue
import sqlite3
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.figures import Figure, Yardstick, at_most
from benchmarks.timing import best, median_of_each, percentile
from captfctl.clock import SystemClock
from captfctl.cluster.door import Door
from captfctl.cluster.live import LiveDoor
from captfctl.embedded.apiserver import ApiServer
from captfctl.embedded.store import EmbeddedStore
from captfctl.model.core import ConfigMap
from captfctl.model.meta import ObjectMeta
from captfctl.model.resources import CONFIG_MAPS

OBJECTS = 10_000
ONE_BY_ONE = 500
TEXT = "x" * 500
NAMESPACE = "default"
HTTP = "http"
LISTS = 5
LIST_LIMIT = 0.3
WATCH_LIMIT = 20.0


def config_map(name: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, labels={"app": "bench"}), data={"text": TEXT})


@contextlib.contextmanager
def doors(folder: Path) -> Iterator[dict[str, Door]]:
    clock = SystemClock()
    memory, served = EmbeddedStore.in_memory(clock), EmbeddedStore.in_memory(clock)
    disk = EmbeddedStore.open(folder / "store", clock)
    server = ApiServer(served, data_dir=folder / "server", clock=clock)
    server.start()
    live = LiveDoor.from_kubeconfig(server.kubeconfig_path)
    try:
        yield {"memory": memory.door(), "sqlite": disk.door(), HTTP: live}
    finally:
        live.close()
        server.stop()
        for store in (memory, served, disk):
            store.close()


def raw_insert(folder: Path, body: bytes) -> float:
    database = sqlite3.connect(folder / "yardstick.db", isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = NORMAL")
    database.execute("CREATE TABLE objects (key TEXT PRIMARY KEY, body BLOB)")

    def insert(number: int) -> None:
        database.execute("BEGIN IMMEDIATE")
        database.execute("INSERT INTO objects VALUES (?, ?)", (f"yard-{number}", body))
        database.execute("COMMIT")

    taken = median_of_each(insert, ONE_BY_ONE)
    database.close()
    return taken


def hand_over() -> list[float]:
    """What passing an item to a waiting thread takes."""
    passed: queue.Queue[float] = queue.Queue()
    times: list[float] = []

    def receive() -> None:
        for _ in range(ONE_BY_ONE):
            start = passed.get()
            times.append(time.perf_counter() - start)

    thread = threading.Thread(target=receive)
    thread.start()
    for number in range(ONE_BY_ONE):
        while len(times) < number:
            time.sleep(0)
        passed.put(time.perf_counter())
    thread.join()
    return times


def delivery(door: Door) -> list[float]:
    """From before a write until a watch has delivered it, one write after the other."""
    started: dict[str, float] = {}
    arrived = threading.Semaphore(0)
    times: list[float] = []
    since = door.list(CONFIG_MAPS, NAMESPACE, limit=1).resource_version
    watch = door.watch(CONFIG_MAPS, NAMESPACE, labels="watched", resource_version=since)

    def receive() -> None:
        for event in watch:
            if event.object is not None:
                times.append(time.perf_counter() - started[event.object.metadata.name])
                arrived.release()
            if len(times) == ONE_BY_ONE:
                return

    thread = threading.Thread(target=receive)
    thread.start()
    for number in range(ONE_BY_ONE):
        obj = config_map(f"watched-{number}")
        obj.metadata.labels = {"watched": ""}
        started[obj.metadata.name] = time.perf_counter()
        door.create(CONFIG_MAPS, obj, NAMESPACE)
        arrived.acquire()
    thread.join()
    watch.close()
    return times


def measure(name: str, door: Door, insert: float, decode: float) -> Iterator[Figure]:
    def create(number: int) -> object:
        return door.create(CONFIG_MAPS, config_map(f"o{number:05}"), NAMESPACE)

    def get(number: int) -> object:
        return door.get(CONFIG_MAPS, f"o{number:05}", NAMESPACE)

    row = Yardstick(name="one SQLite row", value=insert * 1e3)
    each = median_of_each(create, OBJECTS) * 1e3
    yield Figure(what=f"{name}: create", value=each, unit="ms", yardstick=row)
    parsed = Yardstick(name="decoding it", value=decode * 1e3)
    each = median_of_each(get, ONE_BY_ONE) * 1e3
    yield Figure(what=f"{name}: get", value=each, unit="ms", yardstick=parsed)
    whole = Yardstick(name="decoding them", value=decode * OBJECTS)
    taken = best(lambda: door.list(CONFIG_MAPS, NAMESPACE), LISTS)
    what = f"{name}: list of {OBJECTS}"
    if name == HTTP:
        yield at_most(what, taken, "s", LIST_LIMIT, yardstick=whole)
    else:
        yield Figure(what=what, value=taken, unit="s", yardstick=whole)


def watching(name: str, door: Door, passed: list[float]) -> Iterator[Figure]:
    times = delivery(door)
    half = Yardstick(name="thread to thread", value=statistics.median(passed) * 1e3)
    what = f"{name}: watch, p50"
    yield Figure(what=what, value=statistics.median(times) * 1e3, unit="ms", yardstick=half)
    most = Yardstick(name="thread to thread", value=percentile(passed, 0.99) * 1e3)
    found = percentile(times, 0.99) * 1e3
    yield at_most(f"{name}: watch, p99", found, "ms", WATCH_LIMIT, yardstick=most)


def run() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as place, doors(Path(place)) as all_doors:
        body = CONFIG_MAPS.encode(config_map("yardstick"))
        insert = raw_insert(Path(place), body)
        decode = median_of_each(lambda _: CONFIG_MAPS.decode(body), ONE_BY_ONE)
        passed = hand_over()
        for name, door in all_doors.items():
            yield from measure(name, door, insert, decode)
            yield from watching(name, door, passed)
