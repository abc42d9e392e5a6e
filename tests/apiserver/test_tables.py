"""Tables and ages, as far as kubectl's own tests do not reach them."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from captfctl.clock import SystemClock
from captfctl.embedded.apiserver.tables import IncludeObject, cell_of, table
from captfctl.embedded.store import EmbeddedStore, PrinterColumn
from captfctl.model.durations import human_duration

NOW = datetime(2026, 9, 25, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def registry():
    store = EmbeddedStore.in_memory(SystemClock())
    yield store.registry
    store.close()


def cells(registry, group, plural, document):
    served = registry.find(group, "v1", plural)
    body = json.dumps(document).encode()
    found = json.loads(table(served, [body], NOW, include=IncludeObject.NONE))
    names = [column["name"] for column in found["columnDefinitions"]]
    return dict(zip(names, found["rows"][0]["cells"], strict=True))


@pytest.mark.parametrize(
    ("span", "text"),
    [
        (timedelta(seconds=-5), "<invalid>"),
        (timedelta(seconds=-1), "0s"),
        (timedelta(seconds=119), "119s"),
        (timedelta(seconds=120), "2m"),
        (timedelta(seconds=125), "2m5s"),
        (timedelta(minutes=10, seconds=5), "10m"),
        (timedelta(minutes=179), "179m"),
        (timedelta(hours=3), "3h"),
        (timedelta(hours=7, minutes=59), "7h59m"),
        (timedelta(hours=47), "47h"),
        (timedelta(hours=49), "2d1h"),
        (timedelta(days=7, hours=23), "7d23h"),
        (timedelta(days=8, hours=5), "8d"),
        (timedelta(days=729), "729d"),
        (timedelta(days=800), "2y70d"),
        (timedelta(days=9 * 365), "9y"),
    ],
)
def test_durations_are_written_as_kubectl_writes_them(span, text):
    assert human_duration(span) == text


def job(*conditions, **metadata):
    return {
        "metadata": {"name": "j", "creationTimestamp": "2026-09-25T11:59:00Z", **metadata},
        "spec": {"template": {"spec": {"containers": []}}},
        "status": {"conditions": [{"type": c, "status": "True"} for c in conditions]},
    }


@pytest.mark.parametrize(
    ("document", "status"),
    [
        (job(), "Running"),
        (job("Complete"), "Complete"),
        (job("FailureTarget"), "FailureTarget"),
        (job("FailureTarget", "Failed"), "Failed"),
        (job("Suspended"), "Suspended"),
        (job("Suspended", deletionTimestamp="2026-09-25T11:59:30Z"), "Terminating"),
        (job("Failed", deletionTimestamp="2026-09-25T11:59:30Z"), "Failed"),
    ],
)
def test_a_jobs_status(registry, document, status):
    row = cells(registry, "batch", "jobs", document)
    assert row["Status"] == status
    assert row["Age"] == "60s"


def pod(phase, main=None, init=None, **metadata):
    status = {"phase": phase}
    for key, state in (("containerStatuses", main), ("initContainerStatuses", init)):
        if state is not None:
            status[key] = [{"name": "c", "ready": "running" in state, "state": state}]
    containers = [{"name": "c"}]
    return {
        "metadata": {"name": "p", **metadata},
        "spec": {"containers": containers, "initContainers": containers if init else []},
        "status": status,
    }


RUNNING = {"running": {}}
ENDED = {"terminated": {"exitCode": 0, "reason": "Completed"}}


@pytest.mark.parametrize(
    ("document", "status"),
    [
        (pod("Pending"), "Pending"),
        (pod("Pending", {"waiting": {"reason": "ImageMissing"}}), "ImageMissing"),
        (pod("Pending", init=RUNNING), "Init:0/1"),
        (pod("Pending", init={"waiting": {"reason": "PodInitializing"}}), "Init:0/1"),
        (pod("Pending", init={"terminated": {"exitCode": 3}}), "Init:ExitCode:3"),
        (pod("Running", RUNNING, init=ENDED), "Running"),
        (pod("Running", RUNNING, deletionTimestamp="2026-09-25T11:59:30Z"), "Terminating"),
        (pod("Succeeded", ENDED), "Completed"),
        (pod("Succeeded", ENDED, deletionTimestamp="2026-09-25T11:59:30Z"), "Completed"),
        (pod("Failed", {"terminated": {"exitCode": 2}}), "ExitCode:2"),
        (pod("Failed", {"terminated": {"exitCode": 137, "signal": 9}}), "Signal:9"),
    ],
)
def test_a_pods_status(registry, document, status):
    assert cells(registry, "", "pods", document)["Status"] == status


def test_an_event_with_a_series(registry):
    row = cells(
        registry,
        "events.k8s.io",
        "events",
        {
            "metadata": {"name": "e"},
            "eventTime": "2026-09-25T11:00:00.000000Z",
            "series": {"count": 4, "lastObservedTime": "2026-09-25T11:59:50.000000Z"},
            "regarding": {"kind": "Job", "name": "j"},
            "reportingController": "captf.io/manager",
            "note": "said\n",
        },
    )
    assert row["Last Seen"] == "10s"
    assert row["First Seen"] == "60m"
    assert (row["Count"], row["Object"], row["Message"]) == (4, "job/j", "said")


def column(type_, path):
    return PrinterColumn("Column", type_, path)


@pytest.mark.parametrize(
    ("type_", "path", "cell"),
    [
        ("string", ".spec.text", "x"),
        ("string", ".spec.number", "3"),
        ("string", ".spec.flag", "true"),
        ("string", ".spec.map", '{"a":1}'),
        ("integer", ".spec.number", 3),
        ("integer", ".spec.text", None),
        ("integer", ".spec.flag", None),
        ("number", ".spec.number", 3),
        ("boolean", ".spec.flag", True),
        ("boolean", ".spec.text", None),
        ("date", ".spec.time", "60s"),
        ("date", ".spec.number", None),
        ("string", ".spec.absent", None),
        ("string", ".spec.nothing", None),
        ("string", ".spec[", None),
    ],
)
def test_a_cell_has_its_columns_type(type_, path, cell):
    document = {
        "spec": {
            "text": "x",
            "number": 3,
            "flag": True,
            "map": {"a": 1},
            "time": "2026-09-25T11:59:00Z",
            "nothing": None,
        }
    }
    assert cell_of(column(type_, path), document, NOW) == cell
