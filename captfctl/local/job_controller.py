"""The Job controller of the embedded control plane.

Class `JobController` is at the end; the rules stand in the functions before it.
"""

from captfctl.clock import Clock
from captfctl.cluster.door import Door


class JobController:
    def __init__(self, door: Door, clock: Clock) -> None: ...

    def start(self) -> None: ...

    def stop(self, timeout: float) -> bool: ...
