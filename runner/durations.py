"""Durations as Go writes them: `1h2m3.5s` (runner.md: Reading flags).

Durations are whole nanoseconds (int) everywhere in the runner's options, so that nothing is lost
between the flag and the argument handed to the runtime.
"""

import re

NANOSECOND = 1
MICROSECOND = 1000
MILLISECOND = 1_000_000
SECOND = 1_000_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE

_UNITS = {
    "ns": NANOSECOND,
    "us": MICROSECOND,
    "µs": MICROSECOND,  # U+00B5 MICRO SIGN
    "μs": MICROSECOND,  # U+03BC GREEK SMALL LETTER MU
    "ms": MILLISECOND,
    "s": SECOND,
    "m": MINUTE,
    "h": HOUR,
}
# Compiled when first used: a start that needs none of them is shorter.
_PART = r"(?a:(\d+)(?:\.(\d*))?|\.(\d+))(ns|us|µs|μs|ms|s|m|h)"
_LONGEST = (1 << 63) - 1  # what fits a Go time.Duration


def parse(text: str) -> int:
    """The duration that `text` names, in nanoseconds.

    Raises ValueError with the reason: no number, no unit (only `0` may stand bare), or a value
    beyond 292 years.
    """
    body = text.removeprefix("-") if text.startswith("-") else text.removeprefix("+")
    if body == "0":
        return 0
    if not body:
        raise ValueError("a duration is a number with a unit, such as 90s or 1m30s")
    total = 0
    position = 0
    pattern = re.compile(_PART)
    while position < len(body):
        part = pattern.match(body, position)
        if part is None:
            raise ValueError(
                f"expected a number with a unit (ns, us, ms, s, m, h) at {body[position:]!r}"
            )
        total += _nanoseconds(part)
        position = part.end()
    if total > _LONGEST:
        raise ValueError("longer than a duration can be (about 292 years)")
    return -total if text.startswith("-") else total


def _nanoseconds(part: re.Match[str]) -> int:
    unit = _UNITS[part[4]]
    whole = int(part[1][:25]) if part[1] else 0
    # Digits beyond the 18th cannot change a nanosecond, however long the text is.
    digits = (part[2] or part[3] or "")[:18]
    fraction = int(digits) * unit // 10 ** len(digits) if digits else 0
    return whole * unit + fraction


def whole_seconds(nanoseconds: int) -> int:
    """Whole seconds, cut toward zero (runner.md: Flags of run)."""
    seconds = abs(nanoseconds) // SECOND
    return -seconds if nanoseconds < 0 else seconds


def spoken(seconds: float) -> str:
    """A length of time for people, rounded to 100 ms: `0s`, `100ms`, `12.3s`, `1m5.3s`."""
    tenths = int(max(seconds, 0.0) * 10 + 0.5)
    if tenths == 0:
        return "0s"
    if tenths < 10:
        return f"{tenths * 100}ms"
    minutes, rest = divmod(tenths, 600)
    hours, minutes = divmod(minutes, 60)
    last = f"{rest // 10}.{rest % 10}s" if rest % 10 else f"{rest // 10}s"
    if hours:
        return f"{hours}h{minutes}m{last}"
    return f"{minutes}m{last}" if minutes else last
