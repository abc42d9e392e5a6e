"""Pods: defaults, binding, grace periods."""

import contextlib

import pytest

from captfctl.cluster.errors import AlreadyExists, Conflict, Invalid, NotFound
from captfctl.model.core import ServiceAccount
from captfctl.model.meta import ObjectMeta
from captfctl.model.resource import Document
from captfctl.model.resources import PODS, SERVICE_ACCOUNTS
from tests.contract.widgets import make

RAW = PODS.untyped()
CONTAINER = {"name": "main", "image": "example.test/none:1"}


@pytest.fixture
def place(door, namespace):
    """A namespace in which pods can be created: they run as its default account."""
    with contextlib.suppress(AlreadyExists):
        door.create(
            SERVICE_ACCOUNTS, ServiceAccount(metadata=ObjectMeta(name="default")), namespace
        )
    return namespace


def pod(name="a", **spec):
    return make(name, {"containers": [dict(CONTAINER)]} | spec)


def bind(door, place, node="node-of-the-contract", name="a"):
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    binding = {"metadata": {"name": name, "namespace": place}, "target": target}
    binding |= {"apiVersion": "v1", "kind": "Binding"}
    door.create_subresource(RAW, name, place, "binding", binding, Document)


def end(door, place, name="a"):
    door.delete(RAW, name, place, grace_period_seconds=0)


def is_gone(door, place, name="a") -> bool:
    try:
        door.get(RAW, name, place)
    except NotFound:
        return True
    return False


def test_a_pod_is_filled_in(door, place):
    made = door.create(RAW, pod(), place)
    spec = made["spec"]
    assert spec["restartPolicy"] == "Always"
    assert spec["terminationGracePeriodSeconds"] == 30
    container = spec["containers"][0]
    assert container["terminationMessagePath"] == "/dev/termination-log"
    assert container["terminationMessagePolicy"] == "File"
    assert container["imagePullPolicy"] == "IfNotPresent"
    assert made["status"]["phase"] == "Pending"
    assert made["metadata"]["generation"] == 1


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"containers": []}, "spec.containers"),
        ({"containers": [{"name": "Main", "image": "i"}]}, "spec.containers[0].name"),
        ({"containers": [{"name": "main"}]}, "spec.containers[0].image"),
        ({"containers": [CONTAINER, CONTAINER]}, "spec.containers[1].name"),
        ({"restartPolicy": "Sometimes"}, "spec.restartPolicy"),
        (
            {"containers": [CONTAINER | {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}]},
            "spec.containers[0].volumeMounts[0].name",
        ),
    ],
)
def test_a_pod_is_checked(door, place, spec, field):
    with pytest.raises(Invalid) as caught:
        door.create(RAW, pod(**spec), place)
    assert field in [cause.field for cause in caught.value.causes]


def test_a_pod_is_bound_once(door, place):
    door.create(RAW, pod(), place)
    bind(door, place)
    bound = door.get(RAW, "a", place)
    assert bound["spec"]["nodeName"] == "node-of-the-contract"
    scheduled = [c for c in bound["status"]["conditions"] if c["type"] == "PodScheduled"]
    assert [c["status"] for c in scheduled] == ["True"]
    with pytest.raises(Conflict):
        bind(door, place, "another-node")
    end(door, place)


def test_what_a_pod_runs_cannot_be_changed(door, place):
    door.create(RAW, pod(), place)
    with pytest.raises(Invalid) as caught:
        door.patch(RAW, "a", place, {"spec": {"restartPolicy": "Never"}})
    assert [cause.field for cause in caught.value.causes] == ["spec"]
    with pytest.raises(Invalid):
        door.patch(RAW, "a", place, {"spec": {"nodeName": "by-the-back-door"}})


def test_a_status_is_written_apart(door, place):
    door.create(RAW, pod(), place)
    patched = door.patch(
        RAW,
        "a",
        place,
        {"spec": {"restartPolicy": "Never"}, "status": {"phase": "Running"}},
        subresource="status",
    )
    assert patched["status"]["phase"] == "Running"
    assert patched["spec"]["restartPolicy"] == "Always"


def test_an_unbound_pod_goes_at_once(door, place):
    door.create(RAW, pod(), place)
    door.delete(RAW, "a", place)
    assert is_gone(door, place)


def test_a_bound_pod_waits_for_its_node(door, place):
    door.create(RAW, pod(terminationGracePeriodSeconds=47), place)
    bind(door, place)
    door.delete(RAW, "a", place)
    marked = door.get(RAW, "a", place)["metadata"]
    assert marked["deletionGracePeriodSeconds"] == 47
    assert marked["deletionTimestamp"] > marked["creationTimestamp"]
    end(door, place)
    assert is_gone(door, place)


def test_a_grace_period_can_be_shortened_but_not_extended(door, place):
    door.create(RAW, pod(), place)
    bind(door, place)
    door.delete(RAW, "a", place, grace_period_seconds=20)
    first = door.get(RAW, "a", place)["metadata"]
    door.delete(RAW, "a", place, grace_period_seconds=25)
    assert door.get(RAW, "a", place)["metadata"] == first
    door.delete(RAW, "a", place, grace_period_seconds=5)
    shorter = door.get(RAW, "a", place)["metadata"]
    assert shorter["deletionGracePeriodSeconds"] == 5
    assert shorter["deletionTimestamp"] < first["deletionTimestamp"]
    end(door, place)


def test_a_finished_pod_goes_at_once(door, place):
    door.create(RAW, pod(), place)
    bind(door, place)
    door.patch(RAW, "a", place, {"status": {"phase": "Succeeded"}}, subresource="status")
    door.delete(RAW, "a", place)
    assert is_gone(door, place)


def test_a_finalizer_keeps_a_pod_that_its_node_has_ended(door, place):
    held = pod()
    held["metadata"]["finalizers"] = ["contract.test/hold"]
    door.create(RAW, held, place)
    bind(door, place)
    door.delete(RAW, "a", place)
    end(door, place)
    assert door.get(RAW, "a", place)["metadata"]["deletionGracePeriodSeconds"] == 0
    door.patch(RAW, "a", place, {"metadata": {"finalizers": None}})
    assert is_gone(door, place)


def test_pods_are_selected_by_node_and_phase(door, place):
    for name in ("a", "b"):
        door.create(RAW, pod(name), place)
    bind(door, place, name="b")

    def found(fields):
        page = door.list(RAW, place, fields=fields)
        return [item["metadata"]["name"] for item in page.items]

    assert found("spec.nodeName=node-of-the-contract") == ["b"]
    assert found("spec.nodeName=") == ["a"]
    assert found("status.phase=Pending") == ["a", "b"]
    assert found("status.phase!=Pending") == []
    assert found("metadata.name=a,status.phase=Pending") == ["a"]
    end(door, place, "b")
