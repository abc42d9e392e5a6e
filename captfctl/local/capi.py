"""A stand-in for the Cluster API core provider: only what our objects read of it."""

from captfctl.clock import Clock
from captfctl.cluster.door import Door


class CapiStandIn:
    def __init__(self, door: Door, clock: Clock) -> None: ...

    def start(self) -> None: ...

    def stop(self, timeout: float) -> bool: ...
