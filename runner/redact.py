"""Replacing secret values by `(sensitive)`, in whole texts and in streams
(runner.md: How secrets are found).

A secret is found by its *head*, its first bytes (at most 15). Most output holds no head at all;
that is seen at the speed of a substring search, or, when there are many secrets, by looking up
every aligned word of the output in the set of words that the heads are made of. Only output that
holds a head is looked at position by position.
"""

import re
import time
from collections.abc import Iterable
from typing import Literal, NamedTuple

from runner.disguises import disguises, disguises_of_line

REPLACEMENT = b"(sensitive)"
SHORTEST = 4  # shorter values are not redacted: they would blot out ordinary text
_HEAD = 15
_FEW = 16  # up to so many heads are searched for one by one
# Words of so many bytes, their type code, and the head's length that surely holds an aligned one.
_WORD_SIZES: tuple[tuple[int, Literal["Q", "I"], int], ...] = ((8, "Q", 15), (4, "I", 7))
_HOLD_SECONDS = 1.0
# A fragment this long at the end of a stream is taken for the cut-off secret it looks like.
_TELLING_FRAGMENT = 16


class SecretSet:
    """Values to hide, with the forms in which they may be printed."""

    def __init__(self) -> None:
        self._minimums: dict[bytes, int] = {}

    def add(self, value: bytes, shortest_line: int = SHORTEST) -> None:
        """Hide `value` and, when it spans lines, each of its lines of at least `shortest_line`
        bytes. A value added with several minimums keeps the largest.
        """
        self._minimums[value] = max(self._minimums.get(value, 0), shortest_line)

    def update(self, other: "SecretSet") -> None:
        """Add everything `other` holds."""
        for value, minimum in other._minimums.items():
            self.add(value, minimum)

    def forms(self) -> set[bytes]:
        """Every byte string to replace: values, their lines, and both in all their disguises."""
        plain = {value for value in self._minimums if len(value) >= SHORTEST}
        lines: dict[bytes, int] = {}
        for value, minimum in self._minimums.items():
            if b"\n" in value or b"\r" in value:
                for line in re.split(rb"[\r\n]+", value):
                    stripped = line.strip()
                    lines[stripped] = max(lines.get(stripped, 0), minimum)
        long = {line for line, minimum in lines.items() if len(line) >= max(minimum, SHORTEST)}
        found = set().union(*map(disguises, plain), *map(disguises_of_line, long - plain))
        return {form for form in found if len(form) >= SHORTEST}


_Code = Literal["Q", "I"]


class _Words(NamedTuple):
    """Aligned words, one of which is in every occurrence of the heads they were made from."""

    size: int
    code: _Code
    values: frozenset[int]


class Redactor:
    """Replaces secrets; the longest one at the leftmost position wins."""

    def __init__(self, secrets: SecretSet | None = None) -> None:
        forms = secrets.forms() if secrets is not None else set()
        self.by_start: dict[bytes, list[bytes]] = {}
        for form in sorted(forms, key=len, reverse=True):
            self.by_start.setdefault(form[:SHORTEST], []).append(form)
        self._heads = sorted({form[:_HEAD] for form in forms})
        self.empty = not forms
        self.fragments = {head[:n] for head in self._heads for n in range(1, len(head))}
        self._searched = self._heads
        self._words: list[_Words] = []
        for size, code, enough in _WORD_SIZES:
            long = [head for head in self._searched if len(head) >= enough]
            if len(long) > _FEW:
                self._words.append(_Words(size, code, frozenset(_words(long, size, code))))
                self._searched = [head for head in self._searched if len(head) < enough]
        self._starts: re.Pattern[bytes] | None = None

    def redact(self, text: bytes) -> bytes:
        """The whole text with every secret replaced."""
        if self.empty or not self.suspicious(text):
            return text
        done, rest = self.replace(text, final=True)
        return done + rest

    def redact_cut(self, text: bytes) -> bytes:
        """The same for a text that may have been cut off at its end, perhaps inside a secret."""
        stream = self.stream()
        return stream.feed(text) + stream.flush()

    def redact_text(self, text: str) -> str:
        """The same for a string."""
        return self.redact(text.encode("utf-8", "replace")).decode("utf-8", "replace")

    def stream(self) -> "Stream":
        """A stream that redacts across the borders of its pieces."""
        return Stream(self)

    def suspicious(self, text: bytes) -> bool:
        """Whether `text` holds the whole head of a secret; may say so wrongly."""
        for words in self._words:
            whole = len(text) // words.size * words.size
            if not words.values.isdisjoint(memoryview(text)[:whole].cast(words.code)):
                return True
        return any(head in text for head in self._searched)

    def replace(self, text: bytes, *, final: bool) -> tuple[bytes, bytes]:
        """Replace secrets in `text`; return what is done and what may be a secret's beginning.

        `final` says that nothing follows: then nothing is held back.
        """
        if self._starts is None:
            self._starts = _any_of(self.by_start)
        done = []
        position = 0
        search_from = 0
        while (found := self._starts.search(text, search_from)) is not None:
            at = found.start()
            form = self._form_at(text, at, final)
            if form is None:
                search_from = at + 1
                continue
            done.append(text[position:at])
            if not form:
                return b"".join(done), text[at:]
            done.append(REPLACEMENT)
            position = search_from = at + len(form)
        tail = text[max(position, len(text) - SHORTEST + 1) :]
        held = 0 if final else self.held(tail)
        end = len(text) - held
        done.append(text[position:end])
        return b"".join(done), text[end:]

    def held(self, tail: bytes) -> int:
        """How many bytes at the end of `tail` begin a head."""
        for length in range(min(len(tail), _HEAD - 1), 0, -1):
            if tail[-length:] in self.fragments:
                return length
        return 0

    def _form_at(self, text: bytes, at: int, final: bool) -> bytes | None:
        """The secret at a position; b"" when one may be cut off there, None when there is none."""
        available = len(text) - at
        for form in self.by_start[text[at : at + SHORTEST]]:
            if len(form) <= available:
                if text.startswith(form, at):
                    return form
            elif not final and form.startswith(text[at:]):
                return b""
        return None


class Stream:
    """Redacts a stream piece by piece; memory is bounded by a piece and the longest secret."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = b""
        self._held_since = 0.0

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes; return those that can be passed on."""
        if self._redactor.empty:
            return data
        text = self._held + data if self._held else data
        if len(self._held) >= _HEAD or self._redactor.suspicious(text):
            done, rest = self._redactor.replace(text, final=False)
        else:
            held = self._redactor.held(text[-(_HEAD - 1) :])
            end = len(text) - held
            done, rest = text[:end], text[end:]
        if rest and (done or not self._held):
            self._held_since = time.monotonic()
        self._held = rest
        return done

    def due(self) -> float:
        """The monotonic time at which what is held back must be let go."""
        return self._held_since + _HOLD_SECONDS if self._held else float("inf")

    def flush(self) -> bytes:
        """Let go of what is held back, because time is up or the stream has ended.

        A long fragment is a secret whose rest was lost or is late; it is replaced, not shown.
        """
        held, self._held = self._held, b""
        if len(held) >= _TELLING_FRAGMENT:
            return REPLACEMENT
        return self._redactor.redact(held)


def _words(heads: Iterable[bytes], size: int, code: _Code) -> Iterable[int]:
    """The words at the first `size` offsets of every head, as the machine reads them."""
    for head in heads:
        for offset in range(size):
            yield memoryview(head[offset : offset + size]).cast(code)[0]


def _any_of(starts: Iterable[bytes]) -> re.Pattern[bytes]:
    """A pattern that finds any of the four-byte starts, built as a tree of shared beginnings."""
    return re.compile(_tree(sorted(starts)) or rb"(?!)", re.DOTALL)


def _tree(texts: list[bytes]) -> bytes:
    if len(texts) <= 1:
        return b"".join(map(re.escape, texts))
    branches: dict[bytes, list[bytes]] = {}
    for text in texts:
        branches.setdefault(text[:1], []).append(text[1:])
    parts = [re.escape(first) + _tree(rest) for first, rest in branches.items()]
    return parts[0] if len(parts) == 1 else b"(?:" + b"|".join(parts) + b")"
