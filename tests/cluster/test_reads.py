"""Live reads that passes at the same time have in common (reconcile.md: Cached and live reads)."""

import threading
import weakref
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from captfctl.cluster.errors import Unavailable
from captfctl.cluster.reads import SharedReads, Window
from captfctl.model.core import Secret
from captfctl.model.meta import ObjectMeta
from captfctl.model.resources import SECRETS
from tests.embedded.support import new_store, until

NAME, NAMESPACE = "cloud", "default"
HANGING = ("hangs-1", "hangs-2")


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
        self.release = threading.Event()

    def get(self, resource: Any, name: str, namespace: str) -> Any:
        self.reads += 1
        self.asked.set()
        assert (self.release if name in HANGING else self.answer).wait(30)
        if self.failures:
            self.failures -= 1
            raise Unavailable("gone")
        return self._door.get(resource, name, namespace)

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
    return window.find_shared(SECRETS, NAMESPACE, NAME)


def test_passes_at_the_same_time_share_a_read(door: CountingDoor, shared: SharedReads) -> None:
    with shared.window(door) as one, shared.window(door) as two:
        assert find(one) == find(two)
    assert door.reads == 1


def test_a_shared_answer_is_no_older_than_the_one_before_it(
    door: CountingDoor, shared: SharedReads
) -> None:
    with shared.window(door) as one, shared.window(door) as two:
        find(one)  # what two asks for second
        door.change()
        two.find_shared(SECRETS, NAMESPACE, "none")
        found = find(two)
        assert found is not None
        assert found.data == {"k": b"new"}


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
        assert one.find_shared(SECRETS, NAMESPACE, "none") is None
        assert two.find_shared(SECRETS, NAMESPACE, "none") is None
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


def read_ahead(window: Window, name: str = NAME) -> None:
    """Begin it, and wait until another thread has."""
    window.door.asked.clear()
    window.ahead(SECRETS, NAMESPACE, name)
    assert window.door.asked.wait(30)


@pytest.fixture
def ahead() -> Iterator[SharedReads]:
    shared = SharedReads(threads=2)
    yield shared
    shared.close()
    until(lambda: not threads_ahead(), "the end of the threads")


def threads_ahead() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("read-ahead")]


def test_what_was_read_ahead_is_the_answer_once(door: CountingDoor, ahead: SharedReads) -> None:
    with ahead.window(door) as window:
        read_ahead(window)
        first = window.find(SECRETS, NAMESPACE, NAME)
        assert first is not None
        assert door.reads == 1
        door.change()
        assert window.find(SECRETS, NAMESPACE, NAME) != first
    assert door.reads == 2


def test_without_being_begun_ahead_every_read_is_one_of_its_own(
    door: CountingDoor, shared: SharedReads
) -> None:
    with shared.window(door) as window:
        window.ahead(SECRETS, NAMESPACE, NAME)  # there are no threads for it
        assert window.find(SECRETS, NAMESPACE, NAME) == window.find(SECRETS, NAMESPACE, NAME)
    assert door.reads == 2


def test_what_is_shared_can_be_begun_ahead_too(door: CountingDoor, ahead: SharedReads) -> None:
    with ahead.window(door) as window:
        window.ahead_shared(SECRETS, NAMESPACE, NAME)
        assert door.asked.wait(30)
        assert find(window) is not None
    assert door.reads == 1


def test_a_failure_ahead_is_told_by_nobody_and_read_again(
    door: CountingDoor, ahead: SharedReads
) -> None:
    door.failures = 1
    with ahead.window(door) as window:
        read_ahead(window)
        assert window.find(SECRETS, NAMESPACE, NAME) is not None
    assert door.reads == 2


def test_a_read_that_nobody_has_begun_is_not_waited_for(
    door: CountingDoor, ahead: SharedReads
) -> None:
    with ahead.window(door) as other, ahead.window(door) as window:
        for name in HANGING:
            other.ahead(SECRETS, NAMESPACE, name)
        until(lambda: door.reads == 2, "both threads hang")
        window.ahead(SECRETS, NAMESPACE, NAME)
        assert window.find(SECRETS, NAMESPACE, NAME) is not None
        door.release.set()
        ahead.close()
        until(lambda: not threads_ahead(), "the end of what hung")
    assert door.reads == 3, "nothing is read for a pass that has it already"


def test_after_the_end_a_pass_reads_for_itself(door: CountingDoor, ahead: SharedReads) -> None:
    with ahead.window(door) as window:
        read_ahead(window)
        ahead.close()
        window.ahead(SECRETS, NAMESPACE, "none")
        assert window.find(SECRETS, NAMESPACE, "none") is None
        assert window.find(SECRETS, NAMESPACE, NAME) is not None


def test_threads_start_with_the_first_read_ahead(door: CountingDoor) -> None:
    shared = SharedReads(threads=3)
    assert threads_ahead() == []
    shared.close()


class Answer:
    """Something that a weak reference can be had of."""


def test_no_thread_keeps_what_it_read(ahead: SharedReads) -> None:
    kept: list[weakref.ref[Answer]] = []

    class Door:
        def get(self, *_: Any) -> Answer:
            answer = Answer()
            kept.append(weakref.ref(answer))
            return answer

    with ahead.window(Door()) as window:
        window.ahead(SECRETS, NAMESPACE, NAME)
        until(lambda: kept, "it is read")
        assert window.find(SECRETS, NAMESPACE, NAME) is kept[0]()
    del window
    until(lambda: kept[0]() is None, "it is let go")


def test_what_was_read_for_a_pass_goes_with_it(ahead: SharedReads) -> None:
    kept: dict[str, weakref.ref[Answer]] = {}
    hanging, release = threading.Event(), threading.Event()

    class Door:
        def get(self, resource: Any, name: str, namespace: str) -> Answer:
            if name in HANGING:
                hanging.set()
                assert release.wait(30)
            answer = Answer()
            kept[name] = weakref.ref(answer)
            return answer

    with ahead.window(Door()) as window:
        window.ahead(SECRETS, NAMESPACE, NAME)
        until(lambda: kept, "it is read")
        window.ahead(SECRETS, NAMESPACE, HANGING[0])
        assert hanging.wait(30)
    until(lambda: kept[NAME]() is None, "it is let go while another read hangs")
    release.set()


def test_a_system_without_threads_to_give_is_one_without_reading_ahead(
    door: CountingDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with SharedReads(threads=2).window(door) as window:
        window.ahead(SECRETS, NAMESPACE, NAME)
        assert window.find(SECRETS, NAMESPACE, NAME) is not None
    assert door.reads == 1


def test_a_slow_pass_keeps_nothing_of_others_alive(door: CountingDoor, shared: SharedReads) -> None:
    with shared.window(door):
        for number in range(50):
            with shared.window(door) as window:
                window.find(SECRETS, NAMESPACE, f"own-{number}")
                find(window)
        assert len(shared._reads) == 1
