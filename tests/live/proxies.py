"""A proxy that leads everywhere to one port of this machine, and remembers what it was asked."""

import contextlib
import re
import socket
import threading
from socketserver import StreamRequestHandler, ThreadingTCPServer


class _Handler(StreamRequestHandler):
    def handle(self):
        first = self.rfile.peek(1)[:1]
        with contextlib.suppress(OSError, ValueError):
            self._socks() if first == b"\x05" else self._http()

    def _socks(self):
        methods = self.rfile.read(2)[1]
        offered = self.rfile.read(methods)
        credentials = None
        if 2 in offered:
            self.wfile.write(b"\x05\x02")
            self.rfile.read(1)
            name = self.rfile.read(self.rfile.read(1)[0])
            password = self.rfile.read(self.rfile.read(1)[0])
            credentials = f"{name.decode()}:{password.decode()}"
            self.wfile.write(b"\x01\x00")
        else:
            self.wfile.write(b"\x05\x00")
        _, _, _, kind = self.rfile.read(4)
        host = self.rfile.read(4 if kind == 1 else self.rfile.read(1)[0])
        port = int.from_bytes(self.rfile.read(2))
        self.server.owner.seen.append(f"socks {host.decode('latin-1')}:{port} {credentials}")
        self.wfile.write(b"\x05\x00\x00\x01\0\0\0\0\0\0")
        self._tunnel(b"")

    def _http(self):
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = self.rfile.readline()
            if not line:
                return
            head += line
        method, target, _ = head.decode("latin-1").split(" ", 2)
        found = re.search(r"(?im)^proxy-authorization: (.*?)\r$", head.decode("latin-1"))
        self.server.owner.seen.append(f"{method} {target} {found and found[1]}")
        if method == "CONNECT":
            self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
            self._tunnel(b"")
        else:
            path = "/" + target.split("/", 3)[3]
            head = head.replace(target.encode(), path.encode(), 1)
            # One request a connection, so that each is seen.
            self._tunnel(head.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))

    def _tunnel(self, begun):
        with socket.create_connection(("127.0.0.1", self.server.owner.target)) as onward:
            onward.sendall(begun)
            back = threading.Thread(target=_copy, args=(onward, self.connection), daemon=True)
            back.start()
            while data := self.rfile.read1():
                onward.sendall(data)
            onward.shutdown(socket.SHUT_WR)
            back.join()


def _copy(source, target):
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


class _Server(ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False


class RecordingProxy:
    """HTTP and SOCKS5 on one port. `seen`: what was asked for, and with which credentials."""

    def __init__(self, target):
        self.target = target
        self.seen = []
        self.forgotten = []
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.owner = self
        self.address = f"127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()

    def forget(self):
        """Start with an empty `seen`; what was in it is in `forgotten`."""
        self.forgotten, self.seen = self.seen, []
