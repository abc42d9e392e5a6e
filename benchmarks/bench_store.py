"""Writes, reads, lists and watches of the embedded store, against yardsticks of the same run.

    python benchmarks/bench_store.py [OBJECTS]

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
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from captfctl.clock import SystemClock
from captfctl.cluster.door import Door
from captfctl.cluster.live import LiveDoor
from captfctl.cluster.store import EmbeddedStore
from captfctl.local.apiserver import ApiServer
from captfctl.model.core import ConfigMap
from captfctl.model.meta import ObjectMeta
from captfctl.model.resources import CONFIG_MAPS

OBJECTS = 10_000
ONE_BY_ONE = 500
TEXT = "x" * 500
NAMESPACE = "default"


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
        yield {"memory": memory.door(), "sqlite": disk.door(), "http": live}
    finally:
        live.close()
        server.stop()
        for store in (memory, served, disk):
            store.close()


def seconds_each(action: Callable[[int], object], count: int) -> float:
    """The median time of one call."""
    times = []
    for number in range(count):
        start = time.perf_counter()
        action(number)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def raw_insert(folder: Path, body: bytes) -> float:
    database = sqlite3.connect(folder / "yardstick.db", isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = NORMAL")
    database.execute("CREATE TABLE objects (key TEXT PRIMARY KEY, body BLOB)")

    def insert(number: int) -> None:
        database.execute("BEGIN IMMEDIATE")
        database.execute("INSERT INTO objects VALUES (?, ?)", (f"yard-{number}", body))
        database.execute("COMMIT")

    taken = seconds_each(insert, ONE_BY_ONE)
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
    """From before a write until a watch has delivered it."""
    started: dict[str, float] = {}
    times: list[float] = []
    since = door.list(CONFIG_MAPS, NAMESPACE, limit=1).resource_version
    watch = door.watch(CONFIG_MAPS, NAMESPACE, labels="watched", resource_version=since)

    def receive() -> None:
        for event in watch:
            if event.object is not None:
                times.append(time.perf_counter() - started[event.object.metadata.name])
            if len(times) == ONE_BY_ONE:
                return

    thread = threading.Thread(target=receive)
    thread.start()
    for number in range(ONE_BY_ONE):
        obj = config_map(f"watched-{number}")
        obj.metadata.labels = {"watched": ""}
        started[obj.metadata.name] = time.perf_counter()
        door.create(CONFIG_MAPS, obj, NAMESPACE)
    thread.join()
    watch.close()
    return times


def percentile(times: list[float], share: float) -> float:
    return sorted(times)[min(int(len(times) * share), len(times) - 1)]


def report(what: str, taken: float, yardstick: float) -> None:
    print(f"{what:<28} {taken * 1e3:9.3f} ms  {taken / yardstick:7.1f} x yardstick")


def measure(name: str, door: Door, objects: int, insert: float, decode: float) -> None:
    def create(number: int) -> object:
        return door.create(CONFIG_MAPS, config_map(f"o{number:05}"), NAMESPACE)

    create_time = seconds_each(create, objects)
    report(f"{name}: create", create_time, insert)
    get_time = seconds_each(
        lambda number: door.get(CONFIG_MAPS, f"o{number:05}", NAMESPACE), ONE_BY_ONE
    )
    report(f"{name}: get", get_time, decode)
    list_time = seconds_each(lambda _: door.list(CONFIG_MAPS, NAMESPACE), 5)
    report(f"{name}: list {objects}", list_time, decode * objects)


def main() -> None:
    objects = int(sys.argv[1]) if len(sys.argv) > 1 else OBJECTS
    with tempfile.TemporaryDirectory() as place, doors(Path(place)) as all_doors:
        body = CONFIG_MAPS.encode(config_map("yardstick"))
        insert = raw_insert(Path(place), body)
        decode = seconds_each(lambda _: CONFIG_MAPS.decode(body), ONE_BY_ONE)
        passed = hand_over()
        print(f"yardsticks: insert {insert * 1e3:.3f} ms, decode {decode * 1e6:.1f} µs")
        for name, door in all_doors.items():
            measure(name, door, objects, insert, decode)
            times = delivery(door)
            report(f"{name}: watch, median", statistics.median(times), statistics.median(passed))
            report(f"{name}: watch, 99 %", percentile(times, 0.99), percentile(passed, 0.99))


if __name__ == "__main__":
    main()
