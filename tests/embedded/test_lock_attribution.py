"""Which locks are attributed to a dead pod, and which never are
(local-mode.md: Host names and locks)."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from captfctl.cluster.door import Door
from captfctl.embedded.agent import lock_attribution
from captfctl.embedded.agent.lock_attribution import attribute_lock
from captfctl.model import keys
from captfctl.model.core import Container, Pod
from captfctl.model.resources import LEASES
from tests.embedded.support import NAMESPACE, create, new_store

NAME = "lock-tfstate-default-abc-c"
BEGAN, ENDED = 1_790_000_000.0, 1_790_000_100.0
WITHIN = "2026-09-21T14:14:10Z"
INFO = {"ID": "id", "Operation": "apply", "Who": "me@laptop", "Created": WITHIN}
SOURCE = Container(name="source", args=["--backend-config=secret_suffix=abc-c"])


@pytest.fixture
def door(monkeypatch: pytest.MonkeyPatch) -> Iterator[Door]:
    monkeypatch.setattr(lock_attribution, "_other_runtime_lives", lambda: False)
    store = new_store()
    yield store.door()
    store.close()


def held(door: Door, **info: Any) -> None:
    annotations = {keys.LOCK_INFO: json.dumps({**INFO, **info})}
    metadata = {"name": NAME, "annotations": annotations}
    create(door, LEASES, {"metadata": metadata, "spec": {"holderIdentity": "id"}})


def attribute(door: Door, container: Container = SOURCE) -> bool:
    pod = Pod()
    pod.metadata.name, pod.metadata.namespace = "the-pod", NAMESPACE
    return attribute_lock(door, pod, container, "laptop", BEGAN, ENDED)


def who(door: Door) -> str:
    lease = door.get(LEASES, NAME, NAMESPACE)
    return str(json.loads(lease.metadata.annotations[keys.LOCK_INFO])["Who"])


def test_a_lock_made_here_while_the_pod_ran_gets_the_pods_name(door: Door) -> None:
    held(door)
    assert attribute(door)
    assert who(door) == "me@the-pod"
    assert door.get(LEASES, NAME, NAMESPACE).spec.holder_identity == "id"


@pytest.mark.parametrize(
    "info",
    [
        {"Who": "me@another-machine"},
        {"Who": "nobody"},
        {"Created": "2026-09-21T14:10:00Z"},
        {"Created": "2026-09-21T14:20:00Z"},
        {"Created": "whenever"},
    ],
)
def test_a_lock_that_may_be_somebody_elses_is_left_alone(door: Door, info: dict[str, str]) -> None:
    held(door, **info)
    assert not attribute(door)
    assert who(door) == info.get("Who", "me@laptop")


def test_a_lock_is_left_alone_while_another_terraform_runs_on_this_machine(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock_attribution, "_other_runtime_lives", lambda: True)
    held(door)
    assert not attribute(door)


def test_without_a_lock_or_a_state_there_is_nothing_to_do(door: Door) -> None:
    assert not attribute(door)
    assert not attribute(door, Container(name="source"))
