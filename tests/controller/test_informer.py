"""An informer against a scripted server: what it caches, tells, and does when things break."""

import logging
import random

import pytest

from captfctl.cluster.errors import Forbidden, Gone, Unavailable
from captfctl.controller import Handler, Informer
from captfctl.controller.informer import FIRST_PAUSE, LONGEST_PAUSE, PAGE_SIZE
from captfctl.model.resources import CONFIG_MAPS
from tests.controller.scripted import ScriptedDoor, config_map, page
from tests.support.clock import FakeClock, eventually


class Told:
    """What handlers were told, in order, as short texts."""

    def __init__(self):
        self.log = []
        self.handler = Handler(
            on_add=lambda obj: self.log.append(f"+{obj.metadata.name}"),
            on_update=lambda old, new: self.log.append(
                f"{old.metadata.name} {old.metadata.resource_version}→"
                f"{new.metadata.resource_version}"
            ),
            on_delete=lambda obj: self.log.append(
                f"-{obj.metadata.name}@{obj.metadata.resource_version}"
            ),
        )

    def eventually(self, *log):
        eventually(lambda: self.log == list(log), f"{self.log} becoming {list(log)}")


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def started(clock):
    informers = []

    def start(door, **options):
        told = Told()
        informer = Informer(door, CONFIG_MAPS, clock, rng=random.Random(1), **options)
        informer.add_handler(told.handler)
        informer.start()
        informers.append(informer)
        return informer, told

    yield start
    for informer in informers:
        assert informer.stop(), "the informer's threads did not end"


def reopened(door, clock):
    """The next watch, after whatever pause precedes it."""
    clock.run_until(door.watch_opened)
    return door.next_watch()


def test_the_first_list_is_cached_and_told_before_it_counts_as_synced(started):
    door = ScriptedDoor(page(7, config_map("a", 3), config_map("b", 5)))
    informer, told = started(door)
    assert informer.wait_synced(20)
    assert told.log == ["+a", "+b"]
    assert [obj.metadata.name for obj in informer.list()] == ["a", "b"]
    assert door.next_watch().version == "7"


def test_nothing_is_synced_before_the_list(started, clock):
    informer, _ = started(ScriptedDoor(Unavailable("down"), page(7)))
    assert not informer.synced
    clock.run_until(lambda: informer.synced)


def test_long_lists_are_read_in_pages(started):
    door = ScriptedDoor(page(7, config_map("a", 3), token="t1"), page(7, config_map("b", 4)))
    informer, told = started(door)
    assert informer.wait_synced(20)
    assert told.log == ["+a", "+b"]
    assert door.requests[:2] == [("list", PAGE_SIZE, ""), ("list", PAGE_SIZE, "t1")]


def test_a_list_whose_later_pages_expired_is_read_at_once(started):
    door = ScriptedDoor(
        page(7, config_map("a", 3), token="t1"), Gone("expired"), page(9, config_map("b", 8))
    )
    informer, told = started(door)
    assert informer.wait_synced(20)
    told.eventually("+a", "+b", "-a@3")
    assert door.requests[2] == ("list", 0, "")
    assert informer.get("team-a", "a") is None


def test_changes_are_cached_and_told_in_order(started):
    door = ScriptedDoor(page(7, config_map("a", 3)))
    informer, told = started(door)
    watch = door.next_watch()
    watch.added(config_map("b", 8))
    watch.modified(config_map("a", 9))
    watch.deleted(config_map("b", 10))
    told.eventually("+a", "+b", "a 3→9", "-b@10")
    assert informer.get("team-a", "a").metadata.resource_version == "9"
    assert informer.get("team-a", "b") is None
    assert len(informer) == 1


def test_a_watch_that_ends_goes_on_from_the_last_version_without_a_list(started, clock):
    door = ScriptedDoor(page(7))
    _, told = started(door)
    watch = door.next_watch()
    watch.added(config_map("a", 9))
    watch.end()
    again = reopened(door, clock)
    assert again.version == "9"
    again.modified(config_map("a", 11))
    told.eventually("+a", "a 9→11")


def test_a_bookmark_moves_the_version_and_tells_nobody(started, clock):
    door = ScriptedDoor(page(7))
    _, told = started(door)
    watch = door.next_watch()
    watch.bookmark(40)
    watch.end()
    assert reopened(door, clock).version == "40"
    assert told.log == []


def test_a_broken_or_hung_watch_goes_on_from_the_last_version(started, clock):
    door = ScriptedDoor(page(7))
    _, told = started(door)
    watch = door.next_watch()
    watch.added(config_map("a", 9))
    watch.fail(Unavailable("nothing came within the time limit"))
    again = reopened(door, clock)
    assert again.version == "9"
    told.eventually("+a")


def test_after_gone_the_list_is_read_again_and_missed_deletions_are_told(started, clock):
    door = ScriptedDoor(
        page(7, config_map("a", 3), config_map("b", 4), config_map("c", 5)),
        page(90, config_map("b", 4), config_map("c", 80), config_map("d", 81)),
    )
    informer, told = started(door)
    door.next_watch().fail(Gone("too old"))
    assert reopened(door, clock).version == "90"
    told.eventually("+a", "+b", "+c", "c 5→80", "+d", "-a@3")
    assert [obj.metadata.name for obj in informer.list()] == ["b", "c", "d"]


def test_an_object_that_was_replaced_unseen_is_told_as_two_objects(started, clock):
    door = ScriptedDoor(page(7, config_map("a", 3)), page(9, config_map("a", 8, uid="another")))
    _, told = started(door)
    door.next_watch().fail(Gone("too old"))
    reopened(door, clock)
    told.eventually("+a", "-a@3", "+a")


def test_pauses_grow_while_the_server_is_away_and_are_short_again_after(started, clock):
    down = [Unavailable("connection refused") for _ in range(8)]
    door = ScriptedDoor(*down, page(7))
    informer, _ = started(door)
    pauses = []
    for attempt in range(8):
        eventually(lambda n=attempt: len(door.requests) == n + 1)
        before = clock.monotonic()
        clock.run_until(lambda n=attempt: len(door.requests) > n + 1, step=0.05)
        pauses.append(clock.monotonic() - before)
    assert pauses[0] < 1
    assert max(pauses) <= LONGEST_PAUSE + 0.5
    assert min(pauses[-2:]) >= LONGEST_PAUSE / 2 - 0.1
    assert informer.wait_synced(20)
    watch = door.next_watch()
    before = clock.monotonic()
    watch.fail(Unavailable("cut"))
    reopened(door, clock)
    assert clock.monotonic() - before < 1.5


def test_a_watch_cut_every_second_is_reopened_each_time_without_growing_pauses(started, clock):
    door = ScriptedDoor(page(7))
    started(door)
    before = clock.monotonic()
    for _ in range(10):
        reopened(door, clock).fail(Unavailable("cut"))
    assert clock.monotonic() - before < 10


def test_a_watch_that_reached_its_time_is_begun_again_at_once(started, clock):
    door = ScriptedDoor(page(7))
    _, told = started(door)
    watch = door.next_watch()
    clock.advance(60)
    watch.end()
    door.next_watch().added(config_map("a", 8))  # and the clock stands still meanwhile
    told.eventually("+a")


def test_watches_that_never_last_are_begun_again_after_a_pause(started, clock):
    door = ScriptedDoor(page(7))
    started(door)
    before = clock.monotonic()
    for _ in range(5):
        reopened(door, clock).end()
    reopened(door, clock)
    assert clock.monotonic() - before > 5 * FIRST_PAUSE / 2 - 0.1


def test_lists_that_are_outdated_at_once_are_read_more_and_more_rarely(started, clock):
    door = ScriptedDoor(*[page(n) for n in range(6)])
    started(door)
    times = []
    for _ in range(5):
        reopened(door, clock).fail(Gone("too old"))
        times.append(clock.monotonic())
    assert times[4] - times[3] > 2 * (times[1] - times[0])


def test_the_reason_why_nothing_is_synced_can_be_told(started, clock):
    door = ScriptedDoor(Forbidden("no right to list configmaps"), page(3))
    informer, _ = started(door)
    eventually(lambda: isinstance(informer.last_error, Forbidden))
    clock.run_until(lambda: informer.synced)
    assert informer.last_error is None


def test_a_handler_added_later_hears_of_what_is_cached(started):
    door = ScriptedDoor(page(7, config_map("a", 3)))
    informer, _ = started(door)
    assert informer.wait_synced(20)
    late = Told()
    informer.add_handler(late.handler)
    assert late.log == ["+a"]
    door.next_watch().added(config_map("b", 8))
    late.eventually("+a", "+b")


def test_a_handler_that_fails_ends_neither_the_others_nor_the_informer(started, caplog):
    door = ScriptedDoor(page(7))
    informer, _ = started(door)

    def broken(obj):
        raise RuntimeError("a mapper's mistake")

    informer.add_handler(Handler(on_add=broken))
    last = Told()
    informer.add_handler(last.handler)
    with caplog.at_level(logging.ERROR):
        watch = door.next_watch()
        watch.added(config_map("a", 8))
        watch.added(config_map("b", 9))
        last.eventually("+a", "+b")
    assert "a mapper's mistake" in caplog.text


def test_a_resync_tells_every_cached_object_again(started, clock):
    door = ScriptedDoor(page(7, config_map("a", 3), config_map("b", 4)))
    informer, told = started(door, resync_period=600)
    assert informer.wait_synced(20)
    clock.run_until(lambda: len(told.log) > 2, step=100)
    told.eventually("+a", "+b", "a 3→3", "b 4→4")


def test_stopping_ends_a_watch_that_waits(clock):
    door = ScriptedDoor(page(7))
    informer = Informer(door, CONFIG_MAPS, clock)
    informer.start()
    watch = door.next_watch()
    assert informer.stop()
    assert watch.closed.is_set()


def test_stopping_ends_a_pause(clock):
    informer = Informer(ScriptedDoor(Unavailable("down")), CONFIG_MAPS, clock)
    informer.start()
    eventually(lambda: informer.last_error is not None)
    assert informer.stop()


def test_an_informer_that_never_started_can_be_stopped(clock):
    assert Informer(ScriptedDoor(), CONFIG_MAPS, clock).stop()


def test_indexes_follow_every_change(started):
    door = ScriptedDoor(
        page(7, config_map("a", 3, team="x"), config_map("b", 4, "team-b", team="x"))
    )
    informer, told = started(door, indexes={"team": lambda obj: obj.metadata.labels.values()})
    assert informer.wait_synced(20)

    def names(value):
        return [obj.metadata.name for obj in informer.by_index("team", value)]

    assert names("x") == ["a", "b"]
    assert names("nobody") == []
    watch = door.next_watch()
    watch.modified(config_map("a", 8, team="y"))
    watch.deleted(config_map("b", 9, "team-b", team="x"))
    told.eventually("+a", "+b", "a 3→8", "-b@9")
    assert names("x") == []
    assert names("y") == ["a"]


def test_an_index_nobody_declared_is_an_error(started):
    informer, _ = started(ScriptedDoor(page(7)))
    with pytest.raises(KeyError):
        informer.by_index("unknown", "x")


def test_lists_of_a_namespace_hold_that_namespace_only(started):
    door = ScriptedDoor(page(7, config_map("b", 3), config_map("a", 4), config_map("c", 5, "z")))
    informer, _ = started(door)
    assert informer.wait_synced(20)
    assert [obj.key for obj in informer.list("team-a")] == [("team-a", "a"), ("team-a", "b")]
    assert [obj.key for obj in informer.list("z")] == [("z", "c")]
    assert list(informer.list("nowhere")) == []


def test_watches_ask_the_server_to_end_them_after_half_a_minute(started):
    door = ScriptedDoor(page(7))
    started(door)
    assert 20 <= door.next_watch().timeout_seconds <= 35


def test_silence_ends_with_each_list_watch_and_event_and_not_with_failures(started, clock):
    door = ScriptedDoor(page(5))
    informer, _ = started(door)
    watch = door.next_watch()
    clock.advance(20)
    assert informer.silent_for == 20
    watch.bookmark(9)
    eventually(lambda: informer.silent_for == 0, "the bookmark")
    clock.advance(30)
    door.watch_errors += [Unavailable("no answer")] * 3
    watch.end()
    eventually(lambda: informer.silent_for == 0, "the end of the watch")
    before = clock.monotonic()
    clock.run_until(lambda: not door.watch_errors)
    assert informer.silent_for >= clock.monotonic() - before - 0.2
    reopened(door, clock)
    eventually(lambda: informer.silent_for < 1, "the next watch")


def test_an_informer_that_fails_again_and_again_is_not_idle(started, clock):
    door = ScriptedDoor(*[Unavailable("no answer")] * 8, page(5))
    informer, _ = started(door)
    clock.run_until(lambda: len(door.lists) <= 1)
    assert informer.silent_for > 15
    assert informer.idle_for <= LONGEST_PAUSE
