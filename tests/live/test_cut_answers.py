"""Answers that end too early are told as that, without what they held."""

import socket
import threading

import pytest

from captfctl.cluster.errors import Unavailable
from captfctl.model.resources import SECRETS

SECRET = b'{"kind":"Secret","metadata":{"name":"s"},"data":{"k":"c2VjcmV0'

CUT = {
    "with a length": b"Content-Length: 400\r\n\r\n" + SECRET,
    "in chunks": b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s" % (len(SECRET), SECRET),
    "between chunks": b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n" % (len(SECRET), SECRET),
    "with a wrong chunk": b"Transfer-Encoding: chunked\r\n\r\n" + SECRET,
}


@pytest.fixture
def server():
    """Answers every request with what the test puts into `answer`, then closes."""
    listener = socket.create_server(("127.0.0.1", 0))
    answer = [b""]

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 200 OK\r\n" + answer[0])

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}", answer
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join()


@pytest.mark.parametrize("how", CUT)
@pytest.mark.parametrize("watching", [False, True], ids=["read", "watch"])
def test_nothing_of_a_cut_answer_is_told(server, connect, how, watching):
    url, answer = server
    answer[0] = CUT[how]
    door = connect(url)
    with pytest.raises(Unavailable) as told:
        if watching:
            list(door.watch(SECRETS, "team-a"))
        else:
            door.get(SECRETS, "s", "team-a")
    text = f"{told.value} {told.value.what} {told.value.why}"
    assert "c2VjcmV0" not in text
    assert "Secret" not in text
    assert any(said in text for said in ("cut off", "closed connection", "chunk size")), text
