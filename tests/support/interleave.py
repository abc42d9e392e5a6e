"""Running several actors over one door in a chosen order of their requests."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

from tests.support.faults import HookedDoor

_DEADLINE = 20.0


class _Actor(threading.Thread):
    """Stops before each request until it gets a turn."""

    def __init__(self, door: Any, act: Callable[[Any], Any]) -> None:
        super().__init__(daemon=True)
        self._turn = threading.Event()
        self._waits = threading.Event()
        self._act = act
        self._door = HookedDoor(door, before=self._await_turn)
        self.answer: Any = None
        self.error: BaseException | None = None
        self.done = False

    def _await_turn(self, *_: object) -> None:
        self._waits.set()
        assert self._turn.wait(_DEADLINE), "no turn in time"
        self._turn.clear()

    def run(self) -> None:
        try:
            self.answer = self._act(self._door)
        except BaseException as error:
            self.error = error
        self.done = True
        self._waits.set()

    def settle(self) -> None:
        """Wait until it stands before a request or is done."""
        assert self._waits.wait(_DEADLINE), "an actor hangs"

    def step(self) -> None:
        self._waits.clear()
        self._turn.set()
        self.settle()


def interleave(door: Any, acts: Sequence[Callable[[Any], Any]], order: Sequence[int]) -> list[Any]:
    """The answers of `acts`, whose requests take place in `order`; what is left, in turn."""
    actors = [_Actor(door, act) for act in acts]
    for actor in actors:
        actor.start()
        actor.settle()
    for index in order:
        if not actors[index].done:
            actors[index].step()
    for actor in actors:
        while not actor.done:
            actor.step()
        if actor.error is not None:
            raise actor.error
    return [actor.answer for actor in actors]
