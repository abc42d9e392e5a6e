"""A namespace that is being deleted takes nothing new; what is in it can still be changed."""

from collections.abc import Iterator

import pytest

from captfctl.cluster.errors import Cause, NamespaceTerminating
from captfctl.model.core import Namespace
from captfctl.model.meta import ObjectMeta
from captfctl.model.resource import Document, Resource
from captfctl.model.resources import (
    CONFIG_MAPS,
    EVENTS,
    JOBS,
    LEASES,
    NAMESPACES,
    ROLE_BINDINGS,
    SECRETS,
    SERVICE_ACCOUNTS,
)
from tests.contract.widgets import make

HELD = "held"
FINALIZER = "contract.test/hold"

JOB_SPEC: Document = {
    "template": {
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "registry.example.com/m:v1"}],
        }
    }
}
ROLE_REF = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
EVENT: Document = {
    "eventTime": "2026-01-01T00:00:00.000000Z",
    "reportingController": "contract.test/it",
    "reportingInstance": "it-1",
    "action": "Try",
    "reason": "Tried",
    "type": "Normal",
}
CREATES: list[tuple[Resource[Document], Document]] = [
    (SECRETS.untyped(), {}),
    (CONFIG_MAPS.untyped(), {}),
    (SERVICE_ACCOUNTS.untyped(), {}),
    (ROLE_BINDINGS.untyped(), {"roleRef": ROLE_REF}),
    (LEASES.untyped(), {"spec": {"holderIdentity": "it"}}),
    (JOBS.untyped(), {"spec": JOB_SPEC}),
    (EVENTS.untyped(), EVENT),
]


@pytest.fixture
def dying(door) -> Iterator[str]:
    """A namespace that is being deleted, and is kept by a Secret with a finalizer."""
    made = door.create(NAMESPACES, Namespace(metadata=ObjectMeta(generate_name="contract-dying-")))
    name = made.metadata.name
    door.create(SECRETS.untyped(), make(HELD, finalizers=[FINALIZER]), name)
    door.delete(NAMESPACES, name)
    yield name
    door.patch(SECRETS.untyped(), HELD, name, {"metadata": {"finalizers": None}})


def refusal(resource: str, name: str, namespace: str) -> str:
    return (
        f'{resource} "{name}" is forbidden: unable to create new content in namespace {namespace} '
        "because it is being terminated"
    )


def causes(namespace: str) -> tuple[Cause, ...]:
    message = f"namespace {namespace} is being terminated"
    return (Cause("metadata.namespace", message, "NamespaceTerminating"),)


@pytest.mark.parametrize(
    ("resource", "more"), CREATES, ids=lambda value: getattr(value, "plural", "")
)
def test_nothing_new_is_created(door, dying, resource, more):
    with pytest.raises(NamespaceTerminating) as caught:
        door.create(resource, make("new") | more, dying)
    assert caught.value.what == refusal(resource.name, "new", dying)
    assert caught.value.causes == causes(dying)


def test_no_custom_resource_is_created(door, dying, widget):
    with pytest.raises(NamespaceTerminating) as caught:
        door.create(widget, make("new", {"x": 1}), dying)
    assert caught.value.what == refusal(widget.name, "new", dying)


def test_a_name_that_would_be_generated_is_not(door, dying):
    fresh = {"metadata": {"generateName": "new-"}}
    with pytest.raises(NamespaceTerminating) as caught:
        door.create(SECRETS.untyped(), fresh, dying)
    assert caught.value.what == refusal("secrets", "new-", dying)


def test_what_exists_can_be_read_and_changed(door, dying):
    changed = door.patch(SECRETS.untyped(), HELD, dying, {"metadata": {"labels": {"a": "b"}}})
    assert changed["metadata"]["labels"] == {"a": "b"}
    replaced = door.update(SECRETS.untyped(), changed | {"stringData": {"k": "v"}})
    assert "k" in replaced["data"]
    assert door.get(SECRETS.untyped(), HELD, dying)["metadata"]["name"] == HELD
    door.delete(SECRETS.untyped(), HELD, dying)


def test_a_name_that_is_taken_is_refused_for_the_namespace(door, dying):
    with pytest.raises(NamespaceTerminating):
        door.create(SECRETS.untyped(), make(HELD), dying)
