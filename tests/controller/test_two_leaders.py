"""Two electors under any schedule of attempts, faults, pauses and crashes: never both lead."""

import contextlib

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from captfctl.cluster.errors import Unavailable
from captfctl.controller import ElectionSettings
from tests.controller.lease_server import LeaseServer, elector
from tests.support.clock import FakeClock

SECONDS = [1, 2, 5, 8, 9, 10, 11, 25]
"""Around the durations of the elections below."""


class TwoElectors(RuleBasedStateMachine):
    """Any schedule of attempts, crashes, faults and pauses: never two leaders."""

    @initialize(times=st.sampled_from([(10, 9), (15, 10), (3, 2)]))
    def start(self, times):
        lease, renew = times
        self.settings = ElectionSettings(lease_duration=lease, renew_deadline=renew, retry_period=1)
        self.server = LeaseServer()
        self.clock = FakeClock()
        self.electors = []
        for _ in range(2):
            self.join()

    def join(self):
        number = len(self.electors)
        self.electors.append(
            elector(self.server, self.clock, f"manager-{number}", settings=self.settings)
        )

    def attempt(self, which):
        with contextlib.suppress(Unavailable):
            self.electors[-1 - which].attempt()

    @rule(which=st.integers(0, 1))
    def try_once(self, which):
        self.attempt(which)

    @rule(which=st.integers(0, 1), after=st.booleans())
    def try_with_a_cut_connection(self, which, after):
        self.server.cut_after, self.server.cut_before = after, not after
        self.attempt(which)
        self.server.cut_after = self.server.cut_before = False

    @rule(
        which=st.integers(0, 1),
        seconds=st.sampled_from(SECONDS),
        others=st.integers(0, 3),
        where=st.sampled_from(["get", "patch", "create"]),
        answered_late=st.booleans(),
    )
    def try_while_a_request_is_slow(self, which, seconds, others, where, answered_late):
        """Time passes and the other one tries, before the request takes effect or after."""
        plain = getattr(self.server, where)

        def meanwhile():
            for _ in range(others):
                self.attempt(1 - which)
                self.never_two()
            self.clock.advance(seconds)

        def slow(*args, **kwargs):
            setattr(self.server, where, plain)
            if not answered_late:
                meanwhile()
            answer = plain(*args, **kwargs)
            if answered_late:
                meanwhile()
            return answer

        setattr(self.server, where, slow)
        try:
            self.attempt(which)
        finally:
            setattr(self.server, where, plain)

    @rule(seconds=st.sampled_from(SECONDS))
    def pass_time(self, seconds):
        self.clock.advance(seconds)

    @rule(which=st.integers(0, 1))
    def stop(self, which):
        """An orderly end: the leadership ends before the Lease is released; another one joins."""
        one = self.electors[-1 - which]
        leading = one.leading
        one.stop(0)
        if leading:
            one.release()
        self.join()

    @rule()
    def crash(self):
        """The older of the two is gone without a word; leadership it had ends with it."""
        self.electors[-2].stop(0)
        self.join()

    @invariant()
    def never_two(self):
        leaders = [one.identity for one in getattr(self, "electors", ()) if one.leading]
        assert len(leaders) <= 1, leaders


TestNeverTwoLeaders = TwoElectors.TestCase
TestNeverTwoLeaders.settings = settings(max_examples=200, stateful_step_count=20)
