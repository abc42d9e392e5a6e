"""Durations as Go writes them."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from captfctl.model.durations import parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("1h30m", 5400), ("1.5h", 5400), ("300ms", 0.3), ("0", 0), ("-5m", -300)],
)
def test_durations_are_written_as_in_go(text, seconds):
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "10", "5 m", "1h-", "abc", "1d", "."])
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(ValueError, match="not a duration"):
        parse_duration(text)


@given(st.integers(0, 10**6), st.integers(0, 59), st.integers(0, 59))
def test_any_sum_of_units_is_its_length(hours, minutes, seconds):
    text = f"{hours}h{minutes}m{seconds}s"

    assert parse_duration(text) == timedelta(hours=hours, minutes=minutes, seconds=seconds)
