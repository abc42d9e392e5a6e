"""Growing pauses: the one rule by which waits between attempts get longer."""

import random
from datetime import timedelta
from typing import TypeVar

T = TypeVar("T", float, timedelta)

_ENOUGH = 30
"""Doublings after which every pause is beyond its longest; a count of thousands must not make a
number of thousands of digits."""


def doubled(first: T, times: int, longest: T) -> T:
    """`first` after so many doublings, at most `longest`."""
    return min(first * (1 << min(times, _ENOUGH)), longest)


class Backoff:
    """Pauses from `base` to `maximum` seconds, each a random part of what doubling gives: half to
    whole.

    The jitter keeps the watches of one process, and of several, from coming back all at once.
    """

    def __init__(self, rng: random.Random, *, base: float, maximum: float) -> None:
        self._rng = rng
        self._base = base
        self._maximum = maximum
        self._failures = 0

    def next(self) -> float:
        """The pause after one more failure, in seconds."""
        whole = doubled(self._base, self._failures, self._maximum)
        self._failures += 1
        return whole * self._rng.uniform(0.5, 1.0)

    def reset(self) -> None:
        """The next failure is the first again."""
        self._failures = 0
