"""The scheduler: pods go to the one ready node."""

from captfctl.clock import SystemClock
from captfctl.embedded.scheduler import Scheduler
from captfctl.model.resources import EVENTS, NODES, PODS
from tests.embedded.support import NAMESPACE, create, job, new_store, ready_node, running, until


def pod(name: str) -> dict[str, object]:
    return {"metadata": {"name": name}, "spec": job("x")["spec"]["template"]["spec"]}


def test_a_pod_is_bound_to_the_ready_node_and_says_so() -> None:
    door = new_store().door()
    ready_node(door, "only")
    with running(Scheduler(door, SystemClock())):
        create(door, PODS, pod("a"))
        until(lambda: door.get(PODS, "a", NAMESPACE).spec.node_name == "only")
        until(
            lambda: (
                ("PodScheduled", "True")
                in [(c.type, c.status) for c in door.get(PODS, "a", NAMESPACE).status.conditions]
            )
        )
        until(lambda: [e.reason for e in door.list(EVENTS, NAMESPACE).items] == ["Scheduled"])


def test_without_a_ready_node_the_pod_waits_and_says_why() -> None:
    door = new_store().door()
    create(door, NODES, {"metadata": {"name": "down"}})
    with running(Scheduler(door, SystemClock())):
        create(door, PODS, pod("a"))
        found = until(lambda: door.get(PODS, "a", NAMESPACE).status.conditions)[0]
        assert (found.type, found.status, found.reason) == (
            "PodScheduled",
            "False",
            "Unschedulable",
        )
        assert "0/1 nodes" in found.message
        ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
        door.patch(NODES, "down", "", ready, subresource="status")
        until(lambda: door.get(PODS, "a", NAMESPACE).spec.node_name == "down")


def test_a_cordoned_node_gets_nothing() -> None:
    door = new_store().door()
    ready_node(door, "cordoned")
    door.patch(NODES, "cordoned", "", {"spec": {"unschedulable": True}})
    with running(Scheduler(door, SystemClock())):
        create(door, PODS, pod("a"))
        until(lambda: door.get(PODS, "a", NAMESPACE).status.conditions)
        assert door.get(PODS, "a", NAMESPACE).spec.node_name == ""
