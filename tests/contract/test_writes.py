"""Creating, reading, replacing and patching."""

import re
import uuid

import pytest

from captfctl.cluster.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Invalid,
    NotFound,
    TooLarge,
)
from captfctl.model.core import ConfigMap
from captfctl.model.meta import ObjectMeta, parse_time
from captfctl.model.resource import Document, Resource
from captfctl.model.resources import CONFIG_MAPS
from tests.contract.widgets import make, version


def test_create_answers_with_what_the_server_sets(door, namespace, widget):
    made = door.create(widget, make("a", {"x": 1}), namespace)
    meta = made["metadata"]
    assert made["kind"] == "Widget"
    assert made["apiVersion"] == widget.api_version
    assert uuid.UUID(meta["uid"])
    assert parse_time(meta["creationTimestamp"]) is not None
    assert int(meta["resourceVersion"]) > 0
    assert meta["namespace"] == namespace
    assert meta["generation"] == 1
    assert made["spec"] == {"x": 1}


def test_what_was_created_can_be_read(door, namespace, widget):
    made = door.create(widget, make("a", {"x": 1}, labels={"l": "v"}), namespace)
    assert door.get(widget, "a", namespace) == made


def test_a_missing_object_is_not_found_by_its_full_resource_name(door, namespace, widget):
    with pytest.raises(NotFound) as caught:
        door.get(widget, "nobody", namespace)
    assert f'{widget.name} "nobody" not found' in str(caught.value)


def test_a_resource_nobody_serves_is_not_found(door, namespace):
    absent = Resource("absent.contract.test", "v1", "Absent", "absents", True, Document)
    with pytest.raises(NotFound):
        door.list(absent, namespace)
    with pytest.raises(NotFound):
        door.create(absent, make("a"), namespace)


def test_a_name_is_given_once(door, namespace, widget):
    door.create(widget, make("a"), namespace)
    with pytest.raises(AlreadyExists) as caught:
        door.create(widget, make("a"), namespace)
    assert f'{widget.name} "a" already exists' in str(caught.value)


def test_the_same_name_in_another_namespace_is_another_object(door, namespace, widget):
    door.create(widget, make("a"), namespace)
    with pytest.raises(NotFound):
        door.get(widget, "a", "default")


def test_generate_name_draws_a_fresh_name_each_time(door, namespace, widget):
    found = {
        door.create(widget, {"metadata": {"generateName": "run-"}}, namespace)["metadata"]["name"]
        for _ in range(20)
    }
    assert len(found) == 20
    assert all(re.fullmatch(r"run-[a-z0-9]{5}", name) for name in found)


def test_without_any_name_nothing_is_created(door, namespace, widget):
    with pytest.raises(Invalid) as caught:
        door.create(widget, {"metadata": {}}, namespace)
    assert [cause.field for cause in caught.value.causes] == ["metadata.name"]


@pytest.mark.parametrize("name", ["Upper", "with_underscore", "-dash", "dot.", "a" * 254])
def test_names_must_be_dns_subdomains(door, namespace, widget, name):
    with pytest.raises(Invalid) as caught:
        door.create(widget, make(name), namespace)
    assert "metadata.name" in [cause.field for cause in caught.value.causes]


def test_a_long_dotted_name_is_fine(door, namespace, widget):
    name = ".".join(["a" * 60] * 4)
    assert door.create(widget, make(name), namespace)["metadata"]["name"] == name


@pytest.mark.parametrize(
    ("metadata", "field"),
    [
        ({"labels": {"a": "not a value"}}, "metadata.labels"),
        ({"labels": {"not a key": "v"}}, "metadata.labels"),
        ({"labels": {"a": "v" * 64}}, "metadata.labels"),
        ({"annotations": {"not a key": "v"}}, "metadata.annotations"),
        ({"finalizers": ["not a finalizer"]}, "metadata.finalizers"),
    ],
)
def test_metadata_is_checked(door, namespace, widget, metadata, field):
    with pytest.raises(Invalid) as caught:
        door.create(widget, make("a", **metadata), namespace)
    assert all(cause.field.startswith(field) for cause in caught.value.causes)


def test_nothing_is_created_in_a_namespace_that_does_not_exist(door, widget):
    with pytest.raises(NotFound) as caught:
        door.create(widget, make("a"), "no-such-namespace")
    assert 'namespaces "no-such-namespace" not found' in str(caught.value)


def test_every_write_has_a_larger_version(door, namespace, widget):
    versions = [int(version(door.create(widget, make("a"), namespace)))]
    for x in range(3):
        patched = door.patch(widget, "a", namespace, {"spec": {"x": x}})
        versions.append(int(version(patched)))
    versions.append(int(version(door.create(widget, make("b"), namespace))))
    assert versions == sorted(set(versions))


def test_a_change_that_changes_nothing_is_no_write(door, namespace, widget):
    made = door.create(widget, make("a", {"x": 1}), namespace)
    same = door.patch(widget, "a", namespace, {"spec": {"x": 1}})
    assert version(same) == version(made)
    assert version(door.update(widget, same)) == version(made)


def test_replacing_with_the_version_that_was_read_succeeds(door, namespace, widget):
    made = door.create(widget, make("a", {"x": 1, "y": 1}), namespace)
    made["spec"] = {"x": 2}
    assert door.update(widget, made)["spec"] == {"x": 2}
    assert door.get(widget, "a", namespace)["spec"] == {"x": 2}


def test_replacing_a_newer_version_is_a_conflict(door, namespace, widget):
    stale = door.create(widget, make("a", {"x": 1}), namespace)
    door.patch(widget, "a", namespace, {"spec": {"x": 2}})
    stale["spec"] = {"x": 3}
    with pytest.raises(Conflict) as caught:
        door.update(widget, stale)
    assert f'"{stale["metadata"]["name"]}"' in str(caught.value)
    assert door.get(widget, "a", namespace)["spec"] == {"x": 2}


def test_a_custom_resource_is_not_replaced_without_a_version(door, namespace, widget):
    made = door.create(widget, make("a"), namespace)
    del made["metadata"]["resourceVersion"]
    with pytest.raises(Invalid) as caught:
        door.update(widget, made)
    assert [cause.field for cause in caught.value.causes] == ["metadata.resourceVersion"]


def test_a_config_map_is_replaced_without_a_version(door, namespace):
    door.create(CONFIG_MAPS, ConfigMap(metadata=ObjectMeta(name="a"), data={"k": "1"}), namespace)
    blind = ConfigMap(metadata=ObjectMeta(name="a", namespace=namespace), data={"k": "2"})
    assert door.update(CONFIG_MAPS, blind).data == {"k": "2"}


def test_replacing_an_object_of_another_uid_is_a_conflict(door, namespace, widget):
    first = door.create(widget, make("a"), namespace)
    door.delete(widget, "a", namespace)
    second = door.create(widget, make("a"), namespace)
    second["metadata"]["uid"] = first["metadata"]["uid"]
    second["spec"] = {"x": 1}
    with pytest.raises(Conflict):
        door.update(widget, second)


def test_replacing_what_does_not_exist_is_refused(door, namespace, widget):
    made = door.create(widget, make("a"), namespace)
    door.delete(widget, "a", namespace)
    with pytest.raises(NotFound):
        door.update(widget, made)


def test_a_patch_merges_and_null_removes(door, namespace, widget):
    door.create(widget, make("a", {"keep": 1, "drop": 2, "deep": {"a": 1, "b": 2}}), namespace)
    patch = {"spec": {"drop": None, "deep": {"a": None}, "list": [1, {"n": 1}]}}
    patched = door.patch(widget, "a", namespace, patch)
    assert patched["spec"] == {"keep": 1, "deep": {"b": 2}, "list": [1, {"n": 1}]}


def test_a_patch_of_the_version_that_was_read_succeeds(door, namespace, widget):
    made = door.create(widget, make("a"), namespace)
    patched = door.patch(widget, "a", namespace, {"spec": {"x": 1}}, resource_version=version(made))
    assert patched["spec"] == {"x": 1}


def test_a_patch_of_a_version_that_is_gone_is_a_conflict(door, namespace, widget):
    made = door.create(widget, make("a", {"x": 0}), namespace)
    door.patch(widget, "a", namespace, {"spec": {"x": 1}})
    with pytest.raises(Conflict):
        door.patch(widget, "a", namespace, {"spec": {"x": 2}}, resource_version=version(made))
    assert door.get(widget, "a", namespace)["spec"] == {"x": 1}


def test_a_patch_of_what_does_not_exist_is_refused(door, namespace, widget):
    with pytest.raises(NotFound):
        door.patch(widget, "nobody", namespace, {"spec": {}})


def test_what_the_server_sets_survives_a_replacement_that_leaves_it_out(door, namespace, widget):
    made = door.create(widget, make("a"), namespace)
    bare = make("a", {"x": 1}, namespace=namespace, resourceVersion=version(made))
    updated = door.update(widget, bare)
    for field in ("uid", "creationTimestamp"):
        assert updated["metadata"][field] == made["metadata"][field]


@pytest.mark.parametrize("field", ["uid", "creationTimestamp", "generation"])
def test_a_creator_does_not_choose_what_the_server_sets(door, namespace, widget, field):
    foreign = {
        "uid": "00000000-0000-4000-8000-000000000000",
        "creationTimestamp": "2001-01-01T00:00:00Z",
        "generation": 77,
    }
    made = door.create(widget, make("a", **{field: foreign[field]}), namespace)
    assert made["metadata"][field] != foreign[field]


def test_an_object_with_a_version_is_not_created(door, namespace, widget):
    with pytest.raises(ApiError):
        door.create(widget, make("a", resourceVersion="1"), namespace)
    with pytest.raises(NotFound):
        door.get(widget, "a", namespace)


def owned_by(owner: Document, **more: object) -> Document:
    meta = owner["metadata"]
    kind = {"apiVersion": owner["apiVersion"], "kind": owner["kind"]}
    return kind | {"name": meta["name"], "uid": meta["uid"]} | more


def test_one_controlling_owner_at_most(door, namespace, widget):
    first, second = (
        owned_by(door.create(widget, make(name), namespace), controller=True)
        for name in ("one", "two")
    )
    with pytest.raises(Invalid):
        door.create(widget, make("a", ownerReferences=[first, second]), namespace)
    made = door.create(widget, make("b", ownerReferences=[first]), namespace)
    assert made["metadata"]["ownerReferences"] == [first]


def test_the_same_owner_twice_is_kept_once(door, namespace, widget):
    owner = owned_by(door.create(widget, make("owner"), namespace))
    made = door.create(widget, make("a", ownerReferences=[owner, owner]), namespace)
    assert made["metadata"]["ownerReferences"] == [owner]


def test_an_owner_reference_needs_a_uid(door, namespace, widget):
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": ""}
    with pytest.raises(Invalid):
        door.create(widget, make("a", ownerReferences=[reference]), namespace)


def test_an_object_of_a_megabyte_is_stored_and_one_of_two_is_not(door, namespace, widget):
    door.create(widget, make("a", {"text": "x" * 1_000_000}), namespace)
    with pytest.raises(TooLarge):
        door.create(widget, make("b", {"text": "x" * 2_000_000}), namespace)
    with pytest.raises(NotFound):
        door.get(widget, "b", namespace)


def test_objects_handed_out_belong_to_the_caller(door, namespace, widget):
    made = door.create(widget, make("a", {"x": [1]}), namespace)
    made["spec"]["x"].append(2)
    found = door.get(widget, "a", namespace)
    found["spec"]["x"].append(3)
    assert door.get(widget, "a", namespace)["spec"] == {"x": [1]}
    assert door.list(widget, namespace).items[0]["spec"] == {"x": [1]}


def test_text_of_any_language_comes_back_as_it_was(door, namespace, widget):
    text = 'Grüße, 世界 🚀 \u2028 " \\ \n'
    door.create(widget, make("a", {"text": text}, annotations={"note": text}), namespace)
    found = door.get(widget, "a", namespace)
    assert found["spec"]["text"] == text
    assert found["metadata"]["annotations"]["note"] == text


def test_metadata_only_leaves_the_rest_out(door, namespace, widget):
    door.create(widget, make("a", {"x": 1}, labels={"l": "v"}), namespace)
    found = door.get(widget.metadata_only(), "a", namespace)
    assert found.metadata.name == "a"
    assert found.metadata.labels == {"l": "v"}
    listed = door.list(widget.metadata_only(), namespace)
    assert [item.metadata.name for item in listed.items] == ["a"]
