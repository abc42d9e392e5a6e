"""The manager's Prometheus series (manager.md: Metrics)."""

from collections.abc import Callable, Iterable, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from captfctl.manager.object_gauges import ObjectGauges
from captfctl.model import keys
from captfctl.model.core import Job
from captfctl.model.kinds import KINDS
from captfctl.model.ops import Op
from captfctl.reconcile.metrics import Gauges
from captfctl.terraform.books.bookkeeping import CountedRun
from captfctl.terraform.books.results import op_of
from captfctl.version import VERSION
from runner import wire

CONTRACT = "v1alpha1"
# The closed sets of label values: what a module's run writes must not make new ones.
ACTIONS = ("add", "change", "destroy", "import")


def step_label(name: str) -> str:
    """The step's name, `other` for one that is not known."""
    return name if name in wire.STEPS else "other"


def exponential(first: float, last: float, count: int) -> tuple[float, ...]:
    """`count` bounds from `first` to `last`, each the same multiple of the one before."""
    factor = (last / first) ** (1 / (count - 1))
    return tuple(round(first * factor**step, 3) for step in range(count))


DURATION_BUCKETS = exponential(15, 7200, 10)
STEP_BUCKETS = exponential(1, 7200, 12)
QUEUE_BUCKETS = (5, 10, 20, 30, 60, 120, 180, 300, 600, 900, 1800)
ATTEMPT_BUCKETS = tuple(range(1, 11))


def _alpha(text: str) -> str:
    return f"[ALPHA] {text}"


class PrometheusMetrics:
    """Implements `captfctl.reconcile.Metrics` on a registry of its own."""

    def __init__(self, registry: CollectorRegistry, running: Callable[[], Sequence[Job]]) -> None:
        """`running` gives the managed Jobs that have not finished."""
        self._registry = registry
        self._runs(registry)
        self._shown = ObjectGauges()
        registry.register(self._shown)
        self._passes(registry)
        registry.register(ActiveJobs(running))
        build = Gauge(
            "captf_build_info",
            _alpha("What runs; always 1."),
            ("version", "commit", "contract"),
            registry=registry,
        )
        build.labels(VERSION, "", CONTRACT).set(1)

    def _runs(self, registry: CollectorRegistry) -> None:
        self._finished = Counter(
            "captf_jobs", _alpha("Finished Jobs."), ("kind", "op", "result"), registry=registry
        )
        self._duration = Histogram(
            "captf_job_duration_seconds",
            _alpha("From the start of a Job to its end."),
            ("kind", "op", "result"),
            buckets=DURATION_BUCKETS,
            registry=registry,
        )
        self._steps = Histogram(
            "captf_job_step_duration_seconds",
            _alpha("Duration of one step of the runner."),
            ("kind", "op", "step"),
            buckets=STEP_BUCKETS,
            registry=registry,
        )
        self._queued = Histogram(
            "captf_job_queue_seconds",
            _alpha("From the creation of a Job to the start of its container."),
            ("kind", "op"),
            buckets=QUEUE_BUCKETS,
            registry=registry,
        )
        self._errors = Counter(
            "captf_job_errors",
            _alpha("Jobs that did not succeed."),
            ("kind", "op", "error_kind", "step"),
            registry=registry,
        )
        self._attempts = Histogram(
            "captf_job_attempts",
            _alpha("Tries that a success took."),
            ("kind", "op"),
            buckets=ATTEMPT_BUCKETS,
            registry=registry,
        )
        self._changed = Counter(
            "captf_resources_changed",
            _alpha("Resources changed by applies and destroys."),
            ("kind", "op", "action"),
            registry=registry,
        )
        self._drifted = Counter(
            "captf_drift_resources",
            _alpha("Resources found drifted."),
            ("kind", "action"),
            registry=registry,
        )

    def _passes(self, registry: CollectorRegistry) -> None:
        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(name, _alpha(text), labels, registry=registry)

        self._decisions = counter(
            "captf_reconcile_op_decisions", "Decisions of passes.", "kind", "op", "reason"
        )
        self._unreadable = counter(
            "captf_state_read_errors", "Changes to an unusable state.", "kind", "reason"
        )
        self._invalid = counter(
            "captf_outputs_invalid", "Changes to invalid outputs.", "kind", "reason"
        )
        self._unlocks = counter(
            "captf_lock_force_unlocks", "Stale state locks removed by force.", "kind"
        )
        self._waits = counter(
            "captf_lease_waits", "Waits for a lease or a Job slot.", "kind", "reason"
        )
        self._denied = counter("captf_identity_denied", "Refused identities.", "reason")
        self._remediations = counter(
            "captf_remediation_requests", "Machines marked for replacement, and unmarked.", "action"
        )
        self._backups = counter(
            "captf_state_backups", "Backups of states taken, pruned or skipped.", "kind", "result"
        )
        self._restores = counter(
            "captf_state_restores", "Restores of states that were asked for.", "kind", "result"
        )
        self._plans = counter(
            "captf_plan_approvals", "Plans made, approved and ended.", "kind", "result"
        )
        self._consumed = counter(
            "captf_destructive_plan_approvals_consumed",
            "Approved plans applied that delete or replace.",
            "kind",
        )
        self._hashes = counter(
            "captf_inputs_hash_changes", "Applies and plans started for changed inputs.", "kind"
        )

    def run_finished(self, kind: str, run: CountedRun) -> None:
        op = run.run.op.value
        result = run.result.replace("-", "_")
        self._finished.labels(kind, op, result).inc()
        if run.duration > 0:
            self._duration.labels(kind, op, result).observe(run.duration)
        if run.queue_time is not None:
            self._queued.labels(kind, op).observe(run.queue_time)
        if run.run.ok:
            self._attempts.labels(kind, op).observe(run.retry)
        else:
            self._errors.labels(kind, op, *_error_labels(run)).inc()
        self._from_result(kind, op, run)

    def _from_result(self, kind: str, op: str, run: CountedRun) -> None:
        result = run.run.result
        if result is None:
            return
        for step in result.steps:
            if step.seconds >= 0:
                self._steps.labels(kind, op, step_label(step.name)).observe(step.seconds)
        if result.changes is not None and run.run.op in (Op.APPLY, Op.DESTROY):
            for action, count in zip(ACTIONS, _changes(result.changes), strict=True):
                if count > 0:
                    self._changed.labels(kind, op, action).inc(count)
        drift = result.drift
        if drift is not None and drift.detected and run.run.op is Op.DRIFT:
            counts = {
                "add": drift.create + drift.replace,
                "change": drift.update,
                "destroy": drift.delete + drift.replace,
            }
            for action, count in counts.items():
                if count > 0:
                    self._drifted.labels(kind, action).inc(count)

    def decided(self, kind: str, op: str, reason: str) -> None:
        self._decisions.labels(kind, op, reason).inc()

    def lease_wait(self, kind: str, reason: str) -> None:
        self._waits.labels(kind, reason).inc()

    def state_unreadable(self, kind: str, reason: str) -> None:
        self._unreadable.labels(kind, reason).inc()

    def outputs_invalid(self, kind: str, reason: str) -> None:
        self._invalid.labels(kind, reason).inc()

    def identity_denied(self, reason: str) -> None:
        self._denied.labels(reason).inc()

    def inputs_changed(self, kind: str) -> None:
        self._hashes.labels(kind).inc()

    def state_backup(self, kind: str, result: str) -> None:
        self._backups.labels(kind, result).inc()

    def state_restore(self, kind: str, result: str) -> None:
        self._restores.labels(kind, result).inc()

    def remediation(self, action: str) -> None:
        self._remediations.labels(action).inc()

    def plan_moved(self, kind: str, result: str, *, destructive: bool) -> None:
        self._plans.labels(kind, result).inc()
        if destructive and result == "applied":
            self._consumed.labels(kind).inc()

    def force_unlocked(self, kind: str) -> None:
        self._unlocks.labels(kind).inc()

    def show(self, kind: str, namespace: str, name: str, gauges: Gauges) -> None:
        self._shown.show((kind, namespace, name), gauges)

    def forget(self, kind: str, namespace: str, name: str) -> None:
        self._shown.forget((kind, namespace, name))


def _changes(changes: wire.Changes) -> tuple[int, ...]:
    """In the order of `ACTIONS`."""
    return changes.add, changes.change, changes.destroy, changes.imported


def _error_labels(run: CountedRun) -> tuple[str, str]:
    result = run.run.result
    if result is None or result.error is None:
        return ("deadline" if run.run.deadline else "unknown"), "none"
    step = result.error.step
    return result.error_kind, step_label(step) if step else "none"


class ActiveJobs(Collector):
    """Running managed Jobs, counted from the cache when somebody asks."""

    def __init__(self, running: Callable[[], Sequence[Job]]) -> None:
        self._jobs = running

    def describe(self) -> Iterable[Metric]:
        return [self._family()]

    def collect(self) -> Iterable[Metric]:
        counts: dict[tuple[str, str], int] = {}
        for job in self._jobs():
            kind, op = job.metadata.labels.get(keys.OWNER_KIND, ""), op_of(job)
            if kind in KINDS and op is not None:
                counts[kind, op.value] = counts.get((kind, op.value), 0) + 1
        family = self._family()
        for labels, count in sorted(counts.items()):
            family.add_metric(labels, count)
        return [family]

    def _family(self) -> GaugeMetricFamily:
        return GaugeMetricFamily(
            "captf_jobs_active", _alpha("Running Jobs."), labels=("kind", "op")
        )
