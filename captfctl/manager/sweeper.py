"""The orphan sweep: at the start, then each sync period with some jitter
(credentials.md: The namespace sweep)."""

import logging
import random
import threading
from collections.abc import Callable

from captfctl.clock import Clock
from captfctl.cluster.door import Door
from captfctl.errors import CaptfError
from captfctl.reconcile.kept_pods import kept_pods
from captfctl.reconcile.sweep import managed_namespaces, sweep_quietly
from captfctl.settings import ManagerSettings

_JITTER = 0.1

log = logging.getLogger(__name__)


class Sweeper:
    """A thread; a namespace that cannot be swept stops nothing.

    `look_at_pods` is told the Jobs, by namespace and name, whose pods are kept.
    """

    def __init__(
        self,
        door: Door,
        settings: ManagerSettings,
        clock: Clock,
        look_at_pods: Callable[[tuple[str, str]], None],
    ) -> None:
        self._door, self._settings, self._clock = door, settings, clock
        self._look_at_pods = look_at_pods
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

    def sweep_pods(self) -> None:
        """Look at every pod that is kept until it is read: a manager may have ended before it let
        one go."""
        try:
            jobs = kept_pods(self._door, self._settings.namespace)
        except CaptfError as problem:
            log.warning("pods were not swept: %s", problem)
            return
        for job in sorted(jobs):
            self._look_at_pods(job)

    def _run(self) -> None:
        period = self._settings.sync_period.total_seconds()
        while True:
            self.sweep_all()
            self.sweep_pods()
            pause = period * (1 + _JITTER * self._rng.random())
            if self._clock.wait(self._stop, pause):
                return
