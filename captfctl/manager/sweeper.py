"""The orphan sweep: at the start, then each sync period with some jitter
(credentials.md: The namespace sweep)."""

import logging
import random
import threading

from captfctl.clock import Clock
from captfctl.cluster.door import Door
from captfctl.errors import CaptfError
from captfctl.reconcile import managed_namespaces
from captfctl.reconcile.sweep import sweep_quietly
from captfctl.settings import ManagerSettings

_JITTER = 0.1

log = logging.getLogger(__name__)


class Sweeper:
    """A thread; a namespace that cannot be swept stops nothing."""

    def __init__(self, door: Door, settings: ManagerSettings, clock: Clock) -> None:
        self._door, self._settings, self._clock = door, settings, clock
        self._stop = threading.Event()
        self._rng = random.Random()  # noqa: S311 - spreads requests, guards nothing
        self._thread = threading.Thread(target=self._run, name="sweep", daemon=True)

    def start(self) -> None:
        """Sweep now, then each period."""
        self._thread.start()

    def stop(self, timeout: float) -> bool:
        """Tell whether the thread ended in `timeout` seconds."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def sweep_all(self) -> None:
        """Sweep every namespace that has something to sweep."""
        own = self._settings.namespace
        try:
            namespaces = {own} if own else managed_namespaces(self._door)
        except CaptfError as problem:
            log.warning("namespaces were not swept: %s", problem)
            return
        for namespace in sorted(namespaces):
            if self._stop.is_set():
                return
            sweep_quietly(self._door, namespace)

    def _run(self) -> None:
        period = self._settings.sync_period.total_seconds()
        while True:
            self.sweep_all()
            pause = period * (1 + _JITTER * self._rng.random())
            if self._clock.wait(self._stop, pause):
                return
