"""A small HTTP server that answers as a test tells it, and kubeconfigs that name it."""

import base64
import json
import queue
import ssl
import tempfile
import threading
from collections import deque
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from tests.support.clock import DEADLINE


@dataclass
class Seen:
    """A request as it arrived."""

    method: str
    path: str
    query: dict
    headers: dict
    body: dict | None
    lines: list = field(default_factory=list)  # all headers: a name may come several times


@dataclass
class Answer:
    status: int = 200
    body: object = None
    headers: dict = field(default_factory=dict)


def status(code, reason="", message="", **details):
    """An answer as an API server refuses."""
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code}
    body |= {"reason": reason, "message": message}
    if details:
        body["details"] = details
    return Answer(code, body)


class Stream:
    """A watch: what is sent goes out as one line each."""

    def __init__(self):
        self._lines = queue.Queue()

    def send(self, type_, /, **obj):
        self.raw(json.dumps({"type": type_, "object": obj}).encode() + b"\n")

    def raw(self, data: bytes):
        self._lines.put(data)

    def end(self):
        """The orderly end of the answer."""
        self._lines.put(b"")

    def break_off(self):
        """The connection ends in the middle."""
        self._lines.put(None)

    def lines(self):
        while (line := self._lines.get(timeout=60)) is not None:
            yield line
            if line == b"":
                return


class Api:
    """Answers come in the order they were given; none left: 500.

    With a certificate it is reached by HTTPS. `trust` are the fields of a cluster that go with it.
    """

    def __init__(self, certificate=None, authority=None):
        self.answers = deque()
        self.default = None  # an answer when none is left
        self.seen = []
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer_one(self):
                api._handle(self)

            def log_message(self, *_):
                pass

        for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
            setattr(Handler, f"do_{method}", Handler.answer_one)

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass  # clients of these tests break connections on purpose

        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.trust = {}
        if certificate is not None:
            self.url = f"https://127.0.0.1:{self.port}"
            self.authority = authority.pem()
            data = base64.b64encode(self.authority).decode()
            self.trust = {"certificate-authority-data": data}
            self.server.socket = _tls(certificate, self.authority).wrap_socket(
                self.server.socket, server_side=True, do_handshake_on_connect=False
            )

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def answer(self, body=None, code=200, **headers):
        self.answers.append(Answer(code, body, headers))

    def _handle(self, handler):
        url = urlsplit(handler.path)
        length = int(handler.headers.get("Content-Length") or 0)
        body = handler.rfile.read(length)
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        parsed = json.loads(body) if body else None
        lines = sorted(handler.headers.items())
        headers = dict(handler.headers)
        self.seen.append(Seen(handler.command, url.path, query, headers, parsed, lines))
        if self.answers:
            answer = self.answers.popleft()
        elif self.default is not None:
            answer = Answer(200, self.default)
        else:
            answer = Answer(500, "no answer left")
        if isinstance(answer, Stream):
            _stream(handler, answer)
        elif isinstance(answer, threading.Event):  # an answer that never comes
            answer.wait(DEADLINE)
            handler.close_connection = True
        else:
            _reply(handler, answer)


def _tls(certificate, authority):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile() as file:
        file.write(certificate.key_pem() + certificate.pem())
        file.flush()
        context.load_cert_chain(file.name)
    context.load_verify_locations(cadata=authority.decode())
    context.verify_mode = ssl.CERT_OPTIONAL
    return context


def _reply(handler, answer):
    body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
    handler.send_response(answer.status)
    for name, value in answer.headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def _stream(handler, stream):
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    handler.wfile.flush()
    handler.close_connection = True
    for line in stream.lines():
        handler.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
        handler.wfile.flush()


def kubeconfig(path, server, *, user=None, context="test", **cluster):
    """Write a kubeconfig; return its path as text."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": context,
        "clusters": [{"name": "here", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "ann", "user": user or {"token": "t0ken"}}],
        "contexts": [{"name": context, "context": {"cluster": "here", "user": "ann"}}],
    }
    path.write_text(json.dumps(config))
    return str(path)
