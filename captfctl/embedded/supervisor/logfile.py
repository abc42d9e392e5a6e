"""A container's log in the format of the Container Runtime Interface.

Each line of the file: RFC 3339 time with nanoseconds, `stdout` or `stderr`, `F` (a full line) or
`P` (a part of one), the text. One older file is kept beside it.
"""

import os
import time
from pathlib import Path

_PART = 16 * 1024
"""Longer lines are written in parts, as container runtimes do."""

OLDER = ".1"


class LogFile:
    """Takes what a container writes. A full disk loses log lines, never the container."""

    def __init__(self, path: Path, limit: int) -> None:
        self._path = path
        self._limit = limit
        self._rest: dict[str, bytes] = {}
        self._size = 0
        self._handle = -1
        self.dropped = 0
        self._open()

    def feed(self, stream: str, data: bytes) -> None:
        """Log what `stream` (`stdout` or `stderr`) delivered."""
        *lines, rest = (self._rest.pop(stream, b"") + data).split(b"\n")
        stamp = _stamp()
        out = [piece for line in lines for piece in _pieces(stamp, stream, line)]
        while len(rest) > _PART:
            out.append(_entry(stamp, stream, b"P", rest[:_PART]))
            rest = rest[_PART:]
        if rest:
            self._rest[stream] = rest
        self._write(b"".join(out))

    def close(self) -> None:
        """Log what came without a final newline."""
        for stream, rest in self._rest.items():
            self._write(_entry(_stamp(), stream, b"F", rest))
        self._rest.clear()
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def _open(self) -> None:
        try:
            self._handle = os.open(
                self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600
            )
            self._size = os.fstat(self._handle).st_size
        except OSError:
            self._handle = -1

    def _write(self, data: bytes) -> None:
        if self._size and self._size + len(data) > self._limit:
            self._rotate()
        if self._handle < 0:
            self._open()
        while data:
            try:
                written = os.write(self._handle, data)
            except OSError:
                self.dropped += len(data)
                return
            self._size += written
            data = data[written:]

    def _rotate(self) -> None:
        try:
            self._path.replace(self._path.with_name(self._path.name + OLDER))
        except OSError:
            return
        os.close(self._handle)
        self._open()


def _stamp() -> bytes:
    seconds, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
    day = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{day}.{nanoseconds:09d}Z".encode()


def _entry(stamp: bytes, stream: str, tag: bytes, text: bytes) -> bytes:
    return b"%s %s %s %s\n" % (stamp, stream.encode(), tag, text)


def _pieces(stamp: bytes, stream: str, line: bytes) -> list[bytes]:
    pieces = []
    while len(line) > _PART:
        pieces.append(_entry(stamp, stream, b"P", line[:_PART]))
        line = line[_PART:]
    pieces.append(_entry(stamp, stream, b"F", line))
    return pieces
