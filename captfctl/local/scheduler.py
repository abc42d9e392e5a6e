"""The scheduler of the embedded control plane: pending pods go to the one ready node."""

from captfctl.clock import Clock
from captfctl.cluster.door import Door


class Scheduler:
    def __init__(self, door: Door, clock: Clock) -> None: ...

    def start(self) -> None: ...

    def stop(self, timeout: float) -> bool: ...
