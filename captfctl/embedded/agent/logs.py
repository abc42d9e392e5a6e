"""Serving the logs that supervisors keep (`kubectl logs`).

A log is read and handed on in blocks of many lines: one line at a time costs more than all else.
"""

import os
import threading
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import BinaryIO, NamedTuple

from captfctl.clock import Clock
from captfctl.embedded.agent.containers import Container, Phase
from captfctl.embedded.supervisor.logfile import OLDER
from captfctl.embedded.supervisor.records import LOG

_POLL = 0.1
_BLOCK = 512 * 1024

# What stands before the text has the same length in every row.
_STAMP = len("2026-01-01T00:00:00.000000000Z ")
_TEXT = _STAMP + len("stdout F ")
_PARTS = (b" stdout P ", b" stderr P ")


class LogOptions(NamedTuple):
    """As in a request for `pods/NAME/log`."""

    follow: bool = False
    tail_lines: int | None = None
    since_seconds: int | None = None
    timestamps: bool = False
    limit_bytes: int | None = None


class LogReader:
    """The log of one container, as bytes. `close` ends it from any thread."""

    def __init__(self, container: Container, options: LogOptions, clock: Clock) -> None:
        self._container = container
        self._options = options
        self._clock = clock
        self._closed = threading.Event()
        self._at = _Position()
        self._since = b""
        if options.since_seconds is not None:
            since = clock.now() - timedelta(seconds=options.since_seconds)
            self._since = _stamp(since)

    def __iter__(self) -> Iterator[bytes]:
        left = self._options.limit_bytes
        for piece in self._pieces():
            if left is None:
                yield piece
                continue
            yield piece[:left]
            left -= len(piece)
            if left <= 0:
                return

    def close(self) -> None:
        """End the iteration, from any thread."""
        self._closed.set()

    def _pieces(self) -> Iterator[bytes]:
        yield from self._written()
        if self._options.follow:
            yield from self._followed()

    def _written(self) -> Iterator[bytes]:
        """What is in the files now."""
        older = self._path.with_name(LOG + OLDER)
        starts = {older: 0, self._path: 0}
        if self._options.tail_lines is not None:
            starts = _tail([older, self._path], self._options.tail_lines)
        for path, offset in starts.items():
            self._at = _Position(offset)
            yield from self._read(path)

    def _read(self, path: Path) -> Iterator[bytes]:
        try:
            with path.open("rb") as file:
                self._at.enter(file)
                for block in _whole_lines(file, self._at):
                    if self._closed.is_set():
                        return
                    if text := self._text(block):
                        yield text
        except FileNotFoundError:
            return

    def _text(self, block: bytes) -> bytes:
        rows = block.split(b"\n")
        rows.pop()  # behind the last newline
        if self._since:
            rows = [row for row in rows if row >= self._since]
        if any(part in block for part in _PARTS):
            return b"".join([self._shown(row) for row in rows])
        if self._options.timestamps:
            return b"".join([b"%b%b\n" % (row[:_STAMP], row[_TEXT:]) for row in rows])
        rows.append(b"")
        return b"\n".join([row[_TEXT:] for row in rows])

    def _shown(self, row: bytes) -> bytes:
        """A part of a line (`P`) has no newline of its own."""
        end = b"" if row[_TEXT - 2 : _TEXT] == b"P " else b"\n"
        stamp = row[:_STAMP] if self._options.timestamps else b""
        return stamp + row[_TEXT:] + end

    def _followed(self) -> Iterator[bytes]:
        while not self._closed.is_set():
            # Looked at before the file: what ended has written everything.
            over = self._container.phase is not Phase.RUNNING
            if self._at.rotated(self._path):
                yield from self._read(self._path.with_name(LOG + OLDER))
                self._at = _Position()
            yield from self._read(self._path)
            if over:
                return
            self._clock.wait(self._closed, _POLL)

    @property
    def _path(self) -> Path:
        return self._container.directory / LOG


class _Position:
    """How far a log file has been read, and which file that was."""

    def __init__(self, offset: int = 0) -> None:
        self.inode = 0
        self.offset = offset

    def enter(self, file: BinaryIO) -> None:
        self.inode = os.fstat(file.fileno()).st_ino
        file.seek(self.offset)

    def rotated(self, path: Path) -> bool:
        """Whether `path` is another file than the one that was read."""
        try:
            return self.inode != 0 and path.stat().st_ino != self.inode
        except FileNotFoundError:
            return False


def _whole_lines(file: BinaryIO, at: _Position) -> Iterator[bytes]:
    """Blocks of lines that are complete; the rest is read when it is."""
    rest = b""
    while data := file.read(_BLOCK):
        end = data.rfind(b"\n") + 1
        if not end:
            rest += data
            continue
        block, rest = rest + data[:end], data[end:]
        at.offset += len(block)
        yield block


def _tail(paths: list[Path], lines: int) -> dict[Path, int]:
    """Where in each of the files, oldest first, its part of the last `lines` lines begins."""
    starts = {}
    for path in reversed(paths):
        starts[path], found = _start_of_tail(path, lines)
        lines -= found
    return dict(reversed(starts.items()))


def _start_of_tail(path: Path, lines: int) -> tuple[int, int]:
    """Where the last `lines` whole lines of the file begin, and how many there are."""
    try:
        with path.open("rb") as file:
            at = file.seek(0, os.SEEK_END)
            return _search_back(file, at, lines)
    except FileNotFoundError:
        return 0, 0


def _search_back(file: BinaryIO, at: int, lines: int) -> tuple[int, int]:
    found = 0  # newlines seen from the end: each ends a line
    while at > 0:
        size = min(_BLOCK, at)
        at -= size
        file.seek(at)
        data = file.read(size)
        count = data.count(b"\n")
        if found + count <= lines:
            found += count
            continue
        end = len(data)
        for _ in range(lines - found + 1):
            end = data.rfind(b"\n", 0, end)
        return at + end + 1, lines
    return 0, found


def _stamp(moment: datetime) -> bytes:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%f").encode()
