"""What a work queue promises, without threads wherever they are not the point."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from captfctl.clock import SystemClock
from captfctl.controller import ShutDown, WorkQueue
from tests.support.clock import FakeClock, eventually


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def queue(clock):
    queue = WorkQueue(clock)
    yield queue
    queue.shut_down()


def test_keys_come_out_in_order_of_arrival(queue):
    for key in ("b", "a", "c"):
        queue.add(key)
    assert [queue.try_get() for _ in range(4)] == ["b", "a", "c", None]


def test_a_queue_without_work_is_never_stalled(queue, clock):
    clock.advance(1000)
    assert queue.stalled_for() == 0
    queue.add("a")
    queue.done(queue.try_get())
    clock.advance(1000)
    assert queue.stalled_for() == 0


@pytest.mark.parametrize("where", ["waits for a worker", "is held by a worker"])
def test_a_queue_is_stalled_while_there_is_work_and_none_ends(queue, clock, where):
    clock.advance(1000)
    queue.add("a")
    if where == "is held by a worker":
        queue.try_get()
    clock.advance(70)
    queue.add("b")
    assert queue.stalled_for() == 70
    while (key := queue.try_get()) not in (None, "b"):
        queue.done(key)
    if where == "is held by a worker":
        queue.done("a")
    assert queue.stalled_for() == 0


def test_urgent_keys_come_before_others(queue):
    queue.add("a")
    queue.add("b", urgent=True)
    assert [queue.try_get(), queue.try_get()] == ["b", "a"]


def test_a_key_that_waits_and_becomes_urgent_moves_forward(queue):
    for key in ("a", "b"):
        queue.add(key)
    queue.add("b", urgent=True)
    assert [queue.try_get() for _ in range(3)] == ["b", "a", None]


def test_a_key_that_became_urgent_while_in_flight_comes_back_before_others(queue):
    queue.add("a")
    queue.try_get()
    queue.add("b")
    queue.add("a", urgent=True)
    queue.done("a")
    assert queue.try_get() == "a"
    queue.done("a")
    queue.add("a")
    assert queue.try_get() == "b", "it was urgent once, not for ever"


def test_many_urgent_keys_do_not_keep_the_others_waiting_for_ever(queue):
    queue.add("plain")
    for number in range(10):
        queue.add(f"urgent-{number}", urgent=True)
    assert "plain" in [queue.try_get() for _ in range(4)]


def test_a_key_added_twice_is_handed_out_once(queue):
    queue.add("a")
    queue.add("a")
    assert len(queue) == 1
    assert queue.try_get() == "a"
    assert queue.try_get() is None


def test_a_key_added_while_in_flight_comes_back_when_done_and_not_before(queue):
    queue.add("a")
    queue.try_get()
    queue.add("a")
    assert queue.try_get() is None
    queue.done("a")
    assert queue.try_get() == "a"


def test_a_key_that_is_done_and_was_not_added_again_stays_away(queue):
    queue.add("a")
    queue.done(queue.try_get())
    assert queue.try_get() is None


def test_a_delayed_key_comes_at_its_time(queue, clock):
    queue.add_after("a", 5)
    clock.advance(4.9)
    assert queue.try_get() is None
    clock.advance(0.1)
    assert queue.try_get() == "a"


def test_of_several_delays_the_earliest_end_counts(queue, clock):
    queue.add_after("a", 10)
    queue.add_after("a", 3)
    queue.add_after("a", 7)
    assert queue.next_due() == 3
    clock.advance(3)
    assert queue.try_get() == "a"
    queue.done("a")
    clock.advance(10)
    assert queue.try_get() is None


def test_no_delay_means_now(queue):
    queue.add_after("a", 0)
    queue.add_after("b", -1)
    assert [queue.try_get(), queue.try_get()] == ["a", "b"]


def test_failures_of_a_key_double_its_delay_up_to_the_limit(queue):
    delays = [queue.add_rate_limited("a") for _ in range(20)]
    assert delays[:4] == pytest.approx([0.005, 0.01, 0.02, 0.04])
    assert delays[-1] == 1000
    assert queue.failures("a") == 20
    assert queue.add_rate_limited("b") == pytest.approx(0.005)


def test_ten_thousand_failures_still_make_a_delay(queue):
    for _ in range(10_000):
        delay = queue.add_rate_limited("a")
    assert delay == 1000


def test_a_forgotten_key_starts_its_delays_anew(queue):
    queue.add_rate_limited("a")
    queue.add_rate_limited("a")
    queue.forget("a")
    assert queue.failures("a") == 0
    assert queue.add_rate_limited("a") == pytest.approx(0.005)


def test_a_worker_that_waits_is_woken_by_a_delayed_key(queue, clock):
    with ThreadPoolExecutor(1) as pool:
        got = pool.submit(queue.get)
        queue.add_after("a", 60)
        queue.add_after("b", 30)
        clock.run_until(got.done, step=10)
        assert got.result() == "b"


def test_shutting_down_ends_every_wait_and_drops_what_waits(queue):
    with ThreadPoolExecutor(3) as pool:
        waits = [pool.submit(queue.get) for _ in range(3)]
        queue.shut_down()
        for wait in waits:
            with pytest.raises(ShutDown):
                wait.result(10)
    queue.add("a")
    queue.add_after("b", 1)
    assert queue.try_get() is None
    assert len(queue) == 0


def test_a_key_in_flight_may_still_be_done_after_the_end(queue):
    queue.add("a")
    key = queue.try_get()
    queue.shut_down()
    queue.done(key)
    assert queue.try_get() is None


class Recorded:
    def __init__(self) -> None:
        self.depths, self.waits, self.works = [], [], []
        self.adds = self.retries = 0

    def depth(self, waiting):
        self.depths.append(waiting)

    def added(self):
        self.adds += 1

    def retried(self):
        self.retries += 1

    def waited(self, seconds):
        self.waits.append(seconds)

    def worked(self, seconds):
        self.works.append(seconds)


def test_the_queue_tells_depth_waits_and_work(clock):
    metrics = Recorded()
    queue = WorkQueue(clock, metrics=metrics)
    queue.add("a")
    queue.add("a")
    clock.advance(2)
    queue.try_get()
    clock.advance(3)
    queue.done("a")
    queue.add_rate_limited("a")
    queue.shut_down()
    assert metrics.adds == 1
    assert metrics.waits == [2]
    assert metrics.works == [3]
    assert metrics.retries == 1
    assert metrics.depths == [1, 0, 0]


class QueueMachine(RuleBasedStateMachine):
    """Against a model: what must be worked on, what is in flight, what is delayed."""

    keys = st.sampled_from("abcde")

    def __init__(self) -> None:
        super().__init__()
        self.clock = FakeClock()
        self.queue: WorkQueue[str] = WorkQueue(self.clock)
        self.wanted: set[str] = set()
        self.flying: set[str] = set()
        self.due: dict[str, float] = {}

    def teardown(self) -> None:
        assert self.left() == self.wanted | set(self.due)
        self.queue.shut_down()

    def arrive(self) -> None:
        now = self.clock.monotonic()
        for key in [key for key, due in self.due.items() if due <= now]:
            del self.due[key]
            self.wanted.add(key)

    @rule(key=keys, urgent=st.booleans())
    def add(self, key, urgent):
        self.queue.add(key, urgent=urgent)
        self.wanted.add(key)

    @rule(key=keys, seconds=st.integers(1, 9))
    def add_after(self, key, seconds):
        self.arrive()
        self.queue.add_after(key, seconds)
        due = self.clock.monotonic() + seconds
        self.due[key] = min(due, self.due.get(key, due))

    @rule(seconds=st.integers(1, 5))
    def advance(self, seconds):
        self.clock.advance(seconds)
        self.arrive()

    @rule()
    def take(self):
        self.arrive()
        key = self.queue.try_get()
        if key is None:
            assert self.wanted <= self.flying, "a key that waits was not handed out"
            return
        assert key not in self.flying, "a key is in flight twice"
        assert key in self.wanted, "a key was handed out that nobody asked for"
        self.wanted.remove(key)
        self.flying.add(key)

    @precondition(lambda self: self.flying)
    @rule(data=st.data())
    def done(self, data):
        key = data.draw(st.sampled_from(sorted(self.flying)))
        self.queue.done(key)
        self.flying.remove(key)

    def left(self) -> set[str]:
        """All keys that the queue still gives when everything is done and every delay over."""
        for key in sorted(self.flying):
            self.queue.done(key)
        self.clock.advance(100)
        left = set()
        while (key := self.queue.try_get()) is not None:
            assert key not in left
            left.add(key)
        return left


TestWorkQueueNeverLosesNorDoublesAKey = QueueMachine.TestCase


def test_under_many_threads_no_key_is_ever_in_flight_twice_and_every_add_is_seen():
    queue: WorkQueue[int] = WorkQueue(SystemClock())
    keys, rounds, workers = 7, 300, 6
    lock = threading.Lock()
    flying: set[int] = set()
    latest = [0] * keys  # by adders
    seen = [-1] * keys  # the latest that a worker saw
    doubled = []

    def work() -> None:
        while True:
            try:
                key = queue.get()
            except ShutDown:
                return
            with lock:
                if key in flying:
                    doubled.append(key)
                flying.add(key)
            seen[key] = latest[key]
            with lock:
                flying.discard(key)
            queue.done(key)

    def add(offset: int) -> None:
        for number in range(rounds):
            key = (number + offset) % keys
            with lock:
                latest[key] += 1
            if number % 3:
                queue.add(key)
            else:
                queue.add_after(key, 0.0001)

    threads = [threading.Thread(target=work) for _ in range(workers)]
    adders = [threading.Thread(target=add, args=(n,)) for n in range(3)]
    for thread in threads + adders:
        thread.start()
    for thread in adders:
        thread.join()
    eventually(lambda: seen == latest, "every key's last add being worked on")
    queue.shut_down()
    for thread in threads:
        thread.join(10)
    assert not doubled
