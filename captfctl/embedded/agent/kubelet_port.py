"""The part of a kubelet's HTTPS port that `kubectl logs` needs on a real control plane.

kube-apiserver forwards a request for `pods/NAME/log` to the node: `GET
/containerLogs/NAMESPACE/POD/CONTAINER`. Left out: everything else of that port, and knowing who
asks: it listens on loopback only, with a certificate of its own, and answers every process of this
machine. Logs hold no secrets that the runner knows of (20 §17); what a module prints by itself is
its own business.
"""

import contextlib
import ssl
import threading
from collections.abc import Callable
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from captfctl.cluster.errors import ApiError
from captfctl.embedded.agent.logs import LogReader
from captfctl.embedded.apiserver.tls import ensure_certificates
from captfctl.errors import EnvironmentFault

_PREFIX = "containerLogs"
_NUMBERS = {"tailLines": "tail_lines", "sinceSeconds": "since_seconds", "limitBytes": "limit_bytes"}

OpenLog = Callable[..., LogReader]


class KubeletPort:
    """Serves what `open_log(namespace, pod, container, **options)` gives."""

    def __init__(self, open_log: OpenLog, directory: Path) -> None:
        """`directory` keeps the certificate."""
        self._open_log = open_log
        self._directory = directory
        self._server: ThreadingHTTPServer | None = None

    def start(self, port: int, now: datetime) -> int:
        """Returns the port. Raises `EnvironmentFault`."""
        certificates = ensure_certificates(self._directory, now)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificates.server, certificates.server_key)
        handler = type("Handler", (_Handler,), {"open_log": staticmethod(self._open_log)})
        try:
            server = ThreadingHTTPServer(("127.0.0.1", port), handler)
        except OSError as problem:
            raise EnvironmentFault(
                f"the node agent cannot serve logs: {problem.strerror}",
                where=f"127.0.0.1:{port}",
                do="choose another kubelet port, or 0 for any free one",
            ) from None
        server.daemon_threads = True
        # The handshake belongs to a request's own thread: a silent client must not block others.
        server.socket = context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
        threading.Thread(target=server.serve_forever, name="kubelet-port", daemon=True).start()
        self._server = server
        return int(server.server_address[1])

    def stop(self) -> None:
        """End the server."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30
    open_log: OpenLog

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        path = parts.path.strip("/").split("/")
        if len(path) != 4 or path[0] != _PREFIX:
            self._refuse(404, "this node serves /containerLogs/NAMESPACE/POD/CONTAINER only")
            return
        try:
            options = _options(parse_qs(parts.query))
            log = self.open_log(*path[1:], **options)
        except ApiError as problem:
            self._refuse(problem.status, str(problem))
        except ValueError as problem:
            self._refuse(400, str(problem))
        else:
            self._stream(log)

    def _stream(self, log: LogReader) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            # Whoever went away shows at the next line.
            for piece in log:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.close_connection = True
        finally:
            log.close()

    def _refuse(self, status: int, message: str) -> None:
        body = message.encode() + b"\n"
        with contextlib.suppress(OSError):
            self.send_response(status)
            self.send_header("Content-Type", "text/plain")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Requests are not worth a line each."""


def _options(query: dict[str, list[str]]) -> dict[str, Any]:
    """Raises `ValueError`."""
    options: dict[str, Any] = {
        ours: int(query[theirs][-1]) for theirs, ours in _NUMBERS.items() if theirs in query
    }
    for name in ("follow", "timestamps", "previous"):
        if name in query:
            options[name] = query[name][-1].lower() in ("true", "1")
    return options
