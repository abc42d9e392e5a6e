"""One request and its whole answer over a kept connection, with little work in between.

A pass of the manager is mostly small reads. urllib3 connects (addresses, TLS, time limits, its
errors); what is sent and what comes back is handled here, with the parser that the embedded server
uses too: through urllib3 and `http.client` each request costs several times the CPU time.
"""

import contextlib
import socket
import ssl
import weakref
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

import httptools
import urllib3
from urllib3 import exceptions as http_errors
from urllib3.connection import HTTPConnection
from urllib3.util import parse_url
from urllib3.util.wait import wait_for_read

from captfctl.version import VERSION

CHUNK = 65536
_AGENT = f"captfctl/{VERSION}"


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer. Names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    data: bytes = field(repr=False)


class Exchange:
    """Connections to one server that is reached directly. Safe for any number of threads.

    Fails with urllib3's errors, as its own pools do.
    """

    def __init__(self, manager: urllib3.PoolManager, server: str) -> None:
        self._pool = manager.connection_from_url(server)
        self._host = parse_url(server).netloc or ""
        self._idle: deque[HTTPConnection] = deque()
        self._busy: set[HTTPConnection] = set()
        self._closed = False
        weakref.finalize(self, _close_all, self._idle)  # for owners that never close

    def send(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes | None,
        *,
        connect: float,
        read: float,
    ) -> Answer:
        """`target` is path and query; the time limits are in seconds."""
        message = self._message(method, target, headers, body)
        connection = self._connection(connect)
        keep = False
        try:
            answer, keep = self._exchanged(connection, message, read)
        except TimeoutError as error:
            # The others lead to the same place: each would cost its caller as long again.
            _close_all(self._idle)
            text = f"Read timed out. (read timeout={read})"
            raise http_errors.ReadTimeoutError(self._pool, target, text) from error
        except (ssl.SSLError, ssl.CertificateError) as error:
            raise http_errors.SSLError(error) from error
        except (OSError, httptools.HttpParserError) as error:
            raise http_errors.ProtocolError("Connection aborted.", error) from error
        finally:
            self._busy.discard(connection)
            if not keep:
                connection.close()
        if keep:
            self._idle.append(connection)
            if self._closed:
                self.close()
        return answer

    def close(self) -> None:
        """Close what is idle now, and what is in use when it is done."""
        self._closed = True
        _close_all(self._idle)

    def abandon(self) -> None:
        """Also end what is in use: who waits for an answer gets an error now."""
        self.close()
        for connection in list(self._busy):
            if connection.sock is not None:
                with contextlib.suppress(OSError):
                    # Not the method of a TLS socket, which its reader may be in the middle of.
                    socket.socket.shutdown(connection.sock, socket.SHUT_RDWR)

    def _message(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> bytes:
        lines = [f"{method} {target} HTTP/1.1", f"Host: {self._host}", f"User-Agent: {_AGENT}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        if body is not None:
            lines.append(f"Content-Length: {len(body)}")
        head = "\r\n".join(lines)
        if head.count("\n") != len(lines) - 1:
            raise ValueError("a header holds a line break")
        return head.encode("latin-1") + b"\r\n\r\n" + (body or b"")

    def _connection(self, limit: float) -> HTTPConnection:
        """The connection used last, which is the likeliest to live, or a new one."""
        while self._idle:
            try:
                connection = self._idle.pop()
            except IndexError:  # another thread was faster
                break
            if connection.sock is not None and not wait_for_read(connection.sock, timeout=0.0):
                self._busy.add(connection)
                return connection
            connection.close()  # the server closed it, or said something nobody asked for
        return self._connected(limit)

    def _connected(self, limit: float) -> HTTPConnection:
        connection = self._pool._new_conn()
        assert isinstance(connection, HTTPConnection)
        connection.timeout = limit
        self._busy.add(connection)
        try:
            connection.connect()
        except BaseException as error:
            self._busy.discard(connection)
            connection.close()
            if isinstance(error, ssl.SSLError | ssl.CertificateError):
                raise http_errors.SSLError(error) from error
            if isinstance(error, TimeoutError):
                raise http_errors.ConnectTimeoutError(connection, str(error)) from error
            if isinstance(error, OSError):
                raise http_errors.ProtocolError("Connection aborted.", error) from error
            raise
        return connection

    @staticmethod
    def _exchanged(connection: HTTPConnection, message: bytes, limit: float) -> tuple[Answer, bool]:
        """The answer, and whether the connection can be used again."""
        sock = connection.sock
        assert sock is not None
        sock.settimeout(limit)
        sock.sendall(message)
        reading = _Reading()
        while not reading.complete:
            data = sock.recv(CHUNK)
            if not data:
                raise ConnectionResetError("Remote end closed connection without a whole answer")
            reading.feed(data)
        return reading.answer(), reading.keep_alive


def _close_all(idle: deque[HTTPConnection]) -> None:
    with contextlib.suppress(IndexError):  # each is closed where it is taken out
        while True:
            idle.pop().close()


class _Reading:
    """What has come of an answer; the parser calls the methods that begin with `on_`."""

    def __init__(self) -> None:
        self.complete = False
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []
        self._parser = httptools.HttpResponseParser(self)
        self.keep_alive = False
        self._status = 0

    def feed(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_body(self, data: bytes) -> None:
        self._body.append(data)

    def on_message_complete(self) -> None:
        status = self._parser.get_status_code()
        if status < 200:  # an interim answer: the real one follows
            self._headers.clear()
            return
        self.complete = True
        self._status = status
        self.keep_alive = self._parser.should_keep_alive()

    def answer(self) -> Answer:
        """To be asked once, when it is complete."""
        del self._parser  # it refers to this, and this to it: break the cycle
        return Answer(self._status, self._headers, b"".join(self._body))
