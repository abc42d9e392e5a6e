"""JSON merge patch and JSON patch."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from captfctl.cluster.errors import BadRequest, Invalid
from captfctl.embedded.apiserver.json_patch import json_patch
from captfctl.embedded.store import merge_patch

scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=4)
keys = st.text("abc/~", min_size=1, max_size=3)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3)
)
objects = st.dictionaries(keys, values, max_size=4)


def without_nulls(value):
    if isinstance(value, dict):
        return {k: without_nulls(v) for k, v in value.items() if v is not None}
    return value


def difference(old, new):
    """The merge patch that turns `old` into `new`."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    gone = {key: None for key in old if key not in new}
    return gone | {k: difference(old.get(k), v) for k, v in new.items() if old.get(k) != v}


@given(objects, objects)
def test_a_merge_patch_made_from_two_objects_turns_one_into_the_other(old, new):
    old, new = without_nulls(old), without_nulls(new)
    assert merge_patch(old, difference(old, new)) == new


@given(objects, objects)
def test_a_merge_patch_applied_twice_changes_nothing_more(old, patch):
    once = merge_patch(old, patch)
    assert merge_patch(once, patch) == once


@given(objects, objects)
def test_merging_leaves_the_target_alone(old, patch):
    before = copy.deepcopy(old)
    merge_patch(old, patch)
    assert old == before


def test_null_removes_and_a_list_replaces():
    live = {"a": {"b": 1, "c": 2}, "l": [1, 2]}
    assert merge_patch(live, {"a": {"b": None}, "l": [3]}) == {"a": {"c": 2}, "l": [3]}


@given(objects, keys, values)
def test_adding_a_member_and_removing_it_gives_the_object_without_it(document, key, value):
    path = "/" + key.replace("~", "~0").replace("/", "~1")
    added = json_patch(document, [{"op": "add", "path": path, "value": value}])
    assert added == {**document, key: value}
    removed = json_patch(added, [{"op": "remove", "path": path}])
    assert removed == {k: v for k, v in document.items() if k != key}


@given(objects, keys, values)
def test_a_json_patch_leaves_the_target_alone(document, key, value):
    before = copy.deepcopy(document)
    path = "/" + key.replace("~", "~0").replace("/", "~1")
    json_patch(document, [{"op": "add", "path": path, "value": value}])
    assert document == before


def test_operations_build_on_each_other():
    patched = json_patch(
        {"list": [1]},
        [
            {"op": "add", "path": "/list/-", "value": 2},
            {"op": "move", "from": "/list/0", "path": "/first"},
            {"op": "copy", "from": "/first", "path": "/second"},
            {"op": "test", "path": "/second", "value": 1},
            {"op": "replace", "path": "/second", "value": 5},
        ],
    )
    assert patched == {"list": [2], "first": 1, "second": 5}


def test_a_failed_test_is_refused_without_showing_values():
    with pytest.raises(Invalid) as refused:
        json_patch({"data": {"k": "hush"}}, [{"op": "test", "path": "/data/k", "value": "x"}])
    assert "operation 1 (test /data/k)" in str(refused.value)
    assert "hush" not in str(refused.value)


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "remove", "path": "/data/absent"},
        {"op": "replace", "path": "/data/absent/deep", "value": 1},
        {"op": "add", "path": "/list/7", "value": 1},
        {"op": "move", "from": "/absent", "path": "/x"},
    ],
)
def test_an_operation_on_a_place_that_is_not_there_is_refused(operation):
    with pytest.raises(Invalid) as refused:
        json_patch({"data": {"k": "hush"}, "list": []}, [operation])
    assert "hush" not in str(refused.value)


@pytest.mark.parametrize(
    "operations", [{}, "x", [1], [{"op": "explode", "path": "/a"}], [{"path": "/a"}]]
)
def test_what_is_no_json_patch_is_a_bad_request(operations):
    with pytest.raises(BadRequest):
        json_patch({"a": 1}, operations)


def test_a_patch_must_leave_an_object():
    with pytest.raises(BadRequest):
        json_patch({"a": 1}, [{"op": "replace", "path": "", "value": [1]}])
