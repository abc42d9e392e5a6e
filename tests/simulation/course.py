"""What simulations share: chance, the story they tell, and a course with faults and a quiet end."""

import random
from abc import ABC, abstractmethod
from typing import Any

from tests.support.clock import FakeClock

FAULTS = ("unavailable", "too many", "conflict", "lost", "kill before", "kill after")


class Broken(AssertionError):
    """An invariant does not hold."""


class Course(ABC):
    """`steps` things happen, one after the other and within each other, drawn from one seed."""

    managers: list[Any]
    door: Any

    def __init__(self, seed: int, steps: int) -> None:
        self.rng = random.Random(seed)
        self.clock = FakeClock()
        self.steps = steps
        self.faults = True
        self.story: list[str] = []
        self._depth = 0

    def tell(self, text: str) -> None:
        self.story.append(f"{self.clock.monotonic():8.0f} s  {text}")

    def draw_fault(self) -> str:
        if not self.faults or self.rng.random() >= 0.02:
            return ""
        return self.rng.choice(FAULTS)

    def meanwhile(self, manager: str) -> None:
        """What else happens while `manager` waits for an answer."""
        if not self.faults or self._depth >= 2 or self.rng.random() >= 0.05:
            return
        self._depth += 1
        try:
            others = [m for m in self.managers if m.name != manager]
            what = self.rng.choice(["pass", "pass", "run", "person"])
            if what == "pass" and others:
                self._some_pass(self.rng.choice(others))
            elif what == "run":
                self._progress()
            else:
                self._person()
        finally:
            self._depth -= 1

    def run(self) -> None:
        """Faults for a while, then none; raises `Broken` as soon as something is wrong."""
        for _ in range(self.steps):
            self._step()
            self.check()
        self.faults = False
        self.tell("no more faults from here on")
        self._quiet()

    @abstractmethod
    def check(self) -> None:
        """What must hold, always. Raises `Broken`."""

    @abstractmethod
    def _step(self) -> None:
        """One thing happens."""

    @abstractmethod
    def _some_pass(self, manager: Any) -> None:
        """A pass of the manager."""

    @abstractmethod
    def _progress(self) -> None:
        """Runs go on."""

    @abstractmethod
    def _person(self) -> None:
        """Somebody changes something."""

    @abstractmethod
    def _quiet(self) -> None:
        """Without faults, until everything is as it must end. Raises `Broken`."""
