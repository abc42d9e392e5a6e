"""The status subresource, and what the generation counts."""

import pytest

from captfctl.cluster.errors import Conflict, NotFound
from captfctl.model.core import ConfigMap
from captfctl.model.meta import ObjectMeta
from captfctl.model.resources import CONFIG_MAPS
from tests.contract.widgets import make, version


def generation(obj) -> int:
    return obj["metadata"]["generation"]


def test_a_status_is_not_created_with_its_object(door, namespace, widget):
    made = door.create(widget, make("a", {"x": 1}) | {"status": {"phase": "Up"}}, namespace)
    assert "status" not in made
    assert "status" not in door.get(widget, "a", namespace)


def test_a_write_to_the_object_leaves_the_status_alone(door, namespace, widget):
    door.create(widget, make("a", {"x": 1}), namespace)
    door.patch(widget, "a", namespace, {"status": {"phase": "Up"}}, subresource="status")
    patched = door.patch(widget, "a", namespace, {"spec": {"x": 2}, "status": {"phase": "Down"}})
    assert patched["status"] == {"phase": "Up"}
    del patched["status"]
    assert door.update(widget, patched)["status"] == {"phase": "Up"}


def test_a_write_to_the_status_changes_nothing_else(door, namespace, widget):
    door.create(widget, make("a", {"x": 1}, labels={"l": "1"}), namespace)
    patch = {
        "metadata": {"labels": {"l": "2"}, "annotations": {"n": "1"}},
        "spec": {"x": 2},
        "status": {"phase": "Up"},
    }
    patched = door.patch(widget, "a", namespace, patch, subresource="status")
    assert patched["status"] == {"phase": "Up"}
    assert patched["spec"] == {"x": 1}
    assert patched["metadata"]["labels"] == {"l": "1"}
    assert "annotations" not in patched["metadata"]


def test_a_status_can_be_replaced_and_removed(door, namespace, widget):
    made = door.create(widget, make("a"), namespace)
    made["status"] = {"phase": "Up", "old": True}
    made = door.update(widget, made, subresource="status")
    made["status"] = {"phase": "Down"}
    made = door.update(widget, made, subresource="status")
    assert made["status"] == {"phase": "Down"}
    removed = door.patch(widget, "a", namespace, {"status": None}, subresource="status")
    assert "status" not in removed


def test_a_stale_status_write_is_a_conflict(door, namespace, widget):
    stale = door.create(widget, make("a"), namespace)
    door.patch(widget, "a", namespace, {"status": {"n": 1}}, subresource="status")
    stale["status"] = {"n": 2}
    with pytest.raises(Conflict):
        door.update(widget, stale, subresource="status")
    with pytest.raises(Conflict):
        door.patch(
            widget,
            "a",
            namespace,
            {"status": {"n": 2}},
            resource_version=version(stale),
            subresource="status",
        )


def test_only_changes_of_the_specification_count(door, namespace, widget):
    made = door.create(widget, make("a", {"x": 1}), namespace)
    assert generation(made) == 1
    labelled = door.patch(widget, "a", namespace, {"metadata": {"labels": {"l": "v"}}})
    assert generation(labelled) == 1
    reported = door.patch(widget, "a", namespace, {"status": {"n": 1}}, subresource="status")
    assert generation(reported) == 1
    changed = door.patch(widget, "a", namespace, {"spec": {"x": 2}})
    assert generation(changed) == 2
    same = door.patch(widget, "a", namespace, {"spec": {"x": 2}})
    assert generation(same) == 2


def test_fields_beside_the_specification_count_too(door, definitions, namespace):
    schema = {
        "openAPIV3Schema": {
            "type": "object",
            "properties": {"spec": {"type": "object"}, "extra": {"type": "string"}},
        }
    }
    resource = definitions.install(root=schema["openAPIV3Schema"])
    door.create(resource, make("a") | {"extra": "1"}, namespace)
    changed = door.patch(resource, "a", namespace, {"extra": "2"})
    assert generation(changed) == 2


def test_a_writer_cannot_set_the_generation(door, namespace, widget):
    made = door.create(widget, make("a", {"x": 1}), namespace)
    made["metadata"]["generation"] = 99
    made["spec"] = {"x": 2}
    assert generation(door.update(widget, made)) == 2


def test_without_a_status_subresource_the_status_is_part_of_the_object(door, namespace, plain):
    made = door.create(plain, make("a") | {"status": {"n": 1}}, namespace)
    assert made["status"] == {"n": 1}
    changed = door.patch(plain, "a", namespace, {"status": {"n": 2}})
    assert changed["status"] == {"n": 2}
    assert generation(changed) == 2
    with pytest.raises(NotFound):
        door.patch(plain, "a", namespace, {"status": {"n": 3}}, subresource="status")


def test_data_kinds_have_no_generation(door, namespace):
    made = door.create(
        CONFIG_MAPS, ConfigMap(metadata=ObjectMeta(name="a"), data={"k": "1"}), namespace
    )
    assert made.metadata.generation == 0
    changed = door.patch(CONFIG_MAPS, "a", namespace, {"data": {"k": "2"}})
    assert changed.metadata.generation == 0
    assert changed.metadata.resource_version != made.metadata.resource_version
