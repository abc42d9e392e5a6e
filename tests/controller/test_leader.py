"""Leader election: the rules of one attempt, and whole elections."""

import threading

import pytest

from captfctl.cluster.errors import Unavailable
from captfctl.controller import ElectionSettings
from captfctl.errors import InputError
from tests.controller.lease_server import Calls, LeaseServer, elector
from tests.support.clock import DEADLINE, FakeClock, eventually


@pytest.fixture
def server():
    return LeaseServer()


@pytest.fixture
def clock():
    return FakeClock()


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
    clock.advance(1)  # half the retry period: the standby asks twice as often as a leader renews
    assert next_calls.started.wait(DEADLINE)
    assert clock.monotonic() - before == 1
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
