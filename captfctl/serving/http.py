"""A small HTTP server with a thread for each client: probes, diagnostics, a node's logs."""

import logging
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol

from captfctl.errors import EnvironmentFault

SLOW_CLIENT_SECONDS = 10.0
_BODY_MAX = 4096

log = logging.getLogger(__name__)


class Stream(Protocol):
    """A body that is sent piece by piece. It is closed at the end, also when the client is gone."""

    def __iter__(self) -> Iterator[bytes]: ...
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one request: `body`, or `stream` when its length is not known before."""

    status: int
    body: bytes = b""
    content_type: str = "text/plain; charset=utf-8"
    stream: Stream | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """One request. `query` is the text behind the question mark."""

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    query: str = ""


Respond = Callable[[Request], Answer]

NOT_FOUND = Answer(404, b"not found\n")


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - socketserver's signature
        log.debug("a client went away", exc_info=True)


class HttpServer:
    """Serves `respond` on `address` from `start` to `stop`. Port 0 takes a free one."""

    def __init__(
        self,
        name: str,
        address: tuple[str, int],
        respond: Respond,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Raises `EnvironmentFault` when the address cannot be had."""
        try:
            self._server = _Server(address, _handler(respond))
        except OSError as problem:
            host, port = address
            raise EnvironmentFault(
                f"cannot serve {name} on {host}:{port}",
                why=problem.strerror or str(problem),
                do="stop what uses the port, or choose another address",
            ) from problem
        if tls is not None:
            # The handshake belongs into the client's own thread, not into the accepting one.
            self._server.socket = tls.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.1,), name=name, daemon=True
        )

    @property
    def port(self) -> int:
        """The port it is served on."""
        return int(self._server.server_address[1])

    def start(self) -> None:
        """Serve, in a thread of its own."""
        self._thread.start()
        host, port = self._server.server_address[:2]
        log.info("%s is served on %s:%d", self._thread.name, host or "*", port)

    def stop(self) -> None:
        """End the server and give the port back."""
        if self._thread.ident is not None:
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()


def _handler(respond: Respond) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"  # for streams; each connection still serves one request
        timeout = SLOW_CLIENT_SECONDS
        server_version = "captfctl"
        sys_version = ""

        def do_GET(self) -> None:
            self._serve()

        def do_HEAD(self) -> None:
            self._serve()

        def do_PUT(self) -> None:
            self._serve()

        def _serve(self) -> None:
            length = self.headers.get("Content-Length", "0")
            size = int(length) if length.isascii() and length.isdigit() else _BODY_MAX + 1
            if size > _BODY_MAX:
                answer = Answer(413, b"the body is too large\n")
            else:
                body = self.rfile.read(size)
                path, _, query = self.path.partition("?")
                answer = respond(Request(self.command, path, dict(self.headers), body, query))
            try:
                self._answer(answer)
            finally:
                if answer.stream is not None:
                    answer.stream.close()

        def _answer(self, answer: Answer) -> None:
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.content_type)
            self.send_header("Connection", "close")
            if answer.stream is None:
                self.send_header("Content-Length", str(len(answer.body)))
            else:
                self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            if self.command == "HEAD":
                return
            if answer.stream is None:
                self.wfile.write(answer.body)
                return
            for piece in filter(None, answer.stream):  # an empty piece would end the body
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.write(b"0\r\n\r\n")

        def log_message(self, format: str, *args: Any) -> None:
            log.debug(format, *args)

    return Handler
