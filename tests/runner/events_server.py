"""An API server that takes events and Secrets, on loopback with an authority of its own."""

import datetime
import ipaddress
import json
import ssl
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

# An address for documentation: reached only through a proxy that knows better.
BEHIND_PROXY = "192.0.2.1"


class Request(NamedTuple):
    """One request the server got."""

    path: str
    token: str
    event: dict[str, Any]
    method: str = "POST"


class _Quiet(ThreadingHTTPServer):
    """Clients that give up are what the tests are about."""

    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        pass


class EventsServer:
    """Answers every event with the next status; the last one repeats."""

    def __init__(self, directory: Path, account: Path) -> None:
        self.requests: list[Request] = []
        self.statuses = [201]
        self.connections = 0
        self.hang_up = False
        self.before_answer: Callable[[], object] = lambda: None
        self.account = account
        account.mkdir()
        (account / "token").write_text("token-one\n")
        certificate = directory / "server.pem"
        _make_certificate(account / "ca.crt", certificate)
        self._server = _Quiet(("127.0.0.1", 0), self._handler())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    @property
    def environ(self) -> dict[str, str]:
        """The variables by which a pod finds the server."""
        return {
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": str(self._server.server_address[1]),
            "CAPTF_SERVICE_ACCOUNT_DIR": str(self.account),
        }

    @property
    def events(self) -> list[dict[str, Any]]:
        """The events posted, in order."""
        return [request.event for request in self.requests if "/events" in request.path]

    @property
    def secrets(self) -> dict[str, dict[str, Any]]:
        """The Secrets that exist, by name."""
        found: dict[str, dict[str, Any]] = {}
        for request in self.requests:
            if request.path.partition("/secrets")[1] == "":
                continue
            if request.method == "DELETE":
                found.pop(request.path.rpartition("/")[2], None)
            else:
                found[request.event["metadata"]["name"]] = request.event
        return found

    @property
    def reasons(self) -> list[str]:
        """The events' reasons, in order."""
        return [event["reason"] for event in self.events]

    def close(self) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                super().setup()
                server.connections += 1

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", "0"))) or b"{}"
                token = self.headers.get("Authorization", "")
                server.requests.append(Request(self.path, token, json.loads(body), self.command))
                status = server.statuses[0]
                if len(server.statuses) > 1:
                    server.statuses.pop(0)
                server.before_answer()
                self.send_response(status)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")
                # Without having said so: the client finds out when it sends the next request.
                self.close_connection = server.hang_up

            do_PUT = do_POST  # noqa: N815
            do_DELETE = do_POST  # noqa: N815

            def log_message(self, *_: object) -> None:
                pass

        return Handler


def _make_certificate(authority: Path, server: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "events")])
    now = datetime.datetime.now(datetime.UTC)
    names = x509.SubjectAlternativeName(
        [x509.IPAddress(ipaddress.ip_address(text)) for text in ("127.0.0.1", BEHIND_PROXY)]
    )
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    public = certificate.public_bytes(serialization.Encoding.PEM)
    authority.write_bytes(public)
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    server.write_bytes(private + public)
