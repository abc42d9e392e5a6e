"""The embedded API server's life: socket, certificates, token, kubeconfig, thread."""

import asyncio
import errno
import socket
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias
from weakref import WeakKeyDictionary

import msgspec
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from captfctl.clock import Clock
from captfctl.cluster.errors import ApiError
from captfctl.embedded.apiserver.app import App
from captfctl.embedded.apiserver.auth import Authenticator
from captfctl.embedded.apiserver.files import make_private_directory, write_kubeconfig
from captfctl.embedded.apiserver.log_source import LogSource
from captfctl.embedded.apiserver.tls import Certificates, ensure_certificates
from captfctl.embedded.apiserver.tokens import serve_tokens
from captfctl.embedded.store import LOCAL_ADMIN, EmbeddedStore
from captfctl.errors import EnvironmentFault
from captfctl.model.meta import PartialObject

LOOPBACK = "127.0.0.1"
WORKERS = 16
"""Requests that are worked on at the same time; watches are not among them."""
LOG_READERS = 64
"""Logs that are read at the same time: a followed one takes a thread."""
STOP_SECONDS = 3
"""How long answers that are under way may take when the server stops."""
_TURNS_TO_CLOSE = 10
"""Of the event loop: one reads the end of a connection, the next closes its transport."""

_Connections: TypeAlias = WeakKeyDictionary[asyncio.Transport, socket.socket]


class ApiServer:
    """Serves a store over HTTPS on loopback, to holders of the token.

    Everything it keeps is in `data_dir`, for its owner only: `pki/`, `token`, `kubeconfig`.
    It listens on the first of `ports` that can be had; 0 is any free one. `owner` is the user name
    behind the token.
    """

    def __init__(
        self,
        store: EmbeddedStore,
        *,
        data_dir: Path,
        clock: Clock,
        ports: Sequence[int] = (0,),
        logs: LogSource | None = None,
        owner: str = LOCAL_ADMIN["username"],
    ) -> None:
        self._store = store
        self._data_dir = data_dir
        self._clock = clock
        self._wanted_ports = ports
        self._logs = logs
        self._owner = owner
        self._running: _Running | None = None

    def start(self) -> None:
        """Returns when requests are answered. Raises `EnvironmentFault`: a port in use, a disk."""
        make_private_directory(self._data_dir)
        certificates = ensure_certificates(self._data_dir / "pki", self._clock.now())
        authenticator = Authenticator(self._data_dir, self._owner, self._account_uid)
        serve_tokens(self._store, authenticator, self._clock)
        listener = _listen(self._wanted_ports)
        try:
            running = _Running(self._store, self._clock, authenticator, self._logs)
            write_kubeconfig(
                self.kubeconfig_path,
                url=_url(listener),
                authority=certificates.authority.read_bytes(),
                user=self._owner,
                token=authenticator.token,
            )
            running.start(listener, certificates)
        except BaseException:
            listener.close()
            raise
        self._running = running

    def stop(self) -> None:
        """End all watches and logs, finish what is under way, and return. May be called again."""
        running, self._running = self._running, None
        if running is not None:
            running.stop()

    @property
    def kubeconfig_path(self) -> Path:
        """The kubeconfig that leads to this server."""
        return self._data_dir / "kubeconfig"

    @property
    def ca_path(self) -> Path:
        """The certificate authority, in PEM."""
        return self._data_dir / "pki" / "ca.crt"

    @property
    def token_path(self) -> Path:
        """The file that holds the owner's bearer token."""
        return self._data_dir / "token"

    @property
    def url(self) -> str:
        """Where it is served. Only once it is started."""
        return _url(self._started.listener)

    @property
    def port(self) -> int:
        """The port it is served on. Only once it is started."""
        return _port(self._started.listener)

    @property
    def token(self) -> str:
        """The owner's bearer token."""
        return self._started.authenticator.token

    @property
    def _started(self) -> "_Running":
        if self._running is None:
            raise RuntimeError("the API server is not running")
        return self._running

    def _account_uid(self, namespace: str, name: str) -> str:
        served = self._store.registry.find("", "v1", "serviceaccounts")
        try:
            body = self._store.get(served, name, namespace)
        except ApiError:
            return ""
        account: PartialObject = msgspec.json.decode(body, type=PartialObject)
        return account.metadata.uid


class _Running:
    """One run of the server, in a thread of its own."""

    listener: socket.socket

    def __init__(
        self,
        store: EmbeddedStore,
        clock: Clock,
        authenticator: Authenticator,
        logs: LogSource | None,
    ) -> None:
        self.authenticator = authenticator
        self._workers = ThreadPoolExecutor(WORKERS, thread_name_prefix="api-worker")
        self._readers = ThreadPoolExecutor(LOG_READERS, thread_name_prefix="api-log")
        self._app = App(store, clock, authenticator, logs, self._workers, self._readers)

    def start(self, listener: socket.socket, certificates: Certificates) -> None:
        self.listener = listener
        opened: _Connections = WeakKeyDictionary()
        config = uvicorn.Config(
            self._app,
            http=_noted_in(opened),
            ws="none",
            loop="asyncio",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ssl_certfile=certificates.server,
            ssl_keyfile=certificates.server_key,
            timeout_graceful_shutdown=STOP_SECONDS,
        )
        config.load()  # here, so that its errors reach the caller
        self._server = _Server(config, self._app, opened)
        self._thread = threading.Thread(
            target=self._server.run, args=([listener],), name="api-server", daemon=True
        )
        self._thread.start()
        self._server.ready.wait()

    def stop(self) -> None:
        self._server.end()
        self._thread.join(STOP_SECONDS * 2)
        self._workers.shutdown(wait=False, cancel_futures=True)
        self._readers.shutdown(wait=False, cancel_futures=True)


class _Server(uvicorn.Server):
    """Tells when it is ready, and can be ended from another thread at once."""

    def __init__(self, config: uvicorn.Config, app: App, opened: _Connections) -> None:
        super().__init__(config)
        self.ready = threading.Event()
        self._app = app
        self._opened = opened
        self._loop: asyncio.AbstractEventLoop | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._loop = asyncio.get_running_loop()
        self.ready.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Leaves no connection behind, not even one whose client does not end its TLS session.

        Those that uvicorn closed are forgotten by it, and wait for their clients: the end of the
        connection ends that.
        """
        await super().shutdown(sockets)
        for transport, connected in list(self._opened.items()):
            transport.abort()
            if connected.fileno() != -1:
                with suppress(OSError):  # the client is gone already
                    connected.shutdown(socket.SHUT_RDWR)
        for _ in range(_TURNS_TO_CLOSE):
            await asyncio.sleep(0)

    def end(self) -> None:
        self.should_exit = True
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._app.end_streams)


def _noted_in(opened: _Connections) -> type[HttpToolsProtocol]:
    """uvicorn's connections, each noted once it is there."""

    class Connection(HttpToolsProtocol):
        # Like uvicorn's own, narrower than asyncio declares it: a server's transports go both ways.
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            opened[transport] = transport.get_extra_info("socket")
            super().connection_made(transport)

    return Connection


def _listen(ports: Sequence[int]) -> socket.socket:
    for port in ports[:-1]:
        try:
            return _listen_on(port)
        except EnvironmentFault:
            continue
    return _listen_on(ports[-1])


def _listen_on(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # An answer's head and body are sent apart: without this the body waits for the head's receipt.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        listener.bind((LOOPBACK, port))
        listener.listen(1024)
    except OSError as problem:
        listener.close()
        in_use = problem.errno == errno.EADDRINUSE
        raise EnvironmentFault(
            f"the embedded API server cannot listen on port {port}",
            where=f"{LOOPBACK}:{port}",
            why="another process listens there" if in_use else problem.strerror or "unknown cause",
            do="end the other process, or choose another port with --port",
        ) from None
    return listener


def _port(listener: socket.socket) -> int:
    port: int = listener.getsockname()[1]
    return port


def _url(listener: socket.socket) -> str:
    return f"https://{LOOPBACK}:{_port(listener)}"
