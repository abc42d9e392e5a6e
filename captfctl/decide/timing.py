"""Jitter, backoff and the growing delay of a pending object (decision.md: Retries and backoff)."""

from datetime import datetime, timedelta
from functools import lru_cache

from captfctl.backoff import doubled
from captfctl.decide import duration
from captfctl.decide.constants import PENDING_BASE, PENDING_CEILING, RETRY_BASE, RETRY_MAX
from captfctl.decide.duration import Nanoseconds

_FNV_OFFSET = 0xCBF29CE484222325
_FNV_PRIME = 0x100000001B3
_MASK = 2**64 - 1


def jitter(uid: str, interval: timedelta | Nanoseconds) -> Nanoseconds:
    """A share of the interval that is always the same for one uid, and less than a tenth of it.

    It keeps objects that were created together from checking together for ever. FNV-1a of the
    uid's bytes, 64 bits, modulo a tenth of the interval; zero without a uid.
    """
    whole = duration.of(interval) if isinstance(interval, timedelta) else interval
    spread = whole // 10
    if not uid or spread <= 0:
        return duration.ZERO
    return Nanoseconds(_fnv_1a(uid) % spread)


@lru_cache(maxsize=16_384)
def _fnv_1a(text: str) -> int:
    """Byte by byte: most of what a decision takes, and always the same for an object."""
    value = _FNV_OFFSET
    for byte in text.encode():
        value = ((value ^ byte) * _FNV_PRIME) & _MASK
    return value


def backoff(failures: int, failed_limit: int) -> timedelta:
    """How long to wait after this many failures in a row: 1, 2, 4, 8, then 10 minutes.

    From `failed_limit` failures on at once the longest: older failures are pruned, so that they
    could not be counted beyond it.
    """
    if failures <= 0:
        return duration.NO_TIME
    if 0 < failed_limit <= failures:
        return RETRY_MAX
    return doubled(RETRY_BASE, failures - 1, RETRY_MAX)


def remaining_backoff(
    failures: int, last_failure: datetime | None, failed_limit: int, now: datetime
) -> timedelta:
    """What is left of the backoff at `now`; zero when nothing failed or it is over."""
    if failures <= 0 or last_failure is None:
        return duration.NO_TIME
    return max(duration.NO_TIME, last_failure + backoff(failures, failed_limit) - now)


def pending_delay(refreshes: int) -> timedelta:
    """The time between two refreshes of an object whose infrastructure is still coming up.

    `refreshes` counts those that read "pending": 30 s, then doubled up to 5 minutes.
    """
    return doubled(PENDING_BASE, max(refreshes - 1, 0), PENDING_CEILING)
