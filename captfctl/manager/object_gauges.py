"""Series about single objects: what the last pass of each saw (manager.md: Metrics)."""

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from captfctl.model.ops import Op
from captfctl.reconcile.metrics import Gauges

Key = tuple[str, str, str]
"""Kind, namespace and name."""

_LABELS = ("kind", "namespace", "name")

_SERIES: tuple[tuple[str, str, Callable[[Gauges], float | None]], ...] = (
    ("captf_drift_detected", "Whether drift is known.", lambda g: g.drift_detected),
    ("captf_ready", "Condition Ready: 1, 0, or -1 for unknown.", lambda g: g.ready),
    (
        "captf_infrastructure_healthy",
        "Condition InfrastructureHealthy: 1, 0, or -1 for unknown.",
        lambda g: g.healthy,
    ),
    ("captf_state_resources", "Managed resources in the state.", lambda g: g.state_resources),
    (
        "captf_state_bytes",
        "Compressed size of the state, all chunks.",
        lambda g: g.state_bytes,
    ),
    ("captf_inputs_bytes", "Size of the rendered inputs.", lambda g: g.inputs_bytes),
)
_SUCCESS = "captf_last_success_timestamp_seconds"
_SUCCESS_OPS = (Op.APPLY, Op.DESTROY, Op.REFRESH, Op.DRIFT)


class ObjectGauges(Collector):
    """Turned into series when somebody asks: kept as series, thousands of objects would take more
    memory than everything else that is known of them.

    A value that a pass does not know stays what it was: a pass that only waits for a Job reads no
    state.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shown: dict[Key, Gauges] = {}

    def show(self, key: Key, gauges: Gauges) -> None:
        with self._lock:
            before = self._shown.get(key)
            self._shown[key] = gauges if before is None else _over(before, gauges)

    def forget(self, key: Key) -> None:
        with self._lock:
            self._shown.pop(key, None)

    def describe(self) -> Iterable[Metric]:
        return self._families([])

    def collect(self) -> Iterable[Metric]:
        with self._lock:
            shown = list(self._shown.items())
        return self._families(shown)

    def _families(self, shown: list[tuple[Key, Gauges]]) -> Iterator[Metric]:
        for name, text, value_of in _SERIES:
            family = GaugeMetricFamily(name, f"[ALPHA] {text}", labels=_LABELS)
            for key, gauges in shown:
                value = value_of(gauges)
                if value is not None:
                    family.add_metric(key, value)
            yield family
        yield _successes(shown)


def _successes(shown: list[tuple[Key, Gauges]]) -> Metric:
    text = "[ALPHA] When the operation last succeeded."
    family = GaugeMetricFamily(_SUCCESS, text, labels=(*_LABELS, "op"))
    for key, gauges in shown:
        for op in _SUCCESS_OPS:
            moment = gauges.last_success.get(op)
            if moment is not None:
                family.add_metric((*key, op.value), _epoch(moment))
    return family


def _over(before: Gauges, after: Gauges) -> Gauges:
    """`after`, with what only `before` knows of the state and the inputs."""
    known = {
        name: getattr(before, name)
        for name in ("state_resources", "state_bytes", "inputs_bytes")
        if getattr(after, name) is None and getattr(before, name) is not None
    }
    return replace(after, **known) if known else after


def _epoch(moment: datetime) -> float:
    return moment.astimezone(UTC).timestamp()
