"""Requests over kept connections: what is reused, what is not, what a broken answer means."""

import socket
import threading

import pytest
import urllib3
from urllib3 import exceptions as http_errors

from captfctl.cluster.live_exchange import Exchange
from tests.support.clock import DEADLINE


class Wire:
    """A server that reads one request after the other and answers with the bytes it was given.

    `connections` counts those that were accepted. An answer of None closes the connection.
    """

    def __init__(self, *answers: bytes | None):
        self.answers = list(answers)
        self.requests: list[bytes] = []
        self.connections = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(DEADLINE)

    def _serve(self):
        while self.answers:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            with connection:
                self._converse(connection)

    def _converse(self, connection):
        while self.answers:
            got = b""
            while b"\r\n\r\n" not in got:
                data = connection.recv(65536)
                if not data:
                    return
                got += data
            self.requests.append(got)
            answer = self.answers.pop(0)
            if answer is None:
                return
            for part in answer.split(b"|"):  # each comes in a packet of its own
                connection.sendall(part)


def reply(body: bytes = b"{}", *headers: bytes, status: bytes = b"200 OK") -> bytes:
    lines = [b"HTTP/1.1 " + status, b"Content-Length: %d" % len(body), *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


@pytest.fixture
def pool():
    manager = urllib3.PoolManager()
    yield manager
    manager.clear()


def send(exchange, target="/x", headers=None, body=None, method="GET", read=DEADLINE):
    return exchange.send(method, target, headers or {}, body, connect=DEADLINE, read=read)


def opened(pool, wire):
    return Exchange(pool, wire.url)


def test_requests_one_after_the_other_share_a_connection(pool):
    with Wire(reply(b"1"), reply(b"2")) as wire:
        exchange = opened(pool, wire)
        assert [send(exchange).data, send(exchange).data] == [b"1", b"2"]
        assert wire.connections == 1
        exchange.close()


def test_a_request_carries_its_headers_and_its_body(pool):
    with Wire(reply()) as wire:
        exchange = opened(pool, wire)
        send(exchange, "/a?b=c", {"Authorization": "Bearer t"}, b"{}", "POST")
        head, _, body = wire.requests[0].partition(b"\r\n\r\n")
        assert head.startswith(b"POST /a?b=c HTTP/1.1\r\nHost: 127.0.0.1:")
        assert b"Authorization: Bearer t\r\n" in head
        assert head.endswith(b"Content-Length: 2")
        assert body == b"{}"
        exchange.close()


def test_an_answer_in_pieces_and_in_chunks_is_put_together(pool):
    chunked = (
        b"HTTP/1.1 200 OK\r\nTransfer-|Encoding: chunked\r\n\r\n3\r\nab|c\r\n1\r\nd\r\n|0\r\n\r\n"
    )
    with Wire(chunked, reply(b"after")) as wire:
        exchange = opened(pool, wire)
        assert send(exchange).data == b"abcd"
        assert send(exchange).data == b"after"
        assert wire.connections == 1
        exchange.close()


def test_an_interim_answer_is_passed_over(pool):
    with Wire(b"HTTP/1.1 103 Early Hints\r\nA: 1\r\n\r\n" + reply(b"real", b"B: 2")) as wire:
        exchange = opened(pool, wire)
        answer = send(exchange)
        assert (answer.status, answer.data) == (200, b"real")
        assert answer.headers == {"content-length": "4", "b": "2"}
        exchange.close()


def test_a_connection_that_the_server_wants_closed_is_not_used_again(pool):
    with Wire(reply(b"1", b"Connection: close"), reply(b"2")) as wire:
        exchange = opened(pool, wire)
        send(exchange)
        assert send(exchange).data == b"2"
        assert wire.connections == 2
        exchange.close()


def test_an_answer_that_breaks_off_is_no_answer(pool):
    with Wire(None) as wire:
        exchange = opened(pool, wire)
        with pytest.raises(http_errors.ProtocolError):
            send(exchange)


def test_what_is_not_http_is_no_answer(pool):
    with Wire(b"SSH-2.0-OpenSSH\r\n\r\n") as wire:
        exchange = opened(pool, wire)
        with pytest.raises(http_errors.ProtocolError):
            send(exchange)


def test_a_silent_server_is_given_up(pool):
    with Wire(b"", b"") as wire:
        exchange = opened(pool, wire)
        with pytest.raises(http_errors.ReadTimeoutError):
            send(exchange, read=0.05)


def test_a_port_where_nobody_listens_is_a_failure_to_connect(pool):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    with pytest.raises(http_errors.NewConnectionError):
        send(Exchange(pool, url))


def test_a_line_break_in_a_header_is_refused(pool):
    with Wire() as wire, pytest.raises(ValueError, match="line break"):
        send(opened(pool, wire), headers={"Authorization": "Bearer a\r\nX: b"})
