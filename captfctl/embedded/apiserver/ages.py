"""Durations and times as kubectl writes them."""

from datetime import datetime, timedelta

from captfctl.model.meta import parse_time

UNKNOWN = "<unknown>"


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


def age(text: str | None, now: datetime) -> str:
    """How long ago the RFC 3339 time was; `<unknown>` when there is none."""
    moment = parse_time(text) if text else None
    return human_duration(now - moment) if moment else UNKNOWN
