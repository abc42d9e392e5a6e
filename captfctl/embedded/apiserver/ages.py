"""Durations and times as kubectl writes them."""

from datetime import datetime

from captfctl.model.durations import human_duration
from captfctl.model.meta import parse_time

UNKNOWN = "<unknown>"


def age(text: str | None, now: datetime) -> str:
    """How long ago the RFC 3339 time was; `<unknown>` when there is none."""
    moment = parse_time(text) if text else None
    return human_duration(now - moment) if moment else UNKNOWN
