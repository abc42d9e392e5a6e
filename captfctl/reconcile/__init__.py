"""The reconcile pass: one module per step (reconcile.md: Order of a pass).

`reconcile(kind, key, env)` is one pass of an object; `oneshot.evaluate` tells what the next one
would decide. `Env` holds everything a pass works with.
"""

from captfctl.reconcile.cache import CacheReader, DoorCache
from captfctl.reconcile.env import Env
from captfctl.reconcile.events import DoorRecorder, NoRecorder, Recorder
from captfctl.reconcile.kept_pods import kept_pods, release_pods
from captfctl.reconcile.metrics import Gauges, Metrics, NoMetrics
from captfctl.reconcile.oneshot import Evaluation, evaluate
from captfctl.reconcile.passes import reconcile
from captfctl.reconcile.sweep import managed_namespaces, sweep

__all__ = [
    "CacheReader",
    "DoorCache",
    "DoorRecorder",
    "Env",
    "Evaluation",
    "Gauges",
    "Metrics",
    "NoMetrics",
    "NoRecorder",
    "Recorder",
    "evaluate",
    "kept_pods",
    "managed_namespaces",
    "reconcile",
    "release_pods",
    "sweep",
]
