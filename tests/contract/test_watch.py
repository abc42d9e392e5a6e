"""Watches: every change once, in order, from where one stopped."""

import threading
from itertools import islice

import pytest

from captfctl.cluster.door import EventType
from captfctl.cluster.errors import Gone
from tests.contract.widgets import changes, make, version

SECONDS = 20


def told(events, count):
    """The next `count` changes, as type, name and version of each."""
    found = [next(events) for _ in range(count)]
    return [(event.type, event.object["metadata"]["name"]) for event in found]


def now(door, widget, namespace) -> str:
    return door.list(widget, namespace).resource_version


def test_without_a_version_what_exists_comes_first(door, namespace, widget):
    door.create(widget, make("b"), namespace)
    door.create(widget, make("a"), namespace)
    with door.watch(widget, namespace, timeout_seconds=SECONDS) as watch:
        events = changes(watch)
        assert sorted(told(events, 2)) == [(EventType.ADDED, "a"), (EventType.ADDED, "b")]
        door.create(widget, make("c"), namespace)
        assert told(events, 1) == [(EventType.ADDED, "c")]


def test_from_a_lists_version_every_later_change_comes_in_order(door, namespace, widget):
    door.create(widget, make("old"), namespace)
    since = now(door, widget, namespace)
    door.create(widget, make("a", {"x": 0}), namespace)
    for x in (1, 2):
        door.patch(widget, "a", namespace, {"spec": {"x": x}})
    door.delete(widget, "a", namespace)
    options = {"resource_version": since, "timeout_seconds": SECONDS}
    with door.watch(widget, namespace, **options) as watch:
        found = list(islice(changes(watch), 4))
    assert [event.type for event in found] == [
        EventType.ADDED,
        EventType.MODIFIED,
        EventType.MODIFIED,
        EventType.DELETED,
    ]
    assert [event.object["spec"]["x"] for event in found] == [0, 1, 2, 2]
    versions = [int(event.resource_version) for event in found]
    assert versions == sorted(set(versions))
    assert [version(event.object) for event in found] == [str(number) for number in versions]


def test_a_watch_goes_on_from_any_events_version(door, namespace, widget):
    since = now(door, widget, namespace)
    for x in range(4):
        door.create(widget, make(f"w{x}"), namespace)
    with door.watch(widget, namespace, resource_version=since, timeout_seconds=SECONDS) as watch:
        _, second = islice(changes(watch), 2)
    with door.watch(
        widget,
        namespace,
        resource_version=second.resource_version,
        timeout_seconds=SECONDS,
    ) as watch:
        assert told(changes(watch), 2) == [(EventType.ADDED, "w2"), (EventType.ADDED, "w3")]


def test_other_namespaces_and_kinds_are_not_told_of(door, namespace, widget, plain):
    since = now(door, widget, namespace)
    door.create(plain, make("other-kind"), namespace)
    elsewhere = door.create(widget, {"metadata": {"generateName": "elsewhere-"}}, "default")
    door.create(widget, make("mine"), namespace)
    with door.watch(widget, namespace, resource_version=since, timeout_seconds=SECONDS) as watch:
        assert told(changes(watch), 1) == [(EventType.ADDED, "mine")]
    door.delete(widget, elsewhere["metadata"]["name"], "default")


def test_all_namespaces_can_be_watched(door, namespace, widget):
    since = now(door, widget, "")
    door.create(widget, make("mine"), namespace)
    with door.watch(widget, resource_version=since, timeout_seconds=SECONDS) as watch:
        events = changes(watch)
        while (event := next(events)).object["metadata"]["namespace"] != namespace:
            pass
        assert event.object["metadata"]["name"] == "mine"


def test_what_leaves_a_selection_is_deleted_and_what_enters_is_added(door, namespace, widget):
    door.create(widget, make("a", labels={"in": "no"}), namespace)
    since = now(door, widget, namespace)

    def label(value):
        door.patch(widget, "a", namespace, {"metadata": {"labels": {"in": value}}})

    label("yes")
    door.patch(widget, "a", namespace, {"spec": {"x": 1}})
    label("no")
    door.patch(widget, "a", namespace, {"spec": {"x": 2}})
    label("yes")
    options = {"labels": "in=yes", "resource_version": since, "timeout_seconds": SECONDS}
    with door.watch(widget, namespace, **options) as watch:
        found = list(islice(changes(watch), 4))
    assert [event.type for event in found] == [
        EventType.ADDED,
        EventType.MODIFIED,
        EventType.DELETED,
        EventType.ADDED,
    ]
    assert found[2].object["metadata"]["labels"] == {"in": "yes"}
    assert version(found[2].object) == found[2].resource_version


def test_one_object_can_be_watched_by_name(door, namespace, widget):
    since = now(door, widget, namespace)
    door.create(widget, make("other"), namespace)
    door.create(widget, make("mine"), namespace)
    options = {"fields": "metadata.name=mine", "resource_version": since}
    with door.watch(widget, namespace, timeout_seconds=SECONDS, **options) as watch:
        assert told(changes(watch), 1) == [(EventType.ADDED, "mine")]


def test_a_mark_is_a_change_and_the_end_a_deletion(door, namespace, widget):
    door.create(widget, make("a", finalizers=["contract.test/hold"]), namespace)
    since = now(door, widget, namespace)
    door.delete(widget, "a", namespace)
    door.patch(widget, "a", namespace, {"metadata": {"finalizers": None}})
    with door.watch(widget, namespace, resource_version=since, timeout_seconds=SECONDS) as watch:
        events = changes(watch)
        marked, gone = next(events), next(events)
    assert marked.type is EventType.MODIFIED
    assert marked.object["metadata"]["deletionTimestamp"]
    assert gone.type is EventType.DELETED


def test_a_change_that_changes_nothing_is_not_told(door, namespace, widget):
    door.create(widget, make("a", {"x": 1}), namespace)
    since = now(door, widget, namespace)
    door.patch(widget, "a", namespace, {"spec": {"x": 1}})
    door.patch(widget, "a", namespace, {"spec": {"x": 2}})
    with door.watch(widget, namespace, resource_version=since, timeout_seconds=SECONDS) as watch:
        assert next(changes(watch)).object["spec"] == {"x": 2}


def test_a_watch_ends_when_its_time_is_over(door, namespace, widget):
    door.create(widget, make("a"), namespace)
    with door.watch(widget, namespace, timeout_seconds=1) as watch:
        assert [event.object["metadata"]["name"] for event in changes(watch)] == ["a"]


def test_closing_from_another_thread_ends_a_waiting_watch(door, namespace, widget):
    watch = door.watch(widget, namespace, resource_version=now(door, widget, namespace))
    ended = threading.Event()

    def read():
        for _ in watch:
            pass
        ended.set()

    thread = threading.Thread(target=read)
    thread.start()
    watch.close()
    assert ended.wait(SECONDS)
    thread.join()


def test_a_version_from_before_a_compaction_is_gone(door, namespace, widget, compact):
    made = door.create(widget, make("a"), namespace)
    door.patch(widget, "a", namespace, {"spec": {"x": 1}})
    compact()
    with (
        pytest.raises(Gone),
        door.watch(
            widget, namespace, resource_version=version(made), timeout_seconds=SECONDS
        ) as watch,
    ):
        next(changes(watch))


def test_after_a_compaction_a_fresh_lists_version_works(door, namespace, widget, compact):
    door.create(widget, make("a"), namespace)
    compact()
    since = now(door, widget, namespace)
    with door.watch(widget, namespace, resource_version=since, timeout_seconds=SECONDS) as watch:
        door.create(widget, make("b"), namespace)
        assert told(changes(watch), 1) == [(EventType.ADDED, "b")]


def test_many_writers_and_watchers_agree(door, namespace, widget):
    """Every watcher sees every write of every object, in the same order."""
    since = now(door, widget, namespace)
    writers, rounds, watchers = 4, 8, 3
    seen: list[list[str]] = [[] for _ in range(watchers)]

    def write(number):
        door.create(widget, make(f"w{number}", {"x": 0}), namespace)
        for x in range(1, rounds):
            door.patch(widget, f"w{number}", namespace, {"spec": {"x": x}})

    def follow(into):
        with door.watch(
            widget, namespace, resource_version=since, timeout_seconds=SECONDS
        ) as watch:
            for event in islice(changes(watch), writers * rounds):
                into.append(event.resource_version)

    threads = [threading.Thread(target=write, args=(n,)) for n in range(writers)]
    threads += [threading.Thread(target=follow, args=(into,)) for into in seen]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(found) for found in seen] == [writers * rounds] * watchers
    assert seen[0] == seen[1] == seen[2] == sorted(seen[0], key=int)


def test_of_many_writers_of_one_version_one_wins(door, namespace, widget):
    made = door.create(widget, make("a", {"x": 0}), namespace)
    outcomes = []

    def write(x):
        try:
            door.patch(widget, "a", namespace, {"spec": {"x": x}}, resource_version=version(made))
            outcomes.append(x)
        except Exception as error:  # collected for the assertion below
            outcomes.append(type(error).__name__)

    threads = [threading.Thread(target=write, args=(x,)) for x in range(1, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    winners = [outcome for outcome in outcomes if isinstance(outcome, int)]
    assert len(winners) == 1
    assert outcomes.count("Conflict") == 5
    assert door.get(widget, "a", namespace)["spec"] == {"x": winners[0]}
