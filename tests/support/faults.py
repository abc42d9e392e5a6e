"""A door that fails on purpose."""

from collections.abc import Callable
from typing import Any

WRITES = frozenset({"create", "update", "patch", "delete", "create_subresource"})

Hook = Callable[[str, Any], None]


class Crash(BaseException):
    """The process dies: no handler of the code under test may run any further."""


class HookedDoor:
    """Calls `before` and `after` with the method's name and the resource; each may raise."""

    def __init__(self, door: Any, *, before: Hook | None = None, after: Hook | None = None) -> None:
        self._door = door
        self._before = before
        self._after = after

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._door, name)

        def call(resource: Any, *args: Any, **kwargs: Any) -> Any:
            if self._before:
                self._before(name, resource)
            answer = method(resource, *args, **kwargs)
            if self._after:
                self._after(name, resource)
            return answer

        return call


def failing(door: Any, error: Exception, method: str, resource: Any) -> HookedDoor:
    """`method` on `resource` fails and changes nothing."""

    def before(name: str, kind: Any) -> None:
        if name == method and kind.plural == resource.plural:
            raise error

    return HookedDoor(door, before=before)


def losing_answers(door: Any, error: Exception, method: str, resource: Any) -> HookedDoor:
    """`method` on `resource` takes place, and its answer is lost."""

    def after(name: str, kind: Any) -> None:
        if name == method and kind.plural == resource.plural:
            raise error

    return HookedDoor(door, after=after)


def crashing_after(door: Any, writes: int) -> HookedDoor:
    """Dies right after so many writes took place."""
    left = [writes]

    def after(name: str, _: Any) -> None:
        if name in WRITES:
            left[0] -= 1
            if left[0] == 0:
                raise Crash

    return HookedDoor(door, after=after)
