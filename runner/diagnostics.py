"""The runtime's error messages, as JSON or as text, and the one line each is told in
(runner.md: The failure summary)."""

import json
import re
from collections.abc import Callable
from typing import NamedTuple

from runner import wire
from runner.text import cut, first_line

_BOX = r"[╷│╵] ?"
_SOURCE = r"  on (.+) line (\d+)(?:, in (.+?))?(?::| \(source code not available\))"
_ADDRESS = r"  with (.+),"
_CODE = r" {0,4}\d+: (.*)"
_CONSTRAINT = r'required_version"?\s*[=:]\s*"([^"]*)"'
_VERSION = r"Unsupported \w+ (?:Core )?version"
_PARENTS = r"^(?:[.][.]/)+"
_WIDTH = 77  # of a runtime's text
_LONGEST_DETAIL = 240


class Diagnostic(NamedTuple):
    """One error or warning of the runtime; what is not known is empty.

    `context` is the source construct it was found in, such as `resource "t" "n"`; `file` and
    `line` say where it begins, and `code` is what stands there.
    """

    severity: str
    summary: str
    detail: str = ""
    address: str = ""
    context: str = ""
    file: str = ""
    line: int = 0
    code: str = ""

    @classmethod
    def of(cls, value: object) -> "Diagnostic":
        """Read a diagnostic object; members of a wrong type count as empty."""
        snippet, place = member(value, "snippet"), member(value, "range")
        line = member(member(place, "start"), "line")
        return cls(
            severity=text_of(value, "severity"),
            summary=text_of(value, "summary"),
            detail=text_of(value, "detail"),
            address=text_of(value, "address"),
            context=text_of(snippet, "context"),
            file=text_of(place, "filename"),
            line=line if isinstance(line, int) else 0,
            code=text_of(snippet, "code"),
        )

    def redacted(self, redact: Callable[[str], str]) -> "Diagnostic":
        """The same with secrets replaced, so that no part of one is left when a text is cut."""
        return self._replace(
            summary=redact(self.summary),
            detail=redact(self.detail),
            address=redact(self.address),
            file=redact(self.file),
            code=redact(self.code),
        )

    def headline(self) -> str:
        """One line: what is wrong, where, and the beginning of why."""
        said = f"Error: {first_line(self.summary)}"
        wanted = re.search(_CONSTRAINT, self.code)
        if wanted and re.search(_VERSION, self.summary):
            said += f", the module wants {wanted[1]}"
        if self.address:
            said += f" in {self.address}"
        if self.file == wire.MAIN_FILE:
            said += f" (the run's {self.file}:{self.line})"
        elif self.file:
            # Paths are relative to the run's root, which lies beside the module.
            said += f" ({re.sub(_PARENTS, '', self.file)}:{self.line})"
        reason = _reason(self.detail)
        return " ".join((f"{said}: {reason}" if reason else said).split())

    def rendered(self) -> str:
        """The whole diagnostic for the log, without a closing newline."""
        title = "Error" if self.severity == "error" else "Warning"
        text = f"{title}: {self.summary}"
        if self.address:
            text += f"\n\n  with {self.address}"
        if self.file:
            text += f"\n\n  on {self.file} line {self.line}"
            text += f", in {self.context}" if self.context else ""
        if self.detail:
            text += f"\n\n{self.detail}"
        return text


def of_validation(output: bytes) -> list[Diagnostic]:
    """The errors in the output of `validate -json`; none when it is no such thing."""
    try:
        document = json.loads(output.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return []
    listed = member(document, "diagnostics")
    if not isinstance(listed, list):
        return []
    found = [Diagnostic.of(item) for item in listed]
    return [diagnostic for diagnostic in found if diagnostic.severity == "error"]


def of_text(text: str) -> list[Diagnostic]:
    """The errors in what a runtime prints for people, without colours."""
    blocks: list[list[str]] = []
    inside = False
    for line in text.split("\n"):
        line = re.sub(_BOX, "", line, count=1).rstrip() if line[:1] in "╷│╵" else line.rstrip()
        if line.startswith("Error: "):
            blocks.append([line.removeprefix("Error: ")])
            inside = True
        elif line.startswith("Warning: "):
            inside = False
        elif inside:
            blocks[-1].append(line)
    return [_of_block(block) for block in blocks]


def _of_block(block: list[str]) -> Diagnostic:
    """One error: its summary, indented lines that say where, then the detail."""
    found = Diagnostic("error", block[0])
    for number, line in enumerate(block[1:], start=1):
        if place := re.match(_SOURCE, line):
            found = found._replace(file=place[1], line=int(place[2][:9]), context=place[3] or "")
        elif address := re.fullmatch(_ADDRESS, line):
            found = found._replace(address=address[1])
        elif code := re.fullmatch(_CODE, line):
            found = found._replace(code=f"{found.code}{code[1]}\n")
        elif line and not line.startswith(" "):
            return found._replace(detail=_unwrapped(block[number:]))
    return found


def _unwrapped(lines: list[str]) -> str:
    """The lines as they were before the runtime broke them to its width."""
    text = last = ""
    for line in lines:
        word = line.split(" ", 1)[0]
        broken = last and word and len(last) + 1 + len(word) > _WIDTH
        text += f" {line}" if broken else f"\n{line}"
        last = line
    return text.strip()


def _reason(detail: str) -> str:
    """The detail's first line, with the one it introduces; shortened when it is very long."""
    lines = [line.strip() for line in re.split(r"[\r\n]+", detail.strip())]
    said = " ".join(lines[:2]) if lines[0].endswith(":") else lines[0]
    short = cut(said, _LONGEST_DETAIL)
    return said if said == short else f"{short.rpartition(' ')[0] or short} …"


def member(value: object, name: str) -> object:
    """A member of a JSON object; None when it has none, or is no object."""
    return value.get(name) if isinstance(value, dict) else None


def text_of(value: object, name: str) -> str:
    """A member that is a text; empty for any other."""
    found = member(value, name)
    return found if isinstance(found, str) else ""
