"""The garbage collector of the embedded control plane."""

from collections.abc import Callable, Iterable
from typing import Any

from captfctl.clock import Clock
from captfctl.cluster.door import Door
from captfctl.model.resource import Resource


class GarbageCollector:
    def __init__(
        self, door: Door, resources: Callable[[], Iterable[Resource[Any]]], clock: Clock
    ) -> None:
        """`resources` tells what is served now; it is asked again while running."""

    def start(self) -> None: ...

    def stop(self, timeout: float) -> bool: ...
