"""A manager that has few Job slots, and one whose API server answers nothing, on a real control
plane."""

from tests.e2e import limits, silence
from tests.e2e.gated import Gate
from tests.support.binaries import CLUSTER_STORIES

pytestmark = CLUSTER_STORIES


def test_job_slots_are_handed_on_and_never_exceeded(site, tmp_path):
    limits.slots_are_handed_on_and_never_exceeded(site, Gate(site, tmp_path))


def test_a_server_that_answers_nothing_is_told_and_got_over(site):
    silence.server_answers_nothing(site, "silence")
