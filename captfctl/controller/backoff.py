"""Growing, jittered pauses between attempts to reach the API server."""

import random


class Backoff:
    """Doubles from `base` to `maximum` seconds; each pause is a random part of it, half to whole.

    The jitter keeps the watches of one process, and of several, from coming back all at once.
    """

    def __init__(self, rng: random.Random, *, base: float, maximum: float) -> None:
        self._rng = rng
        self._base = base
        self._maximum = maximum
        self._failures = 0

    def next(self) -> float:
        """The pause after one more failure, in seconds."""
        whole = min(self._base * 2.0 ** min(self._failures, 30), self._maximum)
        self._failures += 1
        return whole * self._rng.uniform(0.5, 1.0)

    def reset(self) -> None:
        """The next failure is the first again."""
        self._failures = 0
