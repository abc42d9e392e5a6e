"""The program's own log, on standard error."""

import json
import logging
import sys
from datetime import UTC, datetime
from enum import StrEnum


class LogFormat(StrEnum):
    """The forms of a log line."""

    TEXT = "text"
    JSON = "json"


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "ts": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": record.getMessage(),
        }
        if record.exc_info:
            entry["stack"] = self.formatException(record.exc_info)
        return json.dumps(entry, ensure_ascii=False)


def set_up(verbosity: int, format_: LogFormat = LogFormat.TEXT) -> None:
    """0: warnings and errors; 1 to 3: what is done; 4 and more: every detail of ours."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        _Json()
        if format_ is LogFormat.JSON
        else logging.Formatter("%(asctime)s %(levelname).1s %(name)s  %(message)s")
    )
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    ours = logging.getLogger("captfctl")
    ours.setLevel(_level(verbosity))


def _level(verbosity: int) -> int:
    if verbosity >= 4:
        return logging.DEBUG
    return logging.INFO if verbosity >= 1 else logging.WARNING
