"""Doors that misbehave."""

from collections.abc import Callable, Mapping
from typing import Any

from captfctl.cluster.door import Door


class Overridden:
    """A door some of whose methods, for some resources, are replaced.

    `Overridden(door, patch={"secrets": function})` calls `function` with the method's arguments.
    """

    def __init__(self, door: Door, **methods: Mapping[str, Callable[..., Any]]) -> None:
        self._door, self._methods = door, methods

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._door, name)
        replaced = self._methods.get(name)
        if replaced is None:
            return method

        def call(resource: Any, *args: Any, **options: Any) -> Any:
            own = replaced.get(resource.plural)
            return (own or method)(resource, *args, **options)

        return call


class Failing:
    """A door that fails one write. `after`: the write took place, only its answer was lost."""

    WRITES = ("create", "update", "patch", "delete")

    def __init__(self, door: Door, at: int, failure: BaseException, *, after: bool) -> None:
        self._door, self._at, self._failure, self._after = door, at, failure, after
        self.count = 0
        self.hit = ""

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._door, name)
        if name not in self.WRITES:
            return method

        def call(resource: Any, *args: Any, **options: Any) -> Any:
            self.count += 1
            if self.count != self._at:
                return method(resource, *args, **options)
            self.hit = f"{name} {resource.plural}"
            if self._after:
                method(resource, *args, **options)
            raise self._failure

        return call
