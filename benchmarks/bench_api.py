"""Lists and watches of the embedded API server, each against a yardstick of the same run.

- a list of all objects, against the same bytes from a static answer of the same HTTPS server
- one object read, against the same
- delivery of changes to watches: from before the write to the line at the reader
"""

import asyncio
import json
import socket
import ssl
import tempfile
import threading
import time
from collections.abc import Iterator
from functools import partial
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any

import uvicorn

from benchmarks.figures import Figure, Yardstick, at_most
from benchmarks.timing import best, percentile
from captfctl.clock import SystemClock
from captfctl.embedded.apiserver.server import ApiServer
from captfctl.embedded.store import EmbeddedStore

OBJECTS = 10_000
ROUNDS = 5
WATCHES = 50
CHANGES = 200
LIST_LIMIT = 300.0
WATCH_LIMIT = 20.0
PATH = "/api/v1/namespaces/default/configmaps"


class Static:
    """The yardstick: a server of the same kind that answers with fixed bytes."""

    def __init__(self, pki: Path) -> None:
        self.body = b""
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        config = uvicorn.Config(
            self,
            http="httptools",
            ws="none",
            lifespan="off",
            proxy_headers=False,
            log_config=None,
            access_log=False,
            ssl_certfile=pki / "server.crt",
            ssl_keyfile=pki / "server.key",
        )
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, args=([self.listener],))
        self.thread.start()

    async def __call__(self, _scope: Any, _receive: Any, send: Any) -> None:
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})

    def stop(self) -> None:
        self.server.should_exit = True
        self.thread.join()


class Reader:
    def __init__(self, port: int, token: str, ca: Path) -> None:
        context = ssl.create_default_context(cafile=str(ca))
        self.connection = HTTPSConnection("127.0.0.1", port, context=context)
        self.headers = {"Authorization": f"Bearer {token}"}

    def get(self, path: str) -> bytes:
        self.connection.request("GET", path, headers=self.headers)
        return self.connection.getresponse().read()


def fill(store: EmbeddedStore, count: int) -> None:
    served = store.registry.find("", "v1", "configmaps")
    for number in range(count):
        document = {
            "metadata": {"name": f"c{number:05}", "labels": {"n": str(number % 10)}},
            "data": {"text": "x" * 500},
        }
        store.create(served, document, "default")


async def _read_lines(
    server: ApiServer, version: str, seen: list[float], go: asyncio.Event
) -> None:
    context = ssl.create_default_context(cafile=str(server.ca_path))
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=context)
    query = f"?watch=1&resourceVersion={version}&fieldSelector=metadata.name%3Dwatched"
    request = (
        f"GET {PATH}{query} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.token}\r\n\r\n"
    )
    writer.write(request.encode())
    await reader.readuntil(b"\r\n\r\n")
    go.set()
    while len(seen) < CHANGES:
        line = await reader.readline()
        if b'"sent":"' in line:
            sent = line.partition(b'"sent":"')[2].partition(b'"')[0]
            seen.append(time.perf_counter() - float(sent))
    writer.close()


def watch_latency(server: ApiServer, store: EmbeddedStore, watches: int) -> list[float]:
    """Seconds from before the write to the reader, for every change at every watch."""
    served = store.registry.find("", "v1", "configmaps")
    version = store.resource_version

    def change(live: Any) -> Any:
        return {**live, "data": {"sent": repr(time.perf_counter())}}

    async def run() -> list[float]:
        seen: list[list[float]] = [[] for _ in range(watches)]
        ready = [asyncio.Event() for _ in range(watches)]
        tasks = [
            asyncio.create_task(_read_lines(server, version, mine, go))
            for mine, go in zip(seen, ready, strict=True)
        ]
        await asyncio.gather(*(event.wait() for event in ready))
        for _ in range(CHANGES):
            await asyncio.to_thread(store.modify, served, "watched", "default", change)
            await asyncio.sleep(0.005)
        await asyncio.gather(*tasks)
        return [latency for mine in seen for latency in mine]

    return asyncio.run(run())


def run() -> Iterator[Figure]:
    store = EmbeddedStore.in_memory(SystemClock())
    fill(store, OBJECTS)
    served = store.registry.find("", "v1", "configmaps")
    store.create(served, {"metadata": {"name": "watched"}}, "default")
    with tempfile.TemporaryDirectory() as folder:
        server = ApiServer(store, data_dir=Path(folder), clock=SystemClock())
        server.start()
        static = Static(Path(folder) / "pki")
        try:
            yield from measure(server, static, store)
        finally:
            static.stop()
            server.stop()
            store.close()


def measure(server: ApiServer, static: Static, store: EmbeddedStore) -> Iterator[Figure]:
    port = static.listener.getsockname()[1]
    ours = Reader(server.port, server.token, server.ca_path)
    yardstick = Reader(port, "", server.ca_path)
    for title, path in ((f"list of {OBJECTS}", PATH), ("get", f"{PATH}/c00000")):
        static.body = ours.get(path)
        json.loads(static.body)
        here, there = (
            best(partial(ours.get, path), ROUNDS),
            best(partial(yardstick.get, "/"), ROUNDS),
        )
        what = f"{title} ({len(static.body) / 1e6:.1f} MB)" if path == PATH else title
        stick = Yardstick(name="a static answer", value=there * 1e3)
        if path == PATH:
            yield at_most(what, here * 1e3, "ms", LIST_LIMIT, yardstick=stick)
        else:
            yield Figure(what=what, value=here * 1e3, unit="ms", yardstick=stick)
    for watches in (1, WATCHES):
        found = watch_latency(server, store, watches)
        half, most = percentile(found, 0.5) * 1e3, percentile(found, 0.99) * 1e3
        what = f"a change at {watches} watch{'es' if watches > 1 else ''}"
        yield Figure(what=f"{what}, p50", value=half, unit="ms")
        yield at_most(f"{what}, p99", most, "ms", WATCH_LIMIT)
