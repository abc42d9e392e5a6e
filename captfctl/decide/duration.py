"""Durations in whole nanoseconds.

Jitter is defined in nanoseconds (decision.md: The schedule), which `timedelta` cannot hold;
floating point would lose them. Everything that adds or compares with jitter uses these integers.
"""

from datetime import timedelta
from typing import NewType

Nanoseconds = NewType("Nanoseconds", int)

ZERO = Nanoseconds(0)
NO_TIME = timedelta(0)

_SECOND = 1_000_000_000
_UNITS = ((3600 * _SECOND, "h"), (60 * _SECOND, "m"))


def seconds(count: int) -> Nanoseconds:
    """So many seconds."""
    return Nanoseconds(count * _SECOND)


def of(delta: timedelta) -> Nanoseconds:
    """Exact: a `timedelta` counts microseconds."""
    whole = delta.days * 86_400 + delta.seconds
    return Nanoseconds(whole * _SECOND + delta.microseconds * 1000)


def to_seconds(duration: Nanoseconds) -> float:
    """For queues and waits, which do not need the last digits."""
    return duration / _SECOND


def text(duration: Nanoseconds) -> str:
    """As kubectl and Go print it: `20m51.401775683s`, `1h0m0s`, `0s`."""
    sign, rest = ("-", -duration) if duration < 0 else ("", int(duration))
    parts: list[str] = []
    for size, unit in _UNITS:
        if rest >= size or parts:
            parts.append(f"{rest // size}{unit}")
            rest %= size
    whole, fraction = divmod(rest, _SECOND)
    tail = f".{fraction:09d}".rstrip("0") if fraction else ""
    return f"{sign}{''.join(parts)}{whole}{tail}s"
