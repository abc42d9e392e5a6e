"""Requests to the cluster's API server, each within a time limit: for events
(runner.md: Progress events), and for Secrets that keep a state
(runner.md: A state that could not be stored).

The connection is kept between requests; one that the server has meanwhile closed is replaced.
"""

import http.client
import ipaddress
import ssl
import time
from base64 import b64encode
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, unquote, urlsplit

TIMEOUT_SECONDS = 2.0
_MOST_RESPONSE = 1 << 16  # of an answer that nobody reads
_LARGEST_OBJECT = 8 << 20


class Answer(NamedTuple):
    """The status of an answer, and what it says as far as that was asked for."""

    status: int
    body: bytes


class _DeadlineSocket(ssl.SSLSocket):
    """A socket whose reads all together end at a deadline, however slowly bytes trickle in."""

    deadline = float("inf")

    def recv_into(self, *arguments: Any, **named: Any) -> int:
        """As the base class, within what is left of the time."""
        self.settimeout(max(self.deadline - time.monotonic(), 0.001))
        return super().recv_into(*arguments, **named)


class _Request(NamedTuple):
    """What is sent, and how many bytes of the answer are read."""

    method: str
    path: str
    body: bytes
    headers: dict[str, str]
    most: int


class Api:
    """The API server as a pod reaches it.

    `account` is the directory with `ca.crt` and `token`. Raises OSError or ValueError when the
    certificate authority cannot be used or the proxy is of an unknown kind.
    """

    def __init__(self, host: str, port: str, account: str, environ: Mapping[str, str]) -> None:
        if not port.isdecimal() or not 0 < int(port) < 65536:
            raise ValueError(f"KUBERNETES_SERVICE_PORT is no port: {port!r}")
        self._host = host
        self._port = int(port)
        self._token_file = f"{account}/token"
        self._proxy = proxy(host, environ)
        self._context = _trusting(f"{account}/ca.crt")
        self._connection: http.client.HTTPSConnection | None = None

    def post(self, path: str, body: bytes) -> None:
        """Post a JSON document.

        Raises OSError or ValueError unless the answer is a 2xx. The answer's body is dropped.
        """
        status = self.request("POST", path, body)
        if not 200 <= status <= 299:
            raise ValueError(f"the API server answered {status}")

    def request(
        self, method: str, path: str, body: bytes = b"", *, seconds: float = TIMEOUT_SECONDS
    ) -> int:
        """Make one request; the status of the answer, whose body is dropped.

        Raises OSError or ValueError when there is no answer within `seconds`.
        """
        return self._ask(method, path, body, seconds, _MOST_RESPONSE).status

    def get(self, path: str, *, seconds: float = TIMEOUT_SECONDS) -> Answer:
        """Read one object. Raises as `request`."""
        return self._ask("GET", path, b"", seconds, _LARGEST_OBJECT)

    def _ask(self, method: str, path: str, body: bytes, seconds: float, most: int) -> Answer:
        deadline = time.monotonic() + seconds
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if token := self._token():
            headers["Authorization"] = f"Bearer {token}"
        try:
            return self._send(_Request(method, quote(path), body, headers, most), deadline)
        except http.client.HTTPException as error:
            raise ValueError(f"the API server answered no HTTP: {type(error).__name__}") from None

    def close(self) -> None:
        """Give the kept connection back."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _token(self) -> str:
        """The token, read each time because it is rotated."""
        with open(self._token_file, encoding="latin-1") as file:
            token = file.read().strip()
        if any(ord(character) < 0x20 for character in token):
            raise ValueError(f"{self._token_file} holds control characters")
        return token

    def _send(self, request: "_Request", deadline: float) -> Answer:
        reused = self._connection is not None
        try:
            return self._exchange(request, deadline)
        except (ConnectionError, ssl.SSLEOFError, ssl.SSLZeroReturnError):
            # A kept connection may have been closed before the server saw the request.
            if not reused:
                raise
            return self._exchange(request, deadline)

    def _exchange(self, request: "_Request", deadline: float) -> Answer:
        connection = self._connection or self._connect(deadline)
        self._connection = None
        try:
            if connection.sock is None:
                connection.connect()
            socket = connection.sock
            assert isinstance(socket, _DeadlineSocket)
            socket.deadline = deadline
            socket.settimeout(_left(deadline))
            connection.request(request.method, request.path, request.body, request.headers)
            response = connection.getresponse()
            body = response.read(request.most)
        except BaseException:
            connection.close()
            raise
        if response.isclosed() and not response.will_close:
            self._connection = connection
        else:
            connection.close()
        return Answer(response.status, body)

    def _connect(self, deadline: float) -> http.client.HTTPSConnection:
        if self._proxy is None:
            return http.client.HTTPSConnection(
                self._host, self._port, timeout=_left(deadline), context=self._context
            )
        host, port, authorization = self._proxy
        connection = http.client.HTTPSConnection(
            host, port, timeout=_left(deadline), context=self._context
        )
        named = f"[{self._host}]" if ":" in self._host else self._host
        headers = {"Proxy-Authorization": authorization} if authorization else {}
        connection.set_tunnel(named, self._port, headers)
        return connection


def _left(deadline: float) -> float:
    return max(deadline - time.monotonic(), 0.001)


def _trusting(ca_file: str) -> ssl.SSLContext:
    """A client context that trusts this authority and no other."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.sslsocket_class = _DeadlineSocket
    try:
        context.load_verify_locations(cafile=ca_file)
    except ssl.SSLError as error:
        raise ValueError(f"{ca_file} holds no usable certificate: {error.reason}") from None
    except OSError as error:
        raise OSError(f"{ca_file}: {error.strerror}") from None
    return context


def proxy(host: str, environ: Mapping[str, str]) -> tuple[str, int, str] | None:
    """Host, port and authorization of the proxy to use; None to connect directly."""
    url = environ.get("HTTPS_PROXY") or environ.get("https_proxy") or ""
    if not url or _bypassed(host, environ.get("NO_PROXY") or environ.get("no_proxy") or ""):
        return None
    parts = urlsplit(url if "://" in url else f"http://{url}")
    try:
        port = parts.port or 80
    except ValueError:
        port = 0
    if parts.scheme != "http" or not parts.hostname or not port:
        # The address may hold a password, so it is not named.
        raise ValueError("HTTPS_PROXY is not an http:// address")
    authorization = ""
    if parts.username is not None:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        authorization = "Basic " + b64encode(login.encode()).decode()
    return parts.hostname, port, authorization


def _bypassed(host: str, exceptions: str) -> bool:
    """Whether the host is on the list of those reached without the proxy."""
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    return any(_covers(entry.strip().lower(), host, address) for entry in exceptions.split(","))


def _covers(
    entry: str, host: str, address: ipaddress.IPv4Address | ipaddress.IPv6Address | None
) -> bool:
    if entry == "*":
        return True
    if not entry:
        return False
    if address is not None:
        try:
            return address in ipaddress.ip_network(entry.strip("[]"), strict=False)
        except ValueError:
            return False
    name = entry.removeprefix("*").removeprefix(".")
    return host.lower() == name or host.lower().endswith(f".{name}")


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
