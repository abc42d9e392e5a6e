"""Small HTTP servers of the manager: probes and diagnostics (50 §16.3)."""

import logging
import ssl
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from captfctl.errors import EnvironmentFault
from captfctl.manager.settings import parse_address

SLOW_CLIENT_SECONDS = 10.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one request."""

    status: int
    body: bytes = b""
    content_type: str = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Request:
    """One request, without its query."""

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


Respond = Callable[[Request], Answer]

_BODY_MAX = 4096
NOT_FOUND = Answer(404, b"not found\n")


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - socketserver's signature
        log.debug("a client of the probes or the diagnostics went away", exc_info=True)


class HttpServer:
    """Serves `respond` on `address` from `start` to `stop`. Port 0 takes a free one."""

    def __init__(
        self, name: str, address: str, respond: Respond, tls: ssl.SSLContext | None = None
    ) -> None:
        parsed = parse_address(address)
        assert parsed is not None, "validated with the settings"
        try:
            self._server = _Server(parsed, _handler(respond))
        except OSError as problem:
            raise EnvironmentFault(
                f"cannot serve {name} on {address}",
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
                path = self.path.partition("?")[0]
                answer = respond(Request(self.command, path, dict(self.headers), body))
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.content_type)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(answer.body)

        def log_message(self, format: str, *args: Any) -> None:
            log.debug(format, *args)

    return Handler
