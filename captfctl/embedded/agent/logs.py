"""Serving the logs that supervisors keep (`kubectl logs`)."""

import os
import threading
from collections import deque
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import BinaryIO, NamedTuple

from captfctl.clock import Clock
from captfctl.embedded.agent.containers import Container, Phase
from captfctl.embedded.supervisor.logfile import OLDER
from captfctl.embedded.supervisor.records import LOG

_POLL = 0.1


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
        self._since = ""
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
        tail = self._options.tail_lines
        rows = self._written() if tail is None else iter(deque(self._written(), maxlen=tail))
        for row in rows:
            yield self._text(row)
        if self._options.follow:
            for row in self._followed():
                yield self._text(row)

    def _text(self, row: "_Row") -> bytes:
        return row.stamp + b" " + row.text if self._options.timestamps else row.text

    def _written(self) -> Iterator["_Row"]:
        """What is in the files now."""
        self._at = _Position()
        for path in (self._path.with_name(LOG + OLDER), self._path):
            self._at = _Position()
            yield from self._read(path)

    def _read(self, path: Path) -> Iterator["_Row"]:
        try:
            with path.open("rb") as file:
                self._at.enter(file)
                for line in _whole_lines(file, self._at):
                    row = _parse(line)
                    if row is not None and (not self._since or row.stamp.decode() >= self._since):
                        yield row
        except FileNotFoundError:
            return

    def _followed(self) -> Iterator["_Row"]:
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


class _Row(NamedTuple):
    stamp: bytes
    text: bytes


class _Position:
    """How far a log file has been read, and which file that was."""

    def __init__(self) -> None:
        self.inode = 0
        self.offset = 0

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
    """Lines that are complete; the rest is read when it is."""
    for line in file:
        if not line.endswith(b"\n"):
            return
        at.offset += len(line)
        yield line


def _parse(line: bytes) -> _Row | None:
    """A row of the file; a part of a line (`P`) has no newline of its own."""
    fields = line[:-1].split(b" ", 3)
    if len(fields) != 4:
        return None
    stamp, _, tag, text = fields
    return _Row(stamp, text if tag == b"P" else text + b"\n")


def _stamp(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%f")
