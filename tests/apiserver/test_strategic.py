"""Strategic merge patch on built-in kinds."""

import pytest

from captfctl.cluster.errors import BadRequest
from captfctl.embedded.apiserver.strategic import strategic_merge
from captfctl.embedded.schemas import node_of

POD = node_of("io.k8s.api.core.v1.Pod")
JOB = node_of("io.k8s.api.batch.v1.Job")


def pod(*containers, **spec):
    return {"spec": {"containers": list(containers), **spec}}


def test_lists_are_merged_by_their_key():
    live = pod({"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"})
    patch = pod({"name": "b", "image": "b:2"}, {"name": "c", "image": "c:1"})
    assert strategic_merge(live, patch, POD) == pod(
        {"name": "a", "image": "a:1"}, {"name": "b", "image": "b:2"}, {"name": "c", "image": "c:1"}
    )


def test_nested_lists_are_merged_as_well():
    live = pod({"name": "a", "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}]})
    patch = pod({"name": "a", "env": [{"name": "Y", "value": "3"}]})
    env = strategic_merge(live, patch, POD)["spec"]["containers"][0]["env"]
    assert env == [{"name": "X", "value": "1"}, {"name": "Y", "value": "3"}]


def test_delete_directive_removes_an_item():
    live = pod({"name": "a"}, {"name": "b"})
    patch = pod({"name": "a", "$patch": "delete"})
    assert strategic_merge(live, patch, POD) == pod({"name": "b"})


def test_replace_directive_replaces_a_list():
    live = pod({"name": "a"}, {"name": "b"})
    patch = pod({"name": "c"}, {"$patch": "replace"})
    assert strategic_merge(live, patch, POD) == pod({"name": "c"})


def test_replace_directive_replaces_a_map():
    live = {"metadata": {"labels": {"a": "1", "b": "2"}}}
    patch = {"metadata": {"labels": {"$patch": "replace", "c": "3"}}}
    assert strategic_merge(live, patch, POD) == {"metadata": {"labels": {"c": "3"}}}


def test_atomic_lists_are_replaced():
    live = pod({"name": "a", "args": ["x", "y"]})
    patch = pod({"name": "a", "args": ["z"]})
    assert strategic_merge(live, patch, POD) == patch


def test_lists_of_plain_values_become_a_union():
    live = {"metadata": {"finalizers": ["a", "b"]}}
    patch = {"metadata": {"finalizers": ["b", "c"]}}
    assert strategic_merge(live, patch, POD)["metadata"]["finalizers"] == ["a", "b", "c"]


def test_plain_values_can_be_deleted_from_a_list():
    live = {"metadata": {"finalizers": ["a", "b"]}}
    patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}
    assert strategic_merge(live, patch, POD) == {"metadata": {"finalizers": ["b"]}}


def test_retain_keys_clears_the_other_fields():
    live = {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}
    patch = {
        "spec": {
            "volumes": [
                {
                    "name": "v",
                    "$retainKeys": ["name", "secret"],
                    "secret": {"secretName": "s"},
                }
            ]
        }
    }
    merged = strategic_merge(live, patch, POD)
    assert merged == {"spec": {"volumes": [{"name": "v", "secret": {"secretName": "s"}}]}}


def test_element_order_is_followed():
    live = pod({"name": "a"}, {"name": "server-only"}, {"name": "b"})
    patch = {
        "spec": {
            "$setElementOrder/containers": [{"name": "b"}, {"name": "a"}],
            "containers": [{"name": "a", "image": "i"}],
        }
    }
    names = [c["name"] for c in strategic_merge(live, patch, POD)["spec"]["containers"]]
    assert names == ["b", "server-only", "a"]


def test_null_removes_a_field_and_is_dropped_from_new_values():
    live = {"spec": {"suspend": True}}
    patch = {"spec": {"suspend": None, "template": {"metadata": {"labels": {"x": None}}}}}
    assert strategic_merge(live, patch, JOB) == {"spec": {"template": {"metadata": {"labels": {}}}}}


def test_the_target_is_left_alone():
    live = pod({"name": "a", "env": [{"name": "X", "value": "1"}]})
    strategic_merge(live, pod({"name": "a", "env": [{"name": "X", "value": "2"}]}), POD)
    assert live == pod({"name": "a", "env": [{"name": "X", "value": "1"}]})


@pytest.mark.parametrize("patch", [[], pod({"image": "keyless"}), {"spec": {"$patch": "explode"}}])
def test_a_malformed_patch_is_a_bad_request(patch):
    with pytest.raises(BadRequest):
        strategic_merge(pod({"name": "a"}), patch, POD)
