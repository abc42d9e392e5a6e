"""Cutting and cleaning text that came from the runtime."""

import re
from collections.abc import Iterator, Sequence

_BOX = str.maketrans("╷│╵", "   ")
_LONGEST_WHOLE = 256 << 20
_ANSI = rb"\x1b\[[0-9;]*[A-Za-z]"


def cut(text: str, size: int) -> str:
    """The longest beginning of `text` that fits `size` bytes of UTF-8, whole characters only."""
    data = text.encode("utf-8", "replace")
    return data[:size].decode("utf-8", "ignore") if len(data) > size else text


def first_crash(data: bytes) -> bytes:
    """The first whole line that says that a program written in Go crashed; empty without one."""
    if b"panic: " not in data and b"fatal error: " not in data:
        return b""
    found = re.search(rb"^(?:panic|fatal error): [^\r\n]+(?=[\r\n]|$)", data, re.MULTILINE)
    return found[0] if found else b""


def without_ansi(data: bytes) -> bytes:
    """The bytes without colours and other terminal sequences."""
    return re.sub(_ANSI, b"", data) if b"\x1b" in data else data


def first_line(text: str) -> str:
    """Everything before the first line break."""
    return re.split(r"[\r\n]", text, maxsplit=1)[0]


def listed_within(head: str, items: Sequence[str], size: int) -> str:
    """`head` and the items, comma-separated; those that do not fit `size` bytes are counted.

    Items stay whole. The count reads ` and <K> more`.
    """
    everything = head + ", ".join(items)
    if _size(everything) <= size:
        return everything
    best = ""
    for shown in range(len(items)):
        text = head + ", ".join(items[:shown]) + f" and {len(items) - shown} more"
        if _size(text) > size:
            break
        best = text
    return best or cut(head, size)


def unwrapped(data: bytes) -> str:
    """What a runtime said, on one line: without colours, boxes and line breaks."""
    return " ".join(without_ansi(data).decode("utf-8", "replace").translate(_BOX).split())


class Lines:
    """Puts a stream together into lines; one longer than `longest` bytes is dropped, unless it
    begins with `whole`: then it may have 256 MiB."""

    def __init__(self, longest: int, whole: bytes = b"") -> None:
        self._longest = longest
        self._whole = whole
        self._line = bytearray()
        self._too_long = False

    def feed(self, data: bytes) -> Iterator[bytes | None]:
        """The lines that end in `data`, without their line break; None for one too long."""
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            self._extend(data[start:end])
            yield self.rest()
            start = end + 1
        self._extend(data[start:])

    def rest(self) -> bytes | None:
        """The unfinished line; empty when there is none."""
        line = None if self._too_long else bytes(self._line)
        self._line.clear()
        self._too_long = False
        return line

    def _extend(self, data: bytes) -> None:
        if len(self._line) + len(data) > self._allowed(data):
            self._too_long = True
        if self._too_long:
            self._line.clear()
        else:
            self._line += data

    def _allowed(self, data: bytes) -> int:
        if not self._whole:
            return self._longest
        begins = bytes(self._line[: len(self._whole)]) + data[: len(self._whole)]
        return _LONGEST_WHOLE if begins.startswith(self._whole) else self._longest


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
