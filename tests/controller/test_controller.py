"""Workers: passes, retries, requeues, and an orderly end."""

import logging
import threading

import pytest

from captfctl.cluster.errors import Conflict
from captfctl.controller import Controller, Result
from tests.support.clock import DEADLINE, FakeClock, eventually


@pytest.fixture
def clock():
    return FakeClock()


def controller(clock, reconcile, **options):
    return Controller("terraformcluster", reconcile, clock, **options)


def run(one: Controller, key) -> None:
    """One pass, without threads."""
    assert one.queue.try_get() == key
    one.work_one(key)


def test_a_result_with_a_time_brings_the_key_back_then(clock):
    one = controller(clock, lambda key: Result(30))
    one.queue.add("a")
    run(one, "a")
    clock.advance(29)
    assert one.queue.try_get() is None
    clock.advance(1)
    assert one.queue.try_get() == "a"
    one.stop(0)


def test_a_result_without_a_time_lets_the_key_rest(clock):
    one = controller(clock, lambda key: Result())
    one.queue.add("a")
    run(one, "a")
    assert one.queue.next_due() is None


def test_a_failed_pass_is_repeated_with_growing_delays_and_logged_with_its_key(clock, caplog):
    outcomes = [Conflict("stale"), ValueError("a mistake"), None]

    def reconcile(key):
        if error := outcomes.pop(0):
            raise error
        return Result()

    one = controller(clock, reconcile)
    one.queue.add(("team-a", "prod"))
    with caplog.at_level(logging.INFO):
        run(one, ("team-a", "prod"))
        assert one.queue.next_due() == pytest.approx(0.005)
        clock.advance(0.005)
        run(one, ("team-a", "prod"))
        assert one.queue.next_due() == pytest.approx(0.01)
    clock.advance(0.01)
    run(one, ("team-a", "prod"))
    assert one.queue.next_due() is None
    assert one.queue.failures(("team-a", "prod")) == 0
    one.stop(0)
    first, second = caplog.records
    assert "team-a/prod" in first.getMessage() and "stale" in first.getMessage()
    assert first.levelno == logging.INFO  # a lost race is nothing to worry about
    assert first.exc_info is None  # our own errors explain themselves
    assert second.levelno == logging.ERROR
    assert second.exc_info is not None


def test_several_workers_never_pass_one_key_at_the_same_time(clock):
    lock = threading.Lock()
    running: set[str] = set()
    clashes, passes = [], []

    def reconcile(key):
        with lock:
            if key in running:
                clashes.append(key)
            running.add(key)
        one.queue.add(key)  # a change while the pass runs
        with lock:
            running.discard(key)
            passes.append(key)
        return Result()

    one = controller(clock, reconcile, workers=4)
    for key in "abc":
        one.queue.add(key)
    one.start()
    eventually(lambda: len(passes) > 300)
    assert one.stop(DEADLINE)
    assert not clashes
    assert set(passes) == set("abc")


def test_a_stop_waits_for_the_pass_that_runs_and_starts_no_other(clock):
    entered, leave = threading.Event(), threading.Event()
    passes = []

    def reconcile(key):
        entered.set()
        assert leave.wait(DEADLINE)
        passes.append(key)
        return Result()

    one = controller(clock, reconcile)
    one.queue.add("a")
    one.queue.add("b")
    one.start()
    assert entered.wait(DEADLINE)
    stopped = []
    stopper = threading.Thread(target=lambda: stopped.append(one.stop(20)))
    stopper.start()
    leave.set()
    stopper.join(DEADLINE)
    assert stopped == [True]
    assert passes == ["a"]


def test_a_stop_gives_up_on_a_pass_that_does_not_end(clock):
    entered, leave = threading.Event(), threading.Event()

    def reconcile(key):
        entered.set()
        leave.wait(DEADLINE)
        return Result()

    one = controller(clock, reconcile)
    one.queue.add("a")
    one.start()
    assert entered.wait(DEADLINE)
    stopped = []
    stopper = threading.Thread(target=lambda: stopped.append(one.stop(20)))
    stopper.start()
    clock.run_until(lambda: bool(stopped), step=5)
    assert stopped == [False]
    leave.set()
    stopper.join(DEADLINE)


def test_a_controller_that_never_started_stops_at_once(clock):
    assert controller(clock, lambda key: Result()).stop(20)
