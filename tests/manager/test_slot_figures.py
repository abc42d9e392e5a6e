"""The figures of tests/tools/slots.py."""

import pytest

from tests.tools.slots import Span, idle_part, most_at_once, pauses


def spans(*times: tuple[float, float]) -> list[Span]:
    return [Span("apply", "c", begun, ended) for begun, ended in times]


def test_jobs_that_follow_each_other_are_not_there_at_once():
    assert most_at_once(spans((0, 2), (2, 4), (4, 6))) == 1
    assert most_at_once(spans((0, 2), (1, 4), (3, 6))) == 2


def test_a_slot_is_idle_while_something_waits_for_it():
    back_to_back = spans((0, 2), (0, 2), (2, 4), (2, 4))
    assert idle_part(back_to_back, 2) == 0
    assert idle_part(spans((0, 2), (3, 5)), 1) == pytest.approx(1 / 5)
    assert idle_part(spans((0, 2), (0, 4)), 2) == 0, "nothing waits at the end"


def test_a_pause_is_from_an_end_to_what_took_the_slot():
    assert pauses(spans((0, 2), (0, 3), (2.5, 4), (3.25, 5)), 2) == [0.5, 0.25]
