"""Durations as Go reads them, `90s`, `1h30m`, `1.5h`, `300ms`, and as kubectl writes them."""

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


def human_duration(span: timedelta) -> str:
    """A duration in at most two units, coarser the longer it is: `45s`, `3m20s`, `5h`, `12d`."""
    seconds = int(span.total_seconds())
    if seconds < -1:
        return "<invalid>"
    if seconds < 120:
        return f"{max(seconds, 0)}s"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if minutes < 10:
        return _two(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if days < 2 * 365:
        return f"{days}d"
    if days < 8 * 365:
        return _two(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"
