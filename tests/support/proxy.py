"""A TCP proxy that breaks connections the way networks and servers do.

Between a client and a server:

    with FaultProxy("127.0.0.1", port) as proxy:
        ... talk to proxy.port ...
        proxy.cut()              # every open connection is reset
        proxy.reset_answers(1)   # the next request reaches the server, its answer never comes back
        proxy.delay_answers(2.0) # answers come two seconds late
        proxy.hang()             # open and new connections stay open and nothing passes
        proxy.strand()           # open connections lead nowhere from now on, new ones do
        proxy.refuse()           # new connections are reset at once
        proxy.leave()            # nothing listens there any more, as when the server is not running
        proxy.heal()             # everything passes again, also what was held back
"""

import contextlib
import select
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Iterator

_CHUNK = 65536
_RESET = struct.pack("ii", 1, 0)


class FaultProxy:
    """Forwards connections to one server; every method takes effect at once, from any thread."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.connections = 0
        """How many connections clients have opened so far."""
        self._lock = threading.Lock()
        self._pairs: list[tuple[socket.socket, socket.socket, list[threading.Thread]]] = []
        self._open = threading.Event()
        self._open.set()
        self._delay = 0.0
        self._resets = 0
        self._stranded: set[socket.socket] = set()
        self._refusing = False
        self._closed = threading.Event()

    def __enter__(self) -> "FaultProxy":
        self._listen()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        self._open.set()
        self._close_listener()
        self.cut()

    def _listen(self) -> None:
        threading.Thread(target=self._accept, name="proxy", daemon=True).start()

    def _close_listener(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def cut(self) -> None:
        """Reset every open connection; the other sides know it when this returns."""
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for client, server, pumps in pairs:
            _reset(client)
            _reset(server)
            if self._open.is_set():
                # A socket is really closed when no thread reads from it any more.
                for pump in pumps:
                    pump.join(self._delay + 1)

    def reset_answers(self, count: int) -> None:
        """Reset the client's connection when the first byte of an answer arrives, `count` times."""
        with self._lock:
            self._resets = count

    def delay_answers(self, seconds: float) -> None:
        """Every piece of an answer comes `seconds` late; the next one need not wait for it."""
        self._delay = seconds

    def hang(self) -> None:
        """Let nothing pass, and keep every connection."""
        self._open.clear()

    def strand(self) -> None:
        """Let nothing pass on the open connections, and keep them: as a network that forgot them
        does. Nothing heals them."""
        with self._lock:
            self._stranded.update(end for pair in self._pairs for end in pair[:2])

    def refuse(self) -> None:
        """Reset new connections."""
        self._refusing = True

    def leave(self) -> None:
        """End every connection, and let nothing listen any more."""
        self._close_listener()
        self.cut()

    def heal(self) -> None:
        """Let everything pass again."""
        if self._listener.fileno() < 0:
            self._listener = socket.create_server(("127.0.0.1", self.port))
            self._listen()
        with self._lock:
            self._resets = 0
        self._delay = 0.0
        self._refusing = False
        self._open.set()

    @contextlib.contextmanager
    def cutting_every(self, seconds: float) -> Iterator[None]:
        """Reset every open connection again and again."""
        stop = threading.Event()

        def cut() -> None:
            while not stop.wait(seconds):
                self.cut()

        thread = threading.Thread(target=cut, name="proxy-cutter", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def _accept(self) -> None:
        listener = self._listener
        while not self._closed.is_set():
            try:
                client, _ = listener.accept()
            except OSError:
                return
            self.connections += 1
            if self._refusing:
                _reset(client)
                continue
            try:
                server = socket.create_connection(self._target, timeout=10)
            except OSError:
                _reset(client)
                continue
            server.settimeout(None)
            pumps = [
                threading.Thread(target=self._pump, args=ends, name="proxy", daemon=True)
                for ends in ((client, server, False), (server, client, True))
            ]
            with self._lock:
                self._pairs.append((client, server, pumps))
                for pump in pumps:
                    pump.start()

    def _pump(self, source: socket.socket, sink: socket.socket, answers: bool) -> None:
        with contextlib.suppress(OSError, ValueError):  # what a closed socket gives
            late: deque[tuple[float, bytes]] = deque()
            while data := self._received(source, sink, late):
                if answers and self._takes_reset():
                    _reset(sink)
                    _reset(source)
                    return
                due = time.monotonic() + (self._delay if answers else 0.0)
                late.append((due, data))
                self._deliver(sink, late)
            while late:
                self._closed.wait(max(0.0, late[0][0] - time.monotonic()))
                self._deliver(sink, late)
            self._open.wait()
            if sink not in self._stranded:
                sink.shutdown(socket.SHUT_WR)

    def _received(
        self, source: socket.socket, sink: socket.socket, late: deque[tuple[float, bytes]]
    ) -> bytes:
        """The next piece; what is due meanwhile is delivered."""
        while late:
            poll = select.poll()
            poll.register(source, select.POLLIN)
            if poll.poll(max(0.0, late[0][0] - time.monotonic()) * 1000):
                break
            self._deliver(sink, late)
        return source.recv(_CHUNK)

    def _deliver(self, sink: socket.socket, late: deque[tuple[float, bytes]]) -> None:
        while late and (late[0][0] <= time.monotonic() or self._closed.is_set()):
            self._open.wait()
            data = late.popleft()[1]
            if sink not in self._stranded:
                sink.sendall(data)

    def _takes_reset(self) -> bool:
        with self._lock:
            if self._resets == 0:
                return False
            self._resets -= 1
            return True


def _reset(end: socket.socket) -> None:
    """Close so that the other side sees a reset, also in a thread that reads from it."""
    with contextlib.suppress(OSError):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RD)
    end.close()
