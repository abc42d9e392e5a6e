"""The top-level blocks of a file in HCL's native syntax: their types, labels and which attributes
they set.

Nothing is evaluated, and of expressions only so much is understood that it is certain where they
end: brackets, quoted templates, heredocs and comments.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

_TOKEN = re.compile(
    r"""
      (?P<blank>[^\S\n]+|\#[^\n]*|//[^\n]*|/\*.*?\*/)
    | (?P<line>\n)
    | (?P<name>[^\W\d][\w-]*)
    | (?P<heredoc><<-?(?P<marker>[^\W\d][\w-]*)[^\S\n]*\n)
    | (?P<quote>")
    | (?P<open>[{(\[])
    | (?P<close>[})\]])
    | (?P<equals>=(?![=>]))
    | (?P<other>[=!<>]=|=>|[\d.][\w.]*|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_QUOTED = re.compile(r'(?:[^"\\\n$%]|\\.|\$\$\{|%%\{|[$%](?!\{))*')
_HEREDOC_LINE = re.compile(r"(?:[^\n$%]|\$\$\{|%%\{|[$%](?!\{))*")
_ASSIGNED = ("line", "name", "equals")
_PAIRS = {"{": "}", "(": ")", "[": "]"}


class NotHcl(Exception):
    """The text is no file of blocks, as far as this module can tell."""


@dataclass(frozen=True, slots=True)
class Block:
    """One block. `attributes` are the names it sets itself, not those of blocks in it."""

    type: str
    labels: tuple[str, ...]
    attributes: frozenset[str]


class _Token(NamedTuple):
    kind: str
    text: str


def blocks(text: str) -> list[Block]:
    """The blocks of a file. Raises `NotHcl`."""
    tokens = _tokens(text.removeprefix("\ufeff").replace("\r\n", "\n"))
    found = []
    for token in tokens:
        if token.kind == "name":
            found.append(_block(token.text, tokens))
        elif token.kind != "line":
            raise NotHcl
    return found


def _block(kind: str, tokens: Iterator[_Token]) -> Block:
    labels = []
    for token in tokens:
        if token.kind in ("name", "quoted"):
            labels.append(token.text)
        elif token == _Token("open", "{"):
            return Block(kind, tuple(labels), frozenset(_attributes(tokens)))
        else:
            break
    raise NotHcl


def _attributes(tokens: Iterator[_Token]) -> Iterator[str]:
    """The names that the body sets whose opening bracket was read; reads up to its end."""
    closing = ["}"]
    before, last = _Token("line", ""), _Token("line", "")
    for token in tokens:
        if token.kind == "open":
            closing.append(_PAIRS[token.text])
        elif token.kind == "close":
            if token.text != closing.pop():
                raise NotHcl
            if not closing:
                return
        elif (before.kind, last.kind, token.kind) == _ASSIGNED and len(closing) == 1:
            yield last.text
        before, last = last, token
    raise NotHcl


def _tokens(text: str) -> Iterator[_Token]:
    """All tokens but blanks. A quoted template and a heredoc are one token each."""
    at = 0
    while at < len(text):
        token, at = _token(text, at)
        if token.kind != "blank":
            yield token


def _token(text: str, at: int) -> tuple[_Token, int]:
    match = _TOKEN.match(text, at)
    assert match is not None, "any character is a token"
    kind = match.lastgroup or ""
    if kind == "quote":
        end = _after_quoted(text, match.end())
        return _Token("quoted", text[match.end() : end - 1]), end
    if match["heredoc"] is not None:
        return _Token("heredoc", ""), _after_heredoc(text, match.end(), match["marker"])
    return _Token(kind, match[0]), match.end()


def _after_quoted(text: str, at: int) -> int:
    """The place after the quote that ends the template whose inside begins at `at`."""
    while True:
        match = _QUOTED.match(text, at)
        assert match is not None, "it may be empty"
        at = match.end()
        if text.startswith('"', at):
            return at + 1
        at = _after_sequence(text, at)


def _after_heredoc(text: str, at: int, marker: str) -> int:
    """The place of the line end after the marker that ends the heredoc whose first line begins at
    `at`."""
    ending = re.compile(rf"[^\S\n]*{re.escape(marker)}[^\S\n]*(?=\n|\Z)")
    while at < len(text):
        if (end := ending.match(text, at)) is not None:
            return end.end()
        match = _HEREDOC_LINE.match(text, at)
        assert match is not None, "it may be empty"
        at = match.end()
        while at < len(text) and text[at] != "\n":
            match = _HEREDOC_LINE.match(text, _after_sequence(text, at))
            assert match is not None, "it may be empty"
            at = match.end()
        at += 1
    raise NotHcl


def _after_sequence(text: str, at: int) -> int:
    """The place after the `${…}` or `%{…}` that begins at `at`."""
    if not text.startswith(("${", "%{"), at):
        raise NotHcl
    at += 2
    depth = 1
    while at < len(text):
        token, at = _token(text, at)
        depth += {"{": 1, "}": -1}.get(token.text, 0) if token.kind in ("open", "close") else 0
        if not depth:
            return at
    raise NotHcl
