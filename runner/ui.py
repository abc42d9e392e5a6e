"""The runtime's JSON messages, rendered back into text for the log
(runner.md: Rendering JSON messages).

Rendering leaves out what must not be in a log (raw output values) and keeps what the result needs:
the error diagnostics, the resources that failed, and the counts of the closing line.
"""

import json
import re

from runner import wire
from runner.diagnostics import Diagnostic, member, text_of
from runner.redact import Redactor
from runner.sinks import Sink
from runner.text import Lines, cut, first_crash, first_line, without_ansi

LONGEST_LINE = 1 << 20
_LONGEST_COUNTS_LINE = 512
_LONGEST_FAILING = 512
_MOST_FAILING = 10
_OMITTED = b"(an output line of more than 1 MiB was left out)\n"
_APPLIED = (
    rb"(?a:Apply complete! Resources: (?:(\d{1,18}) imported, )?"
    rb"(\d{1,18}) added, (\d{1,18}) changed, (\d{1,18}) destroyed)"
)
_DESTROYED = rb"(?a:Destroy complete! Resources: (\d{1,18}) destroyed)"
# Where no file could be written, the runtime prints the state: it is not shown, but kept.
_DUMP = b'{"@level":"info","@message":"Emergency state dump"'
_CONTEXT = r'(resource|data) "([^"]*)" "([^"]*)"'


class CountScanner:
    """Finds the closing line of an apply or a destroy in rendered output; the last one wins."""

    def __init__(self) -> None:
        self.counts: wire.Changes | None = None
        self._lines = Lines(_LONGEST_COUNTS_LINE)

    def feed(self, data: bytes) -> None:
        """Take the next bytes of output."""
        for line in self._lines.feed(data):
            self._scan(line)

    def close(self) -> None:
        """The output has ended; an unterminated last line counts."""
        self._scan(self._lines.rest())

    def _scan(self, line: bytes | None) -> None:
        if not line:
            return
        line = without_ansi(line).rstrip(b"\r")
        if applied := re.match(_APPLIED, line):
            imports, add, change, destroy = (int(group or 0) for group in applied.groups())
            self.counts = wire.Changes(add, change, destroy, imports)
        elif destroyed := re.match(_DESTROYED, line):
            self.counts = wire.Changes(destroy=int(destroyed[1]))


class JsonUi:
    """Takes the standard output of a step run with `-json`."""

    def __init__(self, redactor: Redactor, out: Sink, err: Sink) -> None:
        self.diagnostics: list[Diagnostic] = []
        self.crash = b""
        """The first line of a crash of the runtime, when it was written here."""
        self.state_dump = b""
        """The state, when the runtime printed it because it could not write it anywhere."""
        self._errored: list[str] = []
        self._redactor = redactor
        self._out = out
        self._err = err
        self._lines = Lines(LONGEST_LINE, whole=_DUMP)
        self._scanner = CountScanner()

    @property
    def counts(self) -> wire.Changes | None:
        """The change counts, when a closing line was seen."""
        return self._scanner.counts

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the runtime's output."""
        for line in self._lines.feed(data):
            self._take(line)

    def close(self) -> None:
        """The output has ended; an unterminated last line is rendered too."""
        last = self._lines.rest()
        if last and _message(last) is None:
            last = self._redactor.redact_cut(last)  # a crash may have cut off a secret
        self._take(last)
        self._scanner.close()

    def due(self) -> float:
        """Nothing is held back but unfinished lines."""
        return float("inf")

    def tick(self) -> None:
        """Nothing to let go of."""

    def failing_resources(self) -> tuple[str, ...]:
        """`<address>: <summary>` of the resources that failed, as far as they can be told."""
        waiting = list(self._errored)
        found: dict[str, None] = {}
        for diagnostic in self.diagnostics:
            address = _blamed(diagnostic, waiting)
            if address:
                entry = f"{address}: {first_line(diagnostic.summary)}"
                found[cut(self._redactor.redact_text(entry), _LONGEST_FAILING)] = None
        return tuple(found)[:_MOST_FAILING]

    def _take(self, line: bytes | None) -> None:
        if line is None:
            self._print(_OMITTED)
        elif line:
            self._render(line)

    def _render(self, line: bytes) -> None:
        message = _message(line)
        if message is None:
            self.crash = self.crash or first_crash(line)
            self._say(line)
            return
        if line.startswith(_DUMP):
            self.state_dump = _member_text(line, b'"state":')
        kind = text_of(message, "type")
        if kind == "diagnostic" and isinstance(message.get("diagnostic"), dict):
            self._diagnose(Diagnostic.of(message["diagnostic"]), text_of(message, "@message"))
            return
        if kind == "apply_errored":
            address = text_of(member(member(message, "hook"), "resource"), "addr")
            if address:
                self._errored.append(address)
        self._say(text_of(message, "@message").encode("utf-8", "replace"))

    def _diagnose(self, diagnostic: Diagnostic, message: str) -> None:
        if diagnostic.severity == "error":
            self.diagnostics.append(diagnostic)
            self._err.write(self._clean(diagnostic.rendered().encode("utf-8", "replace")) + b"\n")
        elif diagnostic.severity == "warning":
            self._say(diagnostic.rendered().encode("utf-8", "replace"))
        else:
            self._say(message.encode("utf-8", "replace"))

    def _say(self, text: bytes) -> None:
        if text:
            self._print(self._clean(text) + b"\n")

    def _clean(self, text: bytes) -> bytes:
        return without_ansi(self._redactor.redact(text))

    def _print(self, text: bytes) -> None:
        self._scanner.feed(text)
        self._out.write(text)


def _message(line: bytes) -> dict[str, object] | None:
    """A message of the runtime; None for a line that is something else."""
    if not line.lstrip().startswith(b"{"):
        return None
    try:
        message = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict) or not ("type" in message or "@message" in message):
        return None
    return message


def _member_text(line: bytes, name: bytes) -> bytes:
    """A member of a JSON object as it was written, the first of that name."""
    _, _, rest = line.decode("utf-8", "replace").partition(name.decode())
    try:
        _, end = json.JSONDecoder().raw_decode(rest)
    except (ValueError, RecursionError):
        return b""
    return rest[:end].encode("utf-8", "replace")


def _blamed(diagnostic: Diagnostic, waiting: list[str]) -> str:
    """The address a diagnostic is about; takes it from the resources that errored."""
    if diagnostic.address:
        if diagnostic.address in waiting:
            waiting.remove(diagnostic.address)
        return diagnostic.address
    if waiting:
        return waiting.pop(0)
    context = re.fullmatch(_CONTEXT, diagnostic.context)
    if context is None:
        return ""
    prefix = "data." if context[1] == "data" else ""
    return f"{prefix}{context[2]}.{context[3]}"
