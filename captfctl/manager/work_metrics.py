"""Series of control loops, under the names that dashboards for controllers know."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from captfctl.clock import Clock
from captfctl.controller import Result

_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class WorkMetrics:
    """Passes and queues of every controller of one process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.passes = Counter(
            "controller_runtime_reconcile",
            "Passes by result.",
            ("controller", "result"),
            registry=registry,
        )
        self.errors = Counter(
            "controller_runtime_reconcile_errors",
            "Passes that failed.",
            ("controller",),
            registry=registry,
        )
        self.seconds = Histogram(
            "controller_runtime_reconcile_time_seconds",
            "Duration of a pass.",
            ("controller",),
            buckets=_BUCKETS,
            registry=registry,
        )
        self.depth = Gauge(
            "workqueue_depth", "Keys that wait for a worker.", ("name",), registry=registry
        )
        self.adds = Counter("workqueue_adds", "Keys added.", ("name",), registry=registry)
        self.retries = Counter(
            "workqueue_retries", "Keys added again after a failure.", ("name",), registry=registry
        )
        self.waited = Histogram(
            "workqueue_queue_duration_seconds",
            "How long a key waited for a worker.",
            ("name",),
            buckets=_BUCKETS,
            registry=registry,
        )
        self.worked = Histogram(
            "workqueue_work_duration_seconds",
            "How long a worker held a key.",
            ("name",),
            buckets=_BUCKETS,
            registry=registry,
        )

    def measured(
        self,
        name: str,
        reconcile: Callable[[tuple[str, str]], Result],
        clock: Clock,
    ) -> Callable[[tuple[str, str]], Result]:
        """`reconcile`, counted and timed."""
        errors = self.errors.labels(name)  # from the beginning: an alert looks at its rate

        def counted(key: tuple[str, str]) -> Result:
            begun = clock.monotonic()
            result = "error"
            try:
                answer = reconcile(key)
                result = "requeue_after" if answer.requeue_after else "success"
            except Exception:
                errors.inc()
                raise
            finally:
                self.passes.labels(name, result).inc()
                self.seconds.labels(name).observe(clock.monotonic() - begun)
            return answer

        return counted


class NamedQueueMetrics:
    """One queue's share of `WorkMetrics`."""

    def __init__(self, metrics: WorkMetrics, name: str) -> None:
        self._depth = metrics.depth.labels(name)
        self._adds = metrics.adds.labels(name)
        self._retries = metrics.retries.labels(name)
        self._waited = metrics.waited.labels(name)
        self._worked = metrics.worked.labels(name)

    def depth(self, waiting: int) -> None:
        self._depth.set(waiting)

    def added(self) -> None:
        self._adds.inc()

    def retried(self) -> None:
        self._retries.inc()

    def waited(self, seconds: float) -> None:
        self._waited.observe(seconds)

    def worked(self, seconds: float) -> None:
        self._worked.observe(seconds)
