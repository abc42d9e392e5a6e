"""A proxy that understands HTTP: it ends TLS, and refuses or swallows single requests.

Between a client and an API server:

    with HttpFaultProxy(server_url, ca_path, folder) as proxy:
        ... a client that trusts proxy.ca_path talks to proxy.url ...
        proxy.refuse(429, share=0.5)   # every second request, on average, is answered so
        proxy.lose_answers(share=0.5)  # writes reach the server; their answers are cut off
        proxy.heal()
        proxy.after_write = tell       # told method and path of a write, then it is answered
"""

import http.client
import json
import random
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

WRITES = ("POST", "PUT", "PATCH", "DELETE")
_CHUNK = 65536
_HOP_BY_HOP = {"connection", "transfer-encoding", "keep-alive", "content-length"}


class HttpFaultProxy:
    """Forwards requests to one server. Which of them a fault hits is drawn from a fixed seed."""

    def __init__(self, server: str, ca_path: Path, folder: Path) -> None:
        parts = urlsplit(server)
        self.target = (parts.hostname or "", parts.port or 443)
        self.trust = ssl.create_default_context(cafile=str(ca_path))
        self.ca_path = _certificate(folder)
        self._lock = threading.Lock()
        self._random = random.Random(7)
        self._status = 0
        self._refused_share = 0.0
        self._lost_share = 0.0
        self.after_write: Callable[[str, str], None] = lambda method, path: None
        self.faults = 0
        """How many requests a fault hit so far."""
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.ca_path, folder / "proxy.key")
        self._server.socket = context.wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )
        self.url = f"https://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> "HttpFaultProxy":
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def refuse(self, status: int, *, share: float) -> None:
        """Answer this share of the requests with `status`; the server never sees them."""
        self._status, self._refused_share = status, share

    def lose_answers(self, *, share: float) -> None:
        """Carry out this share of the writes and cut the connection instead of answering."""
        self._lost_share = share

    def heal(self) -> None:
        self._refused_share = self._lost_share = 0.0

    def refusal(self) -> int:
        """The status that the next request is refused with; 0: it passes."""
        return self._status if self._drawn(self._refused_share) else 0

    def loses(self, method: str) -> bool:
        return method in WRITES and self._drawn(self._lost_share)

    def _drawn(self, share: float) -> bool:
        with self._lock:
            hit = self._random.random() < share
            self.faults += hit
            return hit


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients and servers that go away are what this is for."""


def _handler(proxy: HttpFaultProxy) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if status := proxy.refusal():
                self._refuse(status)
                return
            lost = proxy.loses(self.command)
            upstream = http.client.HTTPSConnection(*proxy.target, context=proxy.trust, timeout=120)
            try:
                headers = {k: v for k, v in self.headers.items() if k.lower() not in _HOP_BY_HOP}
                upstream.request(self.command, self.path, body or None, headers)
                answer = upstream.getresponse()
                if self.command in WRITES:
                    proxy.after_write(self.command, self.path)
                if lost:
                    self.close_connection = True
                    self.connection.shutdown(socket.SHUT_RDWR)
                else:
                    self._pass_on(answer)
            except (OSError, http.client.HTTPException):
                self.close_connection = True
            finally:
                upstream.close()

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815

        def _pass_on(self, answer: http.client.HTTPResponse) -> None:
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in _HOP_BY_HOP:
                    self.send_header(name, value)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            while piece := answer.read1(_CHUNK):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.write(b"0\r\n\r\n")

        def _refuse(self, status: int) -> None:
            reason = {429: "TooManyRequests", 500: "InternalError"}.get(status, "")
            document = {
                "kind": "Status",
                "apiVersion": "v1",
                "status": "Failure",
                "reason": reason,
                "message": "refused on purpose",
                "code": status,
            }
            body = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            if status == 429:
                self.send_header("Retry-After", "1")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler


def _certificate(folder: Path) -> Path:
    """A certificate for 127.0.0.1 that is its own authority, with `proxy.key` beside it."""
    certificate = folder / "proxy.crt"
    command = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 "
        "-addext subjectAltName=IP:127.0.0.1 -keyout proxy.key -out proxy.crt"
    )
    subprocess.run(command.split(), cwd=folder, check=True, capture_output=True)
    return certificate
