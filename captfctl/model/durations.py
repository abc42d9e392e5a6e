"""Durations as Go reads them: `90s`, `1h30m`, `1.5h`, `300ms`."""

import re
from datetime import timedelta

_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600}


def parse_duration(text: str) -> timedelta:
    """Raises `ValueError` telling what is wrong with `text`."""
    sign, rest = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    if rest == "0":
        return timedelta()
    position, total = 0, 0.0
    while position < len(rest):
        part = _PART.match(rest, position)
        if part is None:
            break
        total += float(part[1]) * _SECONDS[part[2]]
        position = part.end()
    if not rest or position < len(rest):
        missing = " (a unit is missing)" if rest.replace(".", "").isdigit() else ""
        raise ValueError(f"{text!r} is not a duration{missing}")
    try:
        return timedelta(seconds=sign * total)
    except OverflowError:
        raise ValueError(f"{text!r} is too long") from None


def duration_text(duration: timedelta) -> str:
    """Whole seconds, as short as they can be written: `10m`, `1h30m`, `90s` becomes `1m30s`."""
    minutes, seconds = divmod(int(duration.total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "h"), (minutes, "m"), (seconds, "s"))
    return "".join(f"{count}{unit}" for count, unit in parts if count) or "0s"
