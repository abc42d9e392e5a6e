"""CustomResourceDefinitions themselves."""

import uuid

import pytest

from captfctl.cluster.errors import ApiError, Invalid, NotFound
from captfctl.model.resource import Document, Resource
from captfctl.model.resources import CRDS
from tests.contract import widgets
from tests.contract.widgets import make


def group() -> str:
    return f"g{uuid.uuid4().hex[:10]}.contract.test"


def test_an_accepted_definition_is_established(door, definitions):
    resource = definitions.install()
    found = door.get(CRDS, f"widgets.{resource.group}")
    conditions = {c["type"]: c["status"] for c in found.status["conditions"]}
    assert conditions["Established"] == "True"
    assert conditions["NamesAccepted"] == "True"
    assert found.status["storedVersions"] == ["v1"]
    assert found.status["acceptedNames"]["singular"] == "widget"
    assert found.status["acceptedNames"]["listKind"] == "WidgetList"


def damaged(**damage):
    definition = widgets.definition(group())
    for path, value in damage.items():
        target = definition.spec
        *parents, last = path.split("__")
        for part in parents:
            target = target[int(part) if part.isdigit() else part]
        if value is None:
            target.pop(last, None)
        else:
            target[last] = value
    return definition


SCHEMA = "versions__0__schema__openAPIV3Schema"


@pytest.mark.parametrize(
    "damage",
    [
        {"scope": "Galaxy"},
        {"names__plural": "others"},
        {"names__kind": None},
        {"versions__0__storage": False},
        {"versions__0__schema": None},
        {f"{SCHEMA}__type": "string"},
        {f"{SCHEMA}__properties__spec": {"properties": {"a": {"type": "string"}}}},
        {f"{SCHEMA}__properties__spec": {"type": "text"}},
        {f"{SCHEMA}__properties__spec": {"type": "array"}},
        {f"{SCHEMA}__properties__spec": {"type": "string", "pattern": "("}},
        {f"{SCHEMA}__properties__spec": {"type": "integer", "default": "x"}},
        {
            f"{SCHEMA}__properties__spec": {
                "type": "object",
                "x-kubernetes-validations": [{"rule": "self.a =="}],
            }
        },
        {
            f"{SCHEMA}__properties__spec": {
                "type": "object",
                "x-kubernetes-validations": [{"rule": "noSuchFunction(self)"}],
            }
        },
        {
            f"{SCHEMA}__properties__spec": {
                "type": "object",
                "properties": {"a": {"type": "string"}},
                "additionalProperties": {"type": "string"},
            }
        },
    ],
    ids=str,
)
def test_a_definition_that_is_none_is_refused(door, damage):
    definition = damaged(**damage)
    with pytest.raises(Invalid):
        door.create(CRDS, definition)
    with pytest.raises(NotFound):
        door.get(CRDS, definition.metadata.name)


def test_scope_and_kind_are_for_good(door, definitions):
    resource = definitions.install()
    name = f"widgets.{resource.group}"
    with pytest.raises(Invalid):
        door.patch(CRDS, name, "", {"spec": {"scope": "Cluster"}})


def test_deleting_a_definition_deletes_its_objects(door, namespace, definitions, eventually):
    resource = definitions.install()
    door.create(resource, make("a"), namespace)
    door.delete(CRDS, f"widgets.{resource.group}")

    def gone() -> bool:
        try:
            door.get(CRDS, f"widgets.{resource.group}")
        except NotFound:
            return True
        return False

    eventually(gone)
    with pytest.raises(NotFound):
        door.get(resource, "a", namespace)
    with pytest.raises(NotFound):
        door.list(resource, namespace)


def test_a_definition_waits_for_its_objects_finalizers(door, namespace, definitions, eventually):
    resource = definitions.install()
    door.create(resource, make("a", finalizers=["contract.test/hold"]), namespace)
    name = f"widgets.{resource.group}"
    door.delete(CRDS, name)
    eventually(lambda: "deletionTimestamp" in door.get(resource, "a", namespace)["metadata"])
    with pytest.raises(ApiError):
        door.create(resource, make("b"), namespace)
    assert door.get(CRDS, name).deleting
    door.patch(resource, "a", namespace, {"metadata": {"finalizers": None}})

    def gone() -> bool:
        try:
            door.get(CRDS, name)
        except NotFound:
            return True
        return False

    eventually(gone)


def test_a_definition_can_come_again(door, namespace, eventually):
    definition = widgets.definition(group())
    name = definition.metadata.name
    resource = Resource(definition.spec["group"], "v1", "Widget", "widgets", True, Document)

    def served() -> bool:
        door.list(resource)
        return True

    def gone() -> bool:
        try:
            door.get(CRDS, name)
        except NotFound:
            return True
        return False

    for _ in range(2):
        door.create(CRDS, definition)
        eventually(served)
        assert door.list(resource, namespace).items == []
        eventually(lambda: bool(door.create(resource, make("a"), namespace)))
        door.delete(CRDS, name)
        eventually(gone)


def test_versions_show_the_same_object(door, namespace, eventually):
    definition = widgets.definition(group())
    first = definition.spec["versions"][0]
    definition.spec["versions"].append(first | {"name": "v2", "storage": False})
    door.create(CRDS, definition)
    v1 = Resource(definition.spec["group"], "v1", "Widget", "widgets", True, Document)
    v2 = Resource(definition.spec["group"], "v2", "Widget", "widgets", True, Document)
    eventually(lambda: bool(door.create(v2, make("a", {"x": 1}), namespace)))
    assert door.get(v1, "a", namespace)["apiVersion"] == v1.api_version
    assert door.get(v2, "a", namespace)["apiVersion"] == v2.api_version
    door.patch(v1, "a", namespace, {"spec": {"x": 2}})
    (listed,) = door.list(v2, namespace).items
    assert (listed["apiVersion"], listed["spec"]) == (v2.api_version, {"x": 2})
    door.delete(CRDS, definition.metadata.name)
