"""Server-side apply: who owns what, conflicts, what disappears."""

import copy
import json
from datetime import UTC, datetime, timedelta

import pytest

from captfctl.cluster.errors import BadRequest
from captfctl.embedded.apiserver import field_sets
from captfctl.embedded.apiserver.apply import FOLDED, MAX_UPDATERS, ApplyConflict, FieldManager
from captfctl.embedded.schemas import compile_schema, node_of

NOW = datetime(2026, 9, 25, 12, tzinfo=UTC)
CONFIG_MAP = node_of("io.k8s.api.core.v1.ConfigMap")
POD = node_of("io.k8s.api.core.v1.Pod")
SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer"},
                "hosts": {
                    "type": "array",
                    "items": {"type": "object", "properties": {"ip": {"type": "string"}}},
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["ip"],
                },
                "tags": {"type": "array", "x-kubernetes-list-type": "set"},
                "order": {"type": "array", "items": {"type": "string"}},
                "extra": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            },
        },
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}
CUSTOM = compile_schema(SCHEMA, root=True)


def manager(name, type_=CONFIG_MAP, version="v1", **more):
    return FieldManager(type=type_, name=name, version=version, now=NOW, **more)


def config(**data):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", "namespace": "default"},
        "data": data,
    }


def thing(status=None, **spec):
    document = {
        "apiVersion": "example.io/v1",
        "kind": "Thing",
        "metadata": {"name": "t", "namespace": "default"},
        "spec": spec,
    }
    return document if status is None else {**document, "status": status}


def owned(document):
    """Per manager and operation, the paths it owns."""
    return {
        (entry["manager"], entry["operation"], entry.get("subresource", "")): {
            field_sets.path_text(path) for path in field_sets.decode(entry["fieldsV1"])
        }
        for entry in document["metadata"].get("managedFields", [])
    }


def applied(live, document, name, *, force=False, type_=CONFIG_MAP, version="v1", **more):
    return manager(name, type_, version, **more).apply(live, document, force=force)


def test_applying_creates_the_object_and_owns_its_fields():
    made = applied(None, config(a="1"), "alice")
    assert made["data"] == {"a": "1"}
    (entry,) = made["metadata"]["managedFields"]
    assert entry == {
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": {"f:a": {}}},
        "manager": "alice",
        "operation": "Apply",
        "time": "2026-09-25T12:00:00Z",
    }


def test_applying_the_same_again_changes_nothing():
    live = applied(None, config(a="1"), "alice")
    later = FieldManager(type=CONFIG_MAP, name="alice", version="v1", now=NOW + timedelta(hours=1))
    assert later.apply(live, config(a="1"), force=False) is live


def test_a_field_left_out_disappears():
    live = applied(None, config(a="1", b="2"), "alice")
    assert applied(live, config(a="1"), "alice")["data"] == {"a": "1"}


def test_a_field_left_out_stays_when_another_applier_owns_it_too():
    live = applied(None, config(a="1", b="2"), "alice")
    live = applied(live, config(b="2"), "bob")
    after = applied(live, config(a="1"), "alice")
    assert after["data"] == {"a": "1", "b": "2"}
    assert owned(after)["bob", "Apply", ""] == {".data.b"}


def test_what_others_wrote_stays():
    live = applied(None, config(a="1"), "alice")
    live = manager("editor").track(live, {**copy.deepcopy(live), "data": {"a": "1", "x": "9"}})
    after = applied(live, config(a="2"), "alice")
    assert after["data"] == {"a": "2", "x": "9"}
    assert owned(after) == {
        ("alice", "Apply", ""): {".data.a"},
        ("editor", "Update", ""): {".data.x"},
    }


def test_changing_anothers_field_is_a_conflict_that_names_it():
    live = applied(None, config(a="1", b="1"), "alice")
    with pytest.raises(ApplyConflict) as refused:
        applied(live, config(a="2", b="1"), "bob")
    (cause,) = refused.value.causes
    assert (cause.field, cause.reason) == (".data.a", "FieldManagerConflict")
    assert '"alice"' in cause.message
    assert "2" not in cause.message


def test_a_conflict_with_an_updater_names_the_version_it_used():
    live = manager("editor").track(None, config(a="1"))
    with pytest.raises(ApplyConflict) as refused:
        applied(live, config(a="2"), "alice")
    assert refused.value.causes[0].message == 'conflict with "editor" using v1'


def test_force_takes_the_field_over():
    live = applied(None, config(a="1", b="1"), "alice")
    after = applied(live, config(a="2"), "bob", force=True)
    assert after["data"] == {"a": "2", "b": "1"}
    assert owned(after) == {
        ("alice", "Apply", ""): {".data.b"},
        ("bob", "Apply", ""): {".data.a"},
    }


def test_setting_a_field_to_the_value_it_has_shares_it():
    live = applied(None, config(a="1"), "alice")
    after = applied(live, config(a="1"), "bob")
    assert set(owned(after)) == {("alice", "Apply", ""), ("bob", "Apply", "")}


def test_giving_up_everything_removes_the_manager_and_what_only_it_owned():
    live = applied(None, config(a="1"), "alice")
    live = applied(live, config(b="2"), "bob")
    empty = config()
    del empty["data"]
    after = applied(live, empty, "alice")
    assert after["data"] == {"b": "2"}
    assert set(owned(after)) == {("bob", "Apply", "")}


def test_list_items_are_owned_one_by_one():
    live = applied(None, thing(hosts=[{"ip": "1"}]), "alice", type_=CUSTOM, version="example.io/v1")
    live = applied(live, thing(hosts=[{"ip": "2"}]), "bob", type_=CUSTOM, version="example.io/v1")
    assert live["spec"]["hosts"] == [{"ip": "2"}, {"ip": "1"}] or live["spec"]["hosts"] == [
        {"ip": "1"},
        {"ip": "2"},
    ]
    after = applied(live, thing(hosts=[]), "alice", type_=CUSTOM, version="example.io/v1")
    assert after["spec"]["hosts"] == [{"ip": "2"}]


def test_an_item_goes_with_what_others_only_changed_in_it():
    """As in Kubernetes: only somebody who owns the item itself keeps it."""
    more = {"type_": CUSTOM, "version": "example.io/v1"}
    live = applied(None, thing(hosts=[{"ip": "1"}, {"ip": "2"}]), "alice", **more)
    changed = copy.deepcopy(live)
    changed["spec"]["hosts"][0]["name"] = "x"
    live = manager("editor", CUSTOM, "example.io/v1").track(live, changed)
    after = applied(live, thing(hosts=[{"ip": "2"}]), "alice", **more)
    assert after["spec"]["hosts"] == [{"ip": "2"}]


def test_a_part_that_only_the_applier_owned_goes_as_a_whole():
    live = applied(None, thing(size=1, extra={"a": {"b": 1}}), "alice", type_=CUSTOM)
    after = applied(live, thing(size=1), "alice", type_=CUSTOM)
    assert after["spec"] == {"size": 1}


def test_sets_are_owned_value_by_value_and_plain_lists_as_a_whole():
    live = applied(
        None, thing(tags=["x"], order=["1"]), "alice", type_=CUSTOM, version="example.io/v1"
    )
    live = applied(live, thing(tags=["y"]), "bob", type_=CUSTOM, version="example.io/v1")
    assert sorted(live["spec"]["tags"]) == ["x", "y"]
    with pytest.raises(ApplyConflict):
        applied(live, thing(order=["1", "2"]), "bob", type_=CUSTOM, version="example.io/v1")


def test_fields_without_a_schema_are_owned_one_by_one():
    live = applied(None, thing(extra={"a": {"b": 1}}), "alice", type_=CUSTOM)
    live = applied(live, thing(extra={"a": {"c": 2}}), "bob", type_=CUSTOM)
    assert live["spec"]["extra"] == {"a": {"b": 1, "c": 2}}


def test_a_write_to_the_object_leaves_the_status_to_others():
    made = manager("alice", CUSTOM, status=True).track(None, thing(size=1, status={"phase": "x"}))
    assert owned(made)["alice", "Update", ""] == {".spec", ".spec.size"}


def test_a_write_to_the_status_is_kept_apart_by_its_subresource():
    live = manager("alice", CUSTOM, status=True).track(None, thing(size=1))
    status = manager("controller", CUSTOM, status=True, subresource="status")
    after = status.track(live, {**live, "status": {"phase": "Ready"}})
    assert owned(after) == {
        ("alice", "Update", ""): {".spec", ".spec.size"},
        ("controller", "Update", "status"): {".status", ".status.phase"},
    }


def test_an_update_takes_changed_fields_from_their_owner():
    live = applied(None, config(a="1", b="1"), "alice")
    after = manager("editor").track(live, {**live, "data": {"a": "2", "b": "1"}})
    assert owned(after) == {
        ("alice", "Apply", ""): {".data.b"},
        ("editor", "Update", ""): {".data.a"},
    }


def test_an_update_that_removes_a_field_ends_its_ownership():
    live = applied(None, config(a="1", b="1"), "alice")
    after = manager("editor").track(live, {**live, "data": {"b": "1"}})
    assert owned(after) == {("alice", "Apply", ""): {".data.b"}}


def test_an_update_without_changes_keeps_the_bookkeeping_as_it_is():
    live = manager("editor").track(None, config(a="1"))
    without = copy.deepcopy(live)
    del without["metadata"]["managedFields"]
    assert manager("other").track(live, without) == live


def test_a_client_can_clear_the_bookkeeping():
    live = applied(None, config(a="1"), "alice")
    cleared = {**live, "metadata": {**live["metadata"], "managedFields": [{}]}}
    assert "managedFields" not in manager("editor").track(live, cleared)["metadata"]


def test_a_client_can_correct_the_bookkeeping():
    """As kubectl does when it moves from client-side to server-side apply."""
    live = manager("kubectl-client-side-apply").track(None, config(a="1"))
    moved = copy.deepcopy(live)
    moved["metadata"]["managedFields"][0] |= {"manager": "kubectl", "operation": "Apply"}
    after = manager("kubectl").track(live, moved)
    assert set(owned(after)) == {("kubectl", "Apply", "")}
    assert applied(after, config(b="2"), "kubectl")["data"] == {"b": "2"}


def last_applied(document, **data):
    text = json.dumps(config(**data))
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": text}
    metadata = {**document["metadata"], "annotations": annotations}
    return manager("kubectl-client-side-apply").track(None, {**document, "metadata": metadata})


def test_kubectl_takes_over_what_it_applied_client_side():
    live = last_applied(config(a="1", b="1"), a="1", b="1")
    assert applied(live, config(a="2"), "kubectl")["data"] == {"a": "2", "b": "1"}


def test_kubectl_does_not_take_over_what_was_changed_since():
    live = last_applied(config(a="1"), a="1")
    live = manager("editor").track(live, {**live, "data": {"a": "5"}})
    with pytest.raises(ApplyConflict):
        applied(live, config(a="2"), "kubectl")
    with pytest.raises(ApplyConflict):
        applied(last_applied(config(a="1"), a="1"), config(a="2"), "another-tool")


def test_applied_objects_bring_no_bookkeeping_of_their_own():
    document = config(a="1")
    document["metadata"]["managedFields"] = []
    with pytest.raises(BadRequest):
        applied(None, document, "alice")


def test_many_updating_managers_are_folded_into_one():
    live = None
    document = config()
    for number in range(MAX_UPDATERS + 5):
        document = {**config(**{f"k{n}": "1" for n in range(number + 1)})}
        moment = NOW + timedelta(seconds=number)
        one = FieldManager(type=CONFIG_MAP, name=f"m{number}", version="v1", now=moment)
        live = one.track(live, document)
    managers = [entry["manager"] for entry in live["metadata"]["managedFields"]]
    assert len(managers) == MAX_UPDATERS
    assert FOLDED in managers
    paths = set().union(*owned(live).values())
    assert {f".data.k{n}" for n in range(MAX_UPDATERS + 5)} <= paths


def test_a_pods_containers_are_merged_by_name():
    def pod(**container):
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p"},
            "spec": {"containers": [{"name": "main", **container}]},
        }

    live = applied(None, pod(image="i:1"), "alice", type_=POD)
    live = applied(live, pod(workingDir="/x"), "bob", type_=POD)
    assert live["spec"]["containers"] == [{"name": "main", "image": "i:1", "workingDir": "/x"}]
    after = applied(live, pod(), "bob", type_=POD)
    assert after["spec"]["containers"] == [{"name": "main", "image": "i:1"}]
