"""Controllers' machinery: caches that follow the API server, work queues, workers, leadership.

- `Informer`: lists and watches one resource into a cache with indexes and handlers.
- `WorkQueue`: keys to work on; each at most once in the queue and at most once in flight.
- `Controller`: workers that call `reconcile(key)` and queue the key again when it asks for it.
- `LeaderElector`: one process of several leads, decided on a Lease.

Everything is thread based; time and chance are handed in.
"""

from captfctl.controller.controller import Controller, Result
from captfctl.controller.informer import Handler, Informer
from captfctl.controller.leader import ElectionSettings, LeaderElector
from captfctl.controller.queue import QueueMetrics, ShutDown, WorkQueue

__all__ = [
    "Controller",
    "ElectionSettings",
    "Handler",
    "Informer",
    "LeaderElector",
    "QueueMetrics",
    "Result",
    "ShutDown",
    "WorkQueue",
]
