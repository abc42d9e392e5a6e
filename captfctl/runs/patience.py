"""Going on with a start while the API server is away (runs.md: Starting a Job)."""

import logging
import threading
from collections.abc import Callable
from itertools import count
from typing import TypeVar

from captfctl.backoff import doubled
from captfctl.clock import Clock
from captfctl.cluster.errors import ApiError, Forbidden, TooManyRequests, Unavailable

T = TypeVar("T")

log = logging.getLogger(__name__)

_AT_ONCE = 2
"""Tries without a pause, since only an answer may be lost; later ones wait, since the server may be
away."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 2.0


class Patience:
    """For one start, from the creation of its Job on: the next pass sees a Job that runs, and
    can only wait until it is stuck for good (runs.md: Jobs that cannot start).

    After `seconds` nothing is begun again, but for a first time: one lost answer is no outage.
    """

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._until = clock.monotonic() + seconds
        self._was_away = False

    def note(self, error: ApiError) -> None:
        """The server was away just now."""
        self._was_away = True
        log.info("the start goes on when the server answers again: %s", error)

    def insist(self, action: Callable[[], T]) -> T:
        """What `action` returns, done again while the server is away. It may have taken place
        already when it is. Raises what it raises."""
        for tries in count():
            waits = tries - _AT_ONCE
            pause = doubled(_FIRST_PAUSE, waits, _LONGEST_PAUSE) if waits >= 0 else 0.0
            try:
                return action()
            except (Unavailable, TooManyRequests) as error:
                if tries and not self._lasts(pause):
                    raise
                self.note(error)
            except Forbidden:
                # A server that was just started refuses everything until it knows the roles.
                if not (self._was_away and self._lasts(pause)):
                    raise
            if pause:
                self._clock.wait(threading.Event(), pause)
        raise AssertionError("unreachable")

    def _lasts(self, pause: float) -> bool:
        return self._clock.monotonic() + pause <= self._until
