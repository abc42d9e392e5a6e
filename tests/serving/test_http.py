"""The HTTP server of the manager's probes and of a node's logs."""

import http.client
import threading
from contextlib import contextmanager

import pytest

from captfctl.errors import EnvironmentFault
from captfctl.serving.http import Answer, HttpServer

LOOPBACK = "127.0.0.1"


class Pieces:
    """A stream that says when it was closed."""

    def __init__(self, *pieces):
        self.pieces = pieces
        self.closed = threading.Event()

    def __iter__(self):
        yield from self.pieces

    def close(self):
        self.closed.set()


@contextmanager
def serving(respond):
    server = HttpServer("a test", (LOOPBACK, 0), respond)
    server.start()
    connection = http.client.HTTPConnection(LOOPBACK, server.port, timeout=10)
    try:
        yield connection
    finally:
        connection.close()
        server.stop()


def ask(connection, method, path, **options):
    connection.request(method, path, **options)
    response = connection.getresponse()
    return response.status, response.read()


def test_a_request_arrives_with_its_path_query_and_body():
    seen = []

    def respond(request):
        seen.append((request.method, request.path, request.query, request.body))
        return Answer(200, b"ok\n")

    with serving(respond) as connection:
        assert ask(connection, "PUT", "/a/b?c=d", body=b"text") == (200, b"ok\n")
    assert seen == [("PUT", "/a/b", "c=d", b"text")]


def test_a_stream_is_sent_piece_by_piece_and_closed():
    stream = Pieces(b"one\n", b"", b"two\n")
    with serving(lambda _: Answer(200, stream=stream)) as connection:
        assert ask(connection, "GET", "/") == (200, b"one\ntwo\n")
    assert stream.closed.wait(10)


def test_a_stream_is_closed_when_its_client_goes_away():
    go_on = threading.Event()

    class Endless(Pieces):
        def __iter__(self):
            yield b"first"
            go_on.wait(10)
            while True:
                yield b"x" * 65536

    stream = Endless()
    with serving(lambda _: Answer(200, stream=stream)) as connection:
        connection.request("GET", "/")
        assert connection.getresponse().read(5) == b"first"
        connection.close()
        go_on.set()
        assert stream.closed.wait(10)


def test_head_is_answered_without_a_body():
    with serving(lambda _: Answer(200, b"text")) as connection:
        assert ask(connection, "HEAD", "/") == (200, b"")


@pytest.mark.parametrize("length", ["5000", "-1", "many"])
def test_a_body_that_is_too_large_is_refused_unread(length):
    with serving(lambda _: Answer(200)) as connection:
        headers = {"Content-Length": length}
        assert ask(connection, "PUT", "/", headers=headers) == (413, b"the body is too large\n")


def test_an_address_in_use_is_one_clear_error():
    refused = pytest.raises(EnvironmentFault, match=f"cannot serve a test on {LOOPBACK}")
    with serving(lambda _: Answer(200)) as connection, refused:
        HttpServer("a test", (LOOPBACK, connection.port), lambda _: Answer(200))
