"""Servers away, busy, hung or cut off: which error, and whether a write may have happened."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from captfctl.cluster.errors import Conflict, Ended, TooManyRequests, Unavailable
from captfctl.cluster.live_requests import LONGEST_WAIT, RETRIES_WHEN_BUSY, Limits
from captfctl.model.core import ConfigMap
from captfctl.model.meta import ObjectMeta
from captfctl.model.resources import CONFIG_MAPS
from tests.live.api import Answer, Stream, status
from tests.support.clock import DEADLINE, FakeClock, eventually
from tests.support.proxy import FaultProxy

OBJECT = {"metadata": {"name": "a", "namespace": "team-a", "resourceVersion": "7"}}
SHORT = Limits(connect=5, read=1, silence=1)


@pytest.fixture
def proxy(api):
    with FaultProxy("127.0.0.1", api.port) as proxy:
        yield proxy


@pytest.fixture
def proxied(proxy, connect):
    return connect(f"http://127.0.0.1:{proxy.port}", limits=SHORT)


def get(door):
    return door.get(CONFIG_MAPS, "a", "team-a")


def create(door):
    return door.create(CONFIG_MAPS, ConfigMap(metadata=ObjectMeta(name="a", namespace="team-a")))


def write_fails(door) -> Unavailable:
    with pytest.raises(Unavailable) as failed:
        create(door)
    return failed.value


def test_a_refused_connection_cannot_have_written_and_names_the_server(connect):
    with FaultProxy("127.0.0.1", 1) as gone:
        port = gone.port
    error = write_fails(connect(f"http://127.0.0.1:{port}"))
    assert not error.outcome_unknown
    assert f"127.0.0.1:{port}" in error.what
    assert "refused" in error.why.lower()
    assert error.do


def test_a_host_name_that_does_not_resolve_cannot_have_written(connect):
    error = write_fails(connect("http://nowhere.invalid:6443"))
    assert not error.outcome_unknown
    assert "resolve" in error.why


def test_a_connection_reset_after_the_write_took_place_leaves_the_outcome_unknown(
    api, proxy, proxied
):
    api.answer(OBJECT, code=201)
    proxy.reset_answers(1)
    assert write_fails(proxied).outcome_unknown
    assert [seen.method for seen in api.seen] == ["POST"]


def test_a_write_without_an_answer_in_time_leaves_the_outcome_unknown(api, proxied):
    never = threading.Event()
    api.answers.append(never)
    error = write_fails(proxied)
    never.set()
    assert error.outcome_unknown
    assert "time limit" in error.why
    assert len(api.seen) == 1


def test_a_read_without_an_answer_in_time_is_unavailable_with_no_doubt(
    api, proxy, proxied, connect
):
    proxy.hang()
    with pytest.raises(Unavailable) as failed:
        get(proxied)
    assert not failed.value.outcome_unknown
    proxy.heal()
    api.answers += [Answer(200, OBJECT)] * 2  # one for the request that was held back
    assert get(connect(f"http://127.0.0.1:{proxy.port}")).metadata.name == "a"


def test_a_read_cut_off_once_is_sent_again_and_succeeds(api, proxy, proxied):
    api.answers += [Answer(200, OBJECT)] * 2
    proxy.reset_answers(1)
    assert get(proxied).metadata.name == "a"
    assert len(api.seen) == 2


def test_a_read_cut_off_twice_is_unavailable(api, proxy, proxied):
    api.answers += [Answer(200, OBJECT)] * 2
    proxy.reset_answers(2)
    with pytest.raises(Unavailable):
        get(proxied)
    assert len(api.seen) == 2


def test_idle_connections_that_died_are_not_used_again(api, proxy, proxied):
    api.answers += [Answer(200, OBJECT)] * 3
    get(proxied)
    proxy.cut()
    assert create(proxied).metadata.name == "a"


def test_a_delayed_answer_is_waited_for(api, proxy, connect):
    door = connect(f"http://127.0.0.1:{proxy.port}")
    proxy.delay_answers(0.2)
    api.answer(OBJECT)
    assert get(door).metadata.name == "a"


def test_connections_are_kept_and_used_again(api, proxy, connect):
    door = connect(f"http://127.0.0.1:{proxy.port}")
    api.answers += [Answer(200, OBJECT)] * 20
    for _ in range(20):
        get(door)
    assert proxy.connections == 1


def test_as_many_connections_are_kept_as_threads_send_requests(api, proxy, connect):
    door = connect(f"http://127.0.0.1:{proxy.port}", pool_size=4)
    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            api.answers += [Answer(200, OBJECT)] * 4
            list(pool.map(lambda _: get(door), range(4)))
    assert proxy.connections <= 4


def test_a_refusal_in_between_is_no_reason_to_doubt(api, door):
    api.answers.append(status(409, "Conflict", "stale"))
    with pytest.raises(Conflict):
        door.patch(CONFIG_MAPS, "a", "team-a", {}, resource_version="1")


class Waits(FakeClock):
    """Every wait passes at once and is recorded."""

    def __init__(self):
        super().__init__()
        self.waits = []

    def wait(self, event, seconds):
        self.waits.append(seconds)
        return event.is_set()


def busy(after="2"):
    return Answer(429, {"kind": "Status", "code": 429, "message": "busy"}, {"Retry_After": after})


def test_a_busy_server_is_asked_again_after_the_time_it_names(api, connect):
    clock = Waits()
    door = connect(api.url, clock=clock)
    api.answers += [busy("2"), busy("3"), Answer(201, OBJECT)]
    assert create(door).metadata.name == "a"
    assert clock.waits == [2, 3]
    assert [seen.method for seen in api.seen] == ["POST"] * 3


def test_a_server_that_stays_busy_is_reported_with_its_time_after_a_few_tries(api, connect):
    clock = Waits()
    door = connect(api.url, clock=clock)
    api.answers += [busy("120")] * 10
    with pytest.raises(TooManyRequests) as refused:
        get(door)
    assert refused.value.retry_after == 120
    assert clock.waits == [LONGEST_WAIT] * RETRIES_WHEN_BUSY
    assert len(api.seen) == RETRIES_WHEN_BUSY + 1


def test_closing_the_door_ends_the_wait_for_a_busy_server(api, connect):
    clock = FakeClock()
    door = connect(api.url, clock=clock)
    api.answers += [busy("5")] * 10
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(get, door)
        eventually(lambda: len(api.seen) == 1)
        door.close()
        with pytest.raises(TooManyRequests):
            waiting.result(10)
    assert len(api.seen) == 1


def test_a_server_error_in_a_burst_is_reported_at_once(api, door):
    api.answers += [status(500, "InternalError", "panic")] * 3
    with pytest.raises(Unavailable):
        get(door)
    assert len(api.seen) == 1


def test_an_answer_cut_in_its_body_leaves_a_writes_outcome_unknown(api, proxied):
    api.answers.append(Answer(201, OBJECT, {"X_Padding": "x"}))
    api.answers[-1].body = CutBody()
    assert write_fails(proxied).outcome_unknown


class CutBody(bytes):
    """Claims more bytes than it has."""

    def __new__(cls):
        return super().__new__(cls, b'{"metadata"')

    def __len__(self):
        return 500


def at_once(door, count: int) -> None:
    """Requests at the same time: so many connections are open afterwards."""
    with ThreadPoolExecutor(count) as pool:
        list(pool.map(lambda _: get(door), range(count)))


def test_connections_that_lead_nowhere_are_given_up_together(api, proxy, proxied):
    api.default = OBJECT
    proxy.delay_answers(0.1)
    at_once(proxied, 5)
    assert proxy.connections >= 2
    proxy.delay_answers(0.0)
    proxy.strand()
    with pytest.raises(Unavailable):
        get(proxied)
    for _ in range(5):
        assert get(proxied).metadata.name == "a"


def test_a_watch_that_is_silent_is_given_up_with_them(api, proxy, connect):
    door = connect(
        f"http://127.0.0.1:{proxy.port}", limits=Limits(connect=5, read=0.3, silence=DEADLINE)
    )
    api.answers.append(Stream())
    watch = door.watch(CONFIG_MAPS, "team-a")
    ended = []

    def follow() -> None:
        try:
            list(watch)
        except Unavailable as error:
            ended.append(error)

    thread = threading.Thread(target=follow)
    thread.start()
    proxy.strand()
    api.answers.append(threading.Event())
    with pytest.raises(Unavailable):
        get(door)
    thread.join(DEADLINE / 2)
    assert len(ended) == 1


def test_a_watch_that_says_something_stays_when_a_request_gets_no_answer(api, connect):
    door = connect(api.url, limits=Limits(connect=5, read=0.3, silence=DEADLINE))
    stream, never = Stream(), threading.Event()
    api.answers += [stream, never]
    events = iter(door.watch(CONFIG_MAPS, "team-a"))
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(get, door)
        eventually(lambda: len(api.seen) == 2, "the request")
        stream.send("ADDED", **OBJECT)
        assert next(events).object.metadata.name == "a"
        assert isinstance(asked.exception(DEADLINE), Unavailable)
    stream.send("MODIFIED", **OBJECT)
    assert next(events).object.metadata.name == "a"
    never.set()
    stream.break_off()


def test_an_abandoned_door_ends_what_waits_and_refuses_what_follows(api, connect):
    door = connect(api.url, limits=Limits(connect=5, read=DEADLINE, silence=DEADLINE))
    never = threading.Event()
    api.answers.append(never)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(create, door)
        eventually(lambda: len(api.seen) == 1, "the request")
        door.abandon()
        error = asked.exception(DEADLINE / 2)
    never.set()
    assert isinstance(error, Unavailable)
    assert error.outcome_unknown
    with pytest.raises(Ended):
        get(door)
    assert len(api.seen) == 1
