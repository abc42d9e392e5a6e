"""The runner's own log: structured lines as Kubernetes components write them (runner.md: The log).

Text: `I0102 15:04:05.123456 7 run.py:42] "Step started" step="init"`. JSON: one object per line
with `ts` (milliseconds), `caller`, `msg`, `v` (info only), `err` (errors only) and the keys given.
Lines go to standard error; with split streams info lines go to standard output. Everything
written passes the redaction set with `redact_with`.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Sequence

from runner.options import LogOptions
from runner.sinks import Sink

Field = str | int | float | bool | Sequence[str]


class Log:
    """Writes log lines to the runner's two output streams."""

    def __init__(self, options: LogOptions, out: Sink, err: Sink) -> None:
        self._options = options
        self._info_sink = out if options.split else err
        self._error_sink = err
        self._buffer = bytearray()
        self._flushed_at = time.monotonic()
        self._redact: Callable[[bytes], bytes] = bytes

    def redact_with(self, redact: Callable[[bytes], bytes]) -> None:
        """Pass every later line through `redact`."""
        self._redact = redact

    def info(self, message: str, *, level: int = 0, depth: int = 1, **fields: Field) -> None:
        """Write an info line when its verbosity level is enabled for the calling file."""
        caller = _caller(depth)
        if level > self._verbosity(caller):
            return
        line = self._line("I", message, "", fields, caller, level)
        if not self._options.buffer_size:
            self._info_sink.write(line)
            return
        self._buffer += line
        if len(self._buffer) > self._options.buffer_size or self.flush_due() <= 0:
            self.flush()

    def error(self, error: str, message: str, *, depth: int = 1, **fields: Field) -> None:
        """Write an error line: what failed, and why in `err`."""
        self.flush()
        self._error_sink.write(self._line("E", message, error, fields, _caller(depth), 0))

    def flush_due(self) -> float:
        """Seconds until buffered lines must be written; infinite when none are."""
        if not self._buffer:
            return float("inf")
        waited = time.monotonic() - self._flushed_at
        return self._options.flush_frequency / 1e9 - waited

    def flush(self) -> None:
        """Write what is buffered."""
        if self._buffer:
            self._info_sink.write(bytes(self._buffer))
            self._buffer.clear()
        self._flushed_at = time.monotonic()

    def _verbosity(self, caller: str) -> int:
        if not self._options.vmodule:
            return self._options.verbosity
        import fnmatch  # only with per-file levels

        file = caller.rpartition(":")[0].removesuffix(".py")
        for pattern, level in self._options.vmodule:
            if fnmatch.fnmatchcase(file, pattern):
                return level
        return self._options.verbosity

    def _line(
        self,
        severity: str,
        message: str,
        error: str,
        fields: dict[str, Field],
        caller: str,
        level: int,
    ) -> bytes:
        if self._options.format == "json":
            line = _json_line(severity, message, error, fields, caller, level)
        else:
            line = _text_line(severity, message, error, fields, caller)
        return self._redact(line.encode("utf-8", "replace") + b"\n")


def _caller(depth: int) -> str:
    frame = sys._getframe(depth + 1)
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"


def _text_line(
    severity: str, message: str, error: str, fields: dict[str, Field], caller: str
) -> str:
    now = time.time()
    stamp = time.strftime("%m%d %H:%M:%S", time.localtime(now))
    parts = [f"{severity}{stamp}.{int(now % 1 * 1e6):06d} {os.getpid():7d} {caller}]"]
    parts.append(_quoted(message))
    if error:
        parts.append(f"err={_quoted(error)}")
    parts += [f"{key}={_shown(value)}" for key, value in fields.items()]
    return " ".join(parts)


def _json_line(
    severity: str, message: str, error: str, fields: dict[str, Field], caller: str, level: int
) -> str:
    document: dict[str, object] = {
        "ts": round(time.time() * 1000, 3),
        "caller": f"runner/{caller}",
        "msg": message,
    }
    if severity == "I":
        document["v"] = level
    else:
        document["err"] = error
    document.update(fields)
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def _shown(value: Field) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, str):
        return _quoted(value)
    return json.dumps(list(value), ensure_ascii=False, separators=(",", ":"))


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
