"""Live reads that passes at the same time have in common (10 §1)."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from captfctl.cluster.errors import Unavailable
from captfctl.cluster.reads import SharedReads, Window
from captfctl.model.core import Secret
from captfctl.model.meta import ObjectMeta
from captfctl.model.resources import SECRETS
from tests.local.support import new_store

NAME, NAMESPACE = "cloud", "default"


class CountingDoor:
    """Answers reads from a store, one at a time where told so, and counts them."""

    def __init__(self) -> None:
        self._store = new_store()
        self._door = self._store.door()
        self._door.create(SECRETS, Secret(metadata=ObjectMeta(name=NAME)), NAMESPACE)
        self.reads = 0
        self.failures = 0
        self.asked = threading.Event()
        self.answer = threading.Event()
        self.answer.set()

    def get(self, *args: Any) -> Any:
        self.reads += 1
        self.asked.set()
        assert self.answer.wait(30)
        if self.failures:
            self.failures -= 1
            raise Unavailable("gone")
        return self._door.get(*args)

    def change(self) -> None:
        self._door.patch(SECRETS, NAME, NAMESPACE, {"data": {"k": "bmV3"}})

    def close(self) -> None:
        self._store.close()


@pytest.fixture
def door() -> Iterator[CountingDoor]:
    door = CountingDoor()
    yield door
    door.close()


@pytest.fixture
def shared() -> SharedReads:
    return SharedReads()


def find(window: Window) -> Secret | None:
    return window.find(SECRETS, NAMESPACE, NAME)


def test_passes_at_the_same_time_share_a_read(door: CountingDoor, shared: SharedReads) -> None:
    with shared.window(door) as one, shared.window(door) as two:
        assert find(one) == find(two) == find(one)
    assert door.reads == 1


def test_a_pass_never_gets_what_was_read_before_it_began(
    door: CountingDoor, shared: SharedReads
) -> None:
    with shared.window(door) as old:
        find(old)
        door.change()
        with shared.window(door) as new:
            found = find(new)
            assert found is not None
            assert found.data == {"k": b"new"}
            assert find(old) == found  # newer is live for it too
    assert door.reads == 2


def test_what_is_not_there_is_shared_too(door: CountingDoor, shared: SharedReads) -> None:
    with shared.window(door) as one, shared.window(door) as two:
        assert one.find(SECRETS, NAMESPACE, "none") is None
        assert two.find(SECRETS, NAMESPACE, "none") is None
    assert door.reads == 1


def test_nothing_is_kept_when_no_pass_can_use_it(door: CountingDoor, shared: SharedReads) -> None:
    with ExitStack() as outer:
        first = outer.enter_context(shared.window(door))
        with shared.window(door) as second:
            find(second)
        assert len(shared._reads) == 1, "the first one may still ask"
        find(first)
    assert shared._reads == {}
    assert door.reads == 1


def test_a_read_for_a_pass_that_is_over_is_dropped_under_later_ones(
    door: CountingDoor, shared: SharedReads
) -> None:
    with ExitStack() as last:
        with shared.window(door) as first:
            find(first)
            last.enter_context(shared.window(door))
        assert shared._reads == {}


def test_a_pass_waits_for_a_read_that_another_one_began(
    door: CountingDoor, shared: SharedReads
) -> None:
    found: list[Secret | None] = []
    door.answer.clear()
    with shared.window(door) as one, shared.window(door) as two:
        threads = [threading.Thread(target=lambda w=w: found.append(find(w))) for w in (one, two)]
        threads[0].start()
        assert door.asked.wait(30)
        threads[1].start()
        door.answer.set()
        for thread in threads:
            thread.join(30)
    assert len(found) == 2
    assert found[0] is found[1] is not None
    assert door.reads == 1


def test_an_error_is_only_that_of_the_pass_that_asked(
    door: CountingDoor, shared: SharedReads
) -> None:
    door.failures = 1
    with shared.window(door) as one, shared.window(door) as two:
        with pytest.raises(Unavailable):
            find(one)
        assert find(two) is not None
        assert find(one) is not None
    assert door.reads == 2


def test_what_is_read_ahead_is_there_when_it_is_asked_for(door: CountingDoor) -> None:
    shared = SharedReads(threads=2)
    door.answer.clear()
    with shared.window(door) as window:
        window.ahead(SECRETS, NAMESPACE, NAME)
        assert door.asked.wait(30), "begun by another thread"
        window.ahead(SECRETS, NAMESPACE, NAME)
        door.answer.set()
        assert find(window) is not None
    assert door.reads == 1
    shared.close()


def test_a_failure_ahead_is_told_by_nobody_and_read_again(door: CountingDoor) -> None:
    shared = SharedReads(threads=1)
    door.failures = 1
    with shared.window(door) as window:
        window.ahead(SECRETS, NAMESPACE, NAME)
        assert find(window) is not None
    assert door.reads == 2
    shared.close()


def test_without_threads_nothing_is_read_ahead(door: CountingDoor, shared: SharedReads) -> None:
    with shared.window(door) as window:
        window.ahead(SECRETS, NAMESPACE, NAME)
    assert door.reads == 0
