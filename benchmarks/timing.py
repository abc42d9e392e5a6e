"""Timing and statistics. All times are in seconds."""

import statistics
import time
from collections.abc import Callable, Sequence

Clock = Callable[[], float]


def timed(action: Callable[[], object], clock: Clock = time.perf_counter) -> float:
    start = clock()
    action()
    return clock() - start


def best(action: Callable[[], object], rounds: int) -> float:
    """The shortest of several runs: what it takes when nothing else disturbs."""
    return min(timed(action) for _ in range(rounds))


def alternately(
    actions: Sequence[Callable[[], object]], rounds: int, clock: Clock = time.perf_counter
) -> list[list[float]]:
    """The times of each action, run in turns: what disturbs one disturbs the others too."""
    times: list[list[float]] = [[] for _ in actions]
    for _ in range(rounds):
        for taken, action in zip(times, actions, strict=True):
            taken.append(timed(action, clock))
    return times


def median_of_each(action: Callable[[int], object], count: int) -> float:
    """The median time of one call, for calls with 0 to `count` - 1."""
    times = []
    for number in range(count):
        start = time.perf_counter()
        action(number)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def percentile(times: Sequence[float], share: float) -> float:
    """The smallest of `times` that at least `share` of them do not exceed."""
    ordered = sorted(times)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]
