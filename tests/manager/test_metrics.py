"""The series and their labels (manager.md: Metrics)."""

import pytest
from prometheus_client import CollectorRegistry

from captfctl.manager.metrics import (
    DURATION_BUCKETS,
    STEP_BUCKETS,
    PrometheusMetrics,
)
from captfctl.model.ops import Op
from captfctl.model.resources import JOBS
from captfctl.reconcile.metrics import Gauges
from captfctl.runs.jobs import is_finished
from captfctl.terraform.books.bookkeeping import CountedRun
from captfctl.terraform.books.results import read_finished
from captfctl.terraform.state.lock import LockTrace
from tests.support.clock import START
from tests.support.cluster_world import World

KIND = "TerraformCluster"


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def metrics(registry: CollectorRegistry) -> PrometheusMetrics:
    return PrometheusMetrics(registry, list)


def finished(world: World, result: str, **document) -> CountedRun:
    """A real first apply that failed with `document` as its runner's result."""
    world.settle(2)
    job = world.active_job()
    world.runner.end(job, ok=result == "succeeded", result={"op": "apply", **document})
    (job,) = world.jobs()
    run = read_finished(world.door, job, Op.APPLY, lock=lambda: LockTrace(version="none"))
    return CountedRun(run=run, result=result, duration=12.0, queue_time=3.0, retry=1)


def test_buckets_are_the_documented_ones():
    assert [round(bound) for bound in DURATION_BUCKETS] == [
        15,
        30,
        59,
        117,
        233,
        463,
        920,
        1826,
        3626,
        7200,
    ]
    assert STEP_BUCKETS[:3] == (1.0, 2.242, 5.027)
    assert (len(STEP_BUCKETS), STEP_BUCKETS[-1]) == (12, 7200.0)


def test_a_run_mints_no_labels_of_its_own(metrics, registry):
    world = World().populate()
    error = {"kind": "surprise", "step": "weird", "tail": ""}
    steps = [{"name": "weird", "exit": 1, "seconds": 2.0}]
    metrics.run_finished(KIND, finished(world, "failed", error=error, steps=steps))
    labels = {"kind": KIND, "op": "apply", "error_kind": "unknown", "step": "other"}
    assert registry.get_sample_value("captf_job_errors_total", labels) == 1
    step = {"kind": KIND, "op": "apply", "step": "other"}
    assert registry.get_sample_value("captf_job_step_duration_seconds_count", step) == 1


def test_a_success_counts_run_duration_attempts_and_changes(metrics, registry):
    world = World().populate()
    changes = {"add": 2, "change": 0, "destroy": 1, "import": 0}
    metrics.run_finished(KIND, finished(world, "succeeded", changes=changes))
    op = {"kind": KIND, "op": "apply"}
    succeeded = op | {"result": "succeeded"}
    assert registry.get_sample_value("captf_jobs_total", succeeded) == 1
    assert registry.get_sample_value("captf_job_duration_seconds_sum", succeeded) == 12
    assert registry.get_sample_value("captf_job_queue_seconds_count", op) == 1
    assert registry.get_sample_value("captf_job_attempts_sum", op) == 1
    changed = "captf_resources_changed_total"
    assert registry.get_sample_value(changed, op | {"action": "add"}) == 2
    assert registry.get_sample_value(changed, op | {"action": "destroy"}) == 1
    assert registry.get_sample_value(changed, op | {"action": "change"}) is None


def test_an_objects_gauges_go_with_it(metrics, registry):
    gauges = Gauges(
        ready=1,
        healthy=-1,
        drift_detected=False,
        state_bytes=900,
        last_success={Op.APPLY: START, Op.DRIFT: START},
    )
    key = {"kind": KIND, "namespace": "team-a", "name": "prod"}
    metrics.show(KIND, "team-a", "prod", gauges)
    assert registry.get_sample_value("captf_ready", key) == 1
    assert registry.get_sample_value("captf_infrastructure_healthy", key) == -1
    assert registry.get_sample_value("captf_state_bytes", key) == 900
    assert registry.get_sample_value("captf_inputs_bytes", key) is None
    success = "captf_last_success_timestamp_seconds"
    assert registry.get_sample_value(success, key | {"op": "apply"}) == START.timestamp()
    metrics.forget(KIND, "team-a", "prod")
    for name in ("captf_ready", "captf_infrastructure_healthy", "captf_state_bytes"):
        assert registry.get_sample_value(name, key) is None
    assert registry.get_sample_value(success, key | {"op": "apply"}) is None


def test_a_pass_that_reads_no_state_leaves_what_is_known_of_it(metrics, registry):
    gauges = {"ready": 1, "healthy": 1, "drift_detected": False}
    metrics.show(KIND, "a", "b", Gauges(**gauges, state_resources=7, inputs_bytes=90))
    metrics.show(KIND, "a", "b", Gauges(**gauges | {"ready": 0}, inputs_bytes=91))
    key = {"kind": KIND, "namespace": "a", "name": "b"}
    assert registry.get_sample_value("captf_ready", key) == 0
    assert registry.get_sample_value("captf_state_resources", key) == 7
    assert registry.get_sample_value("captf_inputs_bytes", key) == 91


def test_a_check_that_is_not_scheduled_any_more_loses_its_series(metrics, registry):
    gauges = {"ready": 1, "healthy": 1, "drift_detected": False}
    metrics.show(KIND, "a", "b", Gauges(**gauges, last_success={Op.DRIFT: START}))
    metrics.show(KIND, "a", "b", Gauges(**gauges))
    labels = {"kind": KIND, "namespace": "a", "name": "b", "op": "drift"}
    assert registry.get_sample_value("captf_last_success_timestamp_seconds", labels) is None


def test_running_jobs_are_counted_when_asked():
    world = World().populate()
    registry = CollectorRegistry()
    PrometheusMetrics(
        registry,
        lambda: [job for job in world.door.list(JOBS).items if not is_finished(job)],
    )
    labels = {"kind": KIND, "op": "apply"}
    assert registry.get_sample_value("captf_jobs_active", labels) is None
    world.settle(2)
    assert registry.get_sample_value("captf_jobs_active", labels) == 1
    world.runner.succeed(world.active_job())
    assert registry.get_sample_value("captf_jobs_active", labels) is None


def test_every_series_says_that_it_may_change(registry, metrics):
    assert all(
        family.documentation.startswith("[ALPHA] ")
        for family in registry.collect()
        if family.name.startswith("captf_")
    )
