"""The door of one simulated manager: everything that can happen to a request."""

from typing import Any

from captfctl.cluster.door import Door
from captfctl.cluster.errors import Conflict, TooManyRequests, Unavailable
from tests.simulation.course import Course

WRITES = frozenset({"create", "update", "patch", "delete"})


class Killed(BaseException):
    """The manager's process is gone: not even its handlers run."""


class FaultyDoor:
    """Between any two requests other things happen; a request fails before or after it took place;
    the process is killed before or after it."""

    def __init__(self, simulation: Course, manager: str, door: Door) -> None:
        self._simulation, self._manager, self._door = simulation, manager, door

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._door, name)

        def call(resource: Any, *args: Any, **options: Any) -> Any:
            simulation = self._simulation
            simulation.meanwhile(self._manager)
            fault = simulation.draw_fault()
            what = f"{name} {resource.plural}"
            if fault and name not in WRITES and fault in ("lost", "conflict"):
                fault = "unavailable"
            self._before(fault, what, name)
            answer = method(resource, *args, **options)
            if name in WRITES:
                simulation.check()
            self._after(fault, what)
            return answer

        return call

    def _before(self, fault: str, what: str, name: str) -> None:
        if fault in ("", "lost", "kill after"):
            return
        self._simulation.tell(f"{self._manager}: {fault} at {what}")
        if fault == "kill before":
            raise Killed
        if fault == "conflict" and name != "create":
            raise Conflict("simulated: somebody else was faster")
        if fault == "too many":
            raise TooManyRequests("simulated: slow down")
        raise Unavailable("simulated: the server does not answer")

    def _after(self, fault: str, what: str) -> None:
        if fault == "lost":
            self._simulation.tell(f"{self._manager}: answer of {what} lost")
            raise Unavailable("simulated: the connection was reset", outcome_unknown=True)
        if fault == "kill after":
            self._simulation.tell(f"{self._manager}: killed after {what}")
            raise Killed
