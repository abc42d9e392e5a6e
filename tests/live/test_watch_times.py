"""The times of following a server fit together."""

from captfctl.cluster.live_requests import Limits
from captfctl.controller.informer import WATCH_SECONDS


def test_a_watch_of_which_nothing_is_heard_ends_before_its_server_counts_as_hung():
    assert max(WATCH_SECONDS) + 10 <= Limits().silence
