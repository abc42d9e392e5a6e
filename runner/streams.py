"""Where a step's output goes: the log, memory, a tail; redacted on the way
(runner.md: Running a step)."""

from collections import deque
from collections.abc import Iterator

from runner.redact import Redactor
from runner.sinks import Sink
from runner.text import first_crash

TAIL_BYTES = 65536
_FOREVER = float("inf")


class Logged:
    """Copies a stream to a sink as it arrives, secrets replaced (runner.md: Redaction)."""

    def __init__(self, redactor: Redactor, sink: Sink) -> None:
        self._stream = redactor.stream()
        self._sink = sink

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        self._sink.write(self._stream.feed(data))

    def close(self) -> None:
        """The stream has ended."""
        self._sink.write(self._stream.flush())

    def due(self) -> float:
        """When a possible beginning of a secret has been held back long enough."""
        return self._stream.due()

    def tick(self) -> None:
        """Let go of what was held back."""
        self._sink.write(self._stream.flush())


class Captured:
    """Keeps a stream in memory, and copies it to the log when `logged` is given."""

    def __init__(self, logged: Logged | None = None) -> None:
        self._pieces: deque[bytes] = deque()
        self._logged = logged

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        self._pieces.append(data)
        if self._logged is not None:
            self._logged.feed(data)

    def close(self) -> None:
        """The stream has ended."""
        if self._logged is not None:
            self._logged.close()

    def due(self) -> float:
        """As the log's copy."""
        return self._logged.due() if self._logged is not None else _FOREVER

    def tick(self) -> None:
        """As the log's copy."""
        if self._logged is not None:
            self._logged.tick()

    def take(self) -> Iterator[bytes]:
        """Everything captured, piece by piece; what was taken is kept no longer."""
        while self._pieces:
            yield self._pieces.popleft()


class Tail:
    """Copies a stream to the log and keeps its last 64 KiB, unredacted, for the summary.

    The line that a crash begins with is kept, too: the stacks that follow may be far longer.
    """

    def __init__(self, logged: Logged) -> None:
        self.crash = b""
        self._logged = logged
        self._kept = bytearray()
        self._searched = 0

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        self._kept += data
        self._look_for_crash(self._kept.rfind(b"\n") + 1)
        if len(self._kept) > 2 * TAIL_BYTES:
            gone = len(self._kept) - TAIL_BYTES
            del self._kept[:gone]
            self._searched = max(self._searched - gone, 0)
        self._logged.feed(data)

    def _look_for_crash(self, end: int) -> None:
        """In the lines up to `end` that were not looked through before."""
        if not self.crash and end > self._searched:
            self.crash = first_crash(bytes(memoryview(self._kept)[self._searched : end]))
            self._searched = end

    def close(self) -> None:
        """The stream has ended."""
        self._look_for_crash(len(self._kept))
        self._logged.close()

    def due(self) -> float:
        """As the log's copy."""
        return self._logged.due()

    def tick(self) -> None:
        """As the log's copy."""
        self._logged.tick()

    def last(self) -> bytes:
        """The last 64 KiB."""
        return bytes(self._kept[-TAIL_BYTES:])


class Discarded:
    """Drops a stream."""

    def feed(self, data: bytes) -> None:
        """Drop the bytes."""

    def close(self) -> None:
        """Nothing to do."""

    def due(self) -> float:
        """Never."""
        return _FOREVER

    def tick(self) -> None:
        """Nothing to do."""
