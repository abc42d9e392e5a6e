"""Who wrote what, through a door in the store's process and through the API server."""

from collections.abc import Iterator
from typing import Any

import pytest

from captfctl.clock import SystemClock
from captfctl.cluster.door import Door
from captfctl.cluster.live import LiveDoor
from captfctl.embedded.apiserver.apply import noted_door
from captfctl.model.resource import Document
from captfctl.model.resources import JOBS, LEASES, SECRETS

OWNER = "captf-manager"
POD = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}


@pytest.fixture
def doors(api) -> Iterator[dict[str, Door]]:
    live = LiveDoor.from_kubeconfig(api.server.kubeconfig_path, environ={}, field_owner=OWNER)
    yield {"server": live, "process": noted_door(api.store, OWNER, SystemClock())}
    live.close()


def write(door: Door, resource: Any, namespace: str, name: str, body: Document) -> None:
    """Every way to write an object, and its status where it has one."""
    untyped = resource.untyped()
    meta = {"name": name, "labels": {"a": "1", "b": "1"}}
    kind = {"apiVersion": resource.api_version, "kind": resource.kind}
    door.create(untyped, {**kind, "metadata": meta, **body}, namespace)
    door.patch(untyped, name, namespace, {"metadata": {"labels": {"a": None, "c": "1"}}})
    found = door.get(untyped, name, namespace)
    found["metadata"]["annotations"] = {"d": "1"}
    door.update(untyped, found)
    if resource is JOBS:
        door.patch(untyped, name, namespace, {"status": {"active": 1}}, subresource="status")


@pytest.mark.parametrize(
    ("resource", "body"),
    [
        (SECRETS, {"data": {"k": "djE="}}),
        (LEASES, {"spec": {"holderIdentity": "me"}}),
        (JOBS, {"spec": {"template": {"spec": POD}}}),
    ],
    ids=["secrets", "leases", "jobs"],
)
def test_a_door_notes_its_writes_as_the_api_server_does(api, namespace, doors, resource, body):
    group = f"/apis/{resource.api_version}" if resource.group else "/api/v1"
    noted = {}
    for name, door in doors.items():
        write(door, resource, namespace, name, body)
        path = f"{group}/namespaces/{namespace}/{resource.plural}/{name}"
        entries = api.ok("GET", path)["metadata"]["managedFields"]
        assert {entry["manager"] for entry in entries} == {OWNER}
        noted[name] = [{k: v for k, v in entry.items() if k != "time"} for entry in entries]

    assert noted["process"] == noted["server"]
    assert len(noted["process"]) == (2 if resource is JOBS else 1)


def test_what_is_written_as_it_was_is_not_written(api, namespace, doors):
    door, untyped = doors["process"], SECRETS.untyped()
    write(door, SECRETS, namespace, "same", {"data": {"k": "djE="}})
    before = door.get(untyped, "same", namespace)
    door.patch(untyped, "same", namespace, {"data": {"k": "djE="}})
    assert door.get(untyped, "same", namespace) == before
