"""How pauses between attempts grow."""

import random
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from captfctl.backoff import Backoff, doubled

SECOND = timedelta(seconds=1)


def test_a_pause_doubles_up_to_the_longest():
    assert [doubled(0.5, times, 3.0) for times in range(5)] == [0.5, 1.0, 2.0, 3.0, 3.0]
    assert [doubled(SECOND, times, 5 * SECOND) for times in (0, 2, 3)] == [
        SECOND,
        4 * SECOND,
        5 * SECOND,
    ]


@given(st.integers(min_value=0, max_value=10**12))
def test_a_pause_of_any_count_is_between_the_first_and_the_longest(times):
    assert 0.005 <= doubled(0.005, times, 1000.0) <= 1000.0
    assert SECOND <= doubled(SECOND, times, 600 * SECOND) <= 600 * SECOND


@given(st.integers())
def test_jitter_takes_up_to_half_of_a_pause_and_a_success_starts_over(seed):
    backoff = Backoff(random.Random(seed), base=1.0, maximum=4.0)
    for whole in (1.0, 2.0, 4.0, 4.0):
        assert whole / 2 <= backoff.next() <= whole
    backoff.reset()
    assert backoff.next() <= 1.0
