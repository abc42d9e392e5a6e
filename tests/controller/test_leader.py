"""Leader election: one attempt's rules, whole elections, and two electors that never both lead."""

import contextlib
import threading

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from captfctl.cluster.errors import AlreadyExists, Conflict, NotFound, Unavailable
from captfctl.controller import ElectionSettings, LeaderElector
from captfctl.errors import InputError
from captfctl.model.core import Lease, LeaseSpec
from captfctl.model.meta import ObjectMeta
from captfctl.model.resources import LEASES
from tests.support.clock import DEADLINE, FakeClock, eventually

NAME, NAMESPACE = "controller-leader-election-captf", "captf-system"


class LeaseServer:
    """One Lease, with versions. A test may cut requests off before or after they take effect."""

    def __init__(self):
        self.lease: Lease | None = None
        self.version = 0
        self.cut_before = self.cut_after = False
        self.hang: threading.Event | None = None

    def get(self, resource, name, namespace):
        self._before()
        if self.lease is None:
            raise NotFound(name)
        return LEASES.copy(self.lease)

    def create(self, resource, obj, namespace):
        self._before()
        if self.lease is not None:
            raise AlreadyExists(NAME)
        self._store(LEASES.copy(obj))
        return self._answer()

    def patch(self, resource, name, namespace, patch, *, resource_version):
        self._before()
        if self.lease is None:
            raise NotFound(name)
        if resource_version != self.lease.metadata.resource_version:
            raise Conflict("stale")
        names = {
            "holderIdentity": "holder_identity",
            "leaseDurationSeconds": "lease_duration_seconds",
            "acquireTime": "acquire_time",
            "renewTime": "renew_time",
            "leaseTransitions": "lease_transitions",
        }
        changed = LEASES.copy(self.lease)
        for key, value in patch["spec"].items():
            setattr(changed.spec, names[key], value)
        self._store(changed)
        return self._answer()

    def hold(self, holder, *, duration=15, renewed="2026-09-25T12:00:00.000000Z"):
        """Somebody else writes the Lease."""
        spec = LeaseSpec(
            holder_identity=holder, lease_duration_seconds=duration, renew_time=renewed
        )
        self._store(Lease(metadata=ObjectMeta(name=NAME, namespace=NAMESPACE), spec=spec))

    @property
    def holder(self):
        return self.lease.spec.holder_identity if self.lease else ""

    def _store(self, lease):
        self.version += 1
        lease.metadata.resource_version = str(self.version)
        self.lease = lease

    def _before(self):
        if self.hang is not None:
            self.hang.wait(DEADLINE)
        if self.cut_before:
            raise Unavailable("refused")

    def _answer(self):
        if self.cut_after:
            raise Unavailable("reset", outcome_unknown=True)
        return LEASES.copy(self.lease)


@pytest.fixture
def server():
    return LeaseServer()


@pytest.fixture
def clock():
    return FakeClock()


class Calls:
    def __init__(self):
        self.started, self.lost = threading.Event(), threading.Event()


def elector(server, clock, identity="me", calls=None, settings=None):
    calls = calls or Calls()
    return LeaderElector(
        server,
        NAME,
        NAMESPACE,
        identity,
        settings or ElectionSettings(),
        clock,
        on_started=calls.started.set,
        on_lost=calls.lost.set,
    )


@pytest.mark.parametrize(
    ("lease", "renew", "retry"), [(10, 10, 2), (15, 2, 2), (15, 10, 0), (5, 10, 2), (15, 10, -1)]
)
def test_times_that_do_not_fit_together_are_refused(lease, renew, retry):
    with pytest.raises(InputError) as refused:
        ElectionSettings(lease_duration=lease, renew_deadline=renew, retry_period=retry)
    assert f"{lease} s" in str(refused.value)


def test_the_first_attempt_creates_the_lease_and_leads(server, clock):
    one = elector(server, clock)
    assert one.attempt()
    assert one.leading
    spec = server.lease.spec
    assert (spec.holder_identity, spec.lease_duration_seconds) == ("me", 15)
    assert spec.acquire_time == spec.renew_time == "2026-09-25T12:00:00.000000Z"
    assert spec.lease_transitions in (0, None)


def test_a_renewal_keeps_the_acquisition_and_moves_the_renewal(server, clock):
    one = elector(server, clock)
    one.attempt()
    clock.advance(2)
    assert one.attempt()
    assert server.lease.spec.acquire_time == "2026-09-25T12:00:00.000000Z"
    assert server.lease.spec.renew_time == "2026-09-25T12:00:02.000000Z"


def test_a_foreign_lease_is_taken_only_when_it_was_seen_unchanged_for_its_duration(server, clock):
    server.hold("other")
    one = elector(server, clock)
    assert not one.attempt()
    clock.advance(14.9)
    assert not one.attempt()
    clock.advance(0.1)
    assert one.attempt()
    assert server.holder == "me"
    assert server.lease.spec.lease_transitions == 1


def test_every_change_seen_starts_the_wait_anew(server, clock):
    server.hold("other")
    one = elector(server, clock)
    for _ in range(10):
        assert not one.attempt()
        clock.advance(10)
        server.hold("other")
    assert not one.attempt()


@pytest.mark.parametrize("renewed", ["2026-09-25T11:59:30.000000Z", "2026-09-25T12:00:30.000000Z"])
def test_a_holder_whose_clock_is_thirty_seconds_off_is_judged_by_our_own(server, clock, renewed):
    server.hold("other", renewed=renewed)
    one = elector(server, clock)
    assert not one.attempt()
    clock.advance(14.9)
    assert not one.attempt()
    clock.advance(0.2)
    assert one.attempt()


def test_a_holder_that_promised_longer_is_waited_for(server, clock):
    server.hold("other", duration=60)
    one = elector(server, clock)
    one.attempt()
    clock.advance(59)
    assert not one.attempt()
    clock.advance(1)
    assert one.attempt()


def test_a_released_lease_is_taken_at_once(server, clock):
    server.hold("", duration=1)
    assert elector(server, clock).attempt()


def test_of_two_that_read_the_same_lease_one_takes_it(server, clock):
    server.hold("")
    first, second = elector(server, clock, "a"), elector(server, clock, "b")
    read = server.get

    def get_then_lose(resource, name, namespace):
        lease = read(resource, name, namespace)
        server.get = read
        assert second.attempt()
        return lease

    server.get = get_then_lose
    assert not first.attempt()
    assert server.holder == "b"


def test_leading_ends_at_the_deadline_even_when_nobody_looks(server, clock):
    one = elector(server, clock)
    one.attempt()
    clock.advance(9.9)
    assert one.leading
    clock.advance(0.1)
    assert not one.leading


def test_the_deadline_counts_from_the_start_of_the_renewal(server, clock):
    one = elector(server, clock)
    read = server.get
    one.attempt()

    def slow(resource, name, namespace):
        clock.advance(4)
        return read(resource, name, namespace)

    server.get = slow
    assert one.attempt()
    clock.advance(6)
    assert not one.leading


def test_a_renewal_that_comes_back_after_the_deadline_does_not_lead_again(server, clock):
    one = elector(server, clock)
    one.attempt()
    clock.advance(11)
    assert not one.attempt()
    assert not one.leading


def test_an_unanswered_write_that_took_place_is_found_by_the_next_attempt(server, clock):
    server.cut_after = True
    one = elector(server, clock)
    with pytest.raises(Unavailable):
        one.attempt()
    assert not one.leading
    server.cut_after = False
    clock.advance(2)
    assert one.attempt()


def test_a_release_empties_the_holder_for_others_to_take(server, clock):
    one, other = elector(server, clock, "one"), elector(server, clock, "other")
    one.attempt()
    assert not other.attempt()
    one.release()
    assert server.holder == ""
    assert server.lease.spec.lease_duration_seconds == 1
    assert other.attempt()
    assert server.lease.spec.lease_transitions == 1


def test_a_release_leaves_the_lease_of_another_alone(server, clock):
    server.hold("other")
    elector(server, clock).release()
    assert server.holder == "other"


# Whole elections, with threads.


@pytest.fixture
def running(server, clock):
    electors = []

    def run(identity):
        calls = Calls()
        one = elector(server, clock, identity, calls)
        one.start()
        electors.append(one)
        return one, calls

    yield run
    if server.hang is not None:
        server.hang.set()
    for one in electors:
        assert one.stop(DEADLINE), "an elector's threads did not end"


def test_a_stopped_leader_releases_and_the_standby_follows_at_its_next_try(running, server, clock):
    first, calls = running("first")
    assert calls.started.wait(DEADLINE)
    second, next_calls = running("second")
    eventually(lambda: second.holder == "first")
    before = clock.monotonic()
    assert first.stop(DEADLINE)
    assert not calls.lost.is_set()
    clock.run_until(next_calls.started.is_set)
    assert clock.monotonic() - before < 5
    assert second.leading


def test_a_leader_that_cannot_renew_loses_at_the_deadline(running, server, clock):
    one, calls = running("one")
    assert calls.started.wait(DEADLINE)
    server.cut_before = True
    clock.run_until(calls.lost.is_set)
    assert 9 <= clock.monotonic() <= 15
    assert not one.leading


def test_a_renewal_that_hangs_does_not_hide_the_loss(running, server, clock):
    one, calls = running("one")
    assert calls.started.wait(DEADLINE)
    server.hang = threading.Event()
    clock.run_until(calls.lost.is_set)
    assert not one.leading


def test_a_leader_that_slept_beyond_its_lease_finds_out_at_once(running, server, clock):
    """As after SIGSTOP: no code ran, only time."""
    one, calls = running("one")
    assert calls.started.wait(DEADLINE)
    clock.advance(60)
    assert not one.leading
    clock.run_until(calls.lost.is_set)


def test_a_leader_that_sees_another_holder_loses_at_once(running, server, clock):
    _, calls = running("one")
    assert calls.started.wait(DEADLINE)
    server.hold("other")
    before = clock.monotonic()
    clock.run_until(calls.lost.is_set)
    assert clock.monotonic() - before < 5
    assert server.holder == "other"


def test_an_election_survives_a_server_that_is_away_at_first(running, server, clock):
    server.cut_before = True
    one, calls = running("one")
    clock.run_until(lambda: clock.monotonic() > 20)
    assert not calls.lost.is_set()
    server.cut_before = False
    clock.run_until(calls.started.is_set)
    assert one.leading


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
