"""Sets of fields: encoding, extraction, comparison, merging."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from captfctl.cluster.errors import Invalid
from captfctl.embedded.apiserver import field_sets
from captfctl.embedded.schemas import Node, node_of

POD = node_of("io.k8s.api.core.v1.Pod")
OPEN = Node()

elements = st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', 'v:"y"', "f:long/name.with.dots"])
paths = st.lists(elements, min_size=1, max_size=4).map(tuple)
names = st.sampled_from(["a", "b", "c", "d"])
scalars = st.integers(0, 3) | st.text("xy", max_size=2) | st.booleans()
documents = st.recursive(
    st.dictionaries(names, scalars, max_size=3),
    lambda inner: st.dictionaries(names, inner | scalars | st.lists(scalars, max_size=2)),
    max_leaves=12,
)
items = st.dictionaries(
    st.sampled_from(["image", "workingDir"]), st.text("xy", max_size=2), max_size=2
)
containers = st.dictionaries(names, items, max_size=4).map(
    lambda found: [{"name": name, **item} for name, item in found.items()]
)
pods = containers.map(lambda found: {"spec": {"containers": found}} if found else {"spec": {}})


@given(st.frozensets(paths))
def test_a_set_survives_its_encoding(members):
    assert field_sets.decode(field_sets.encode(members)) == members


def test_the_encoding_is_that_of_kubernetes():
    members = frozenset(
        {
            ("f:metadata", "f:labels"),
            ("f:metadata", "f:labels", "f:app"),
            ("f:spec", "f:containers", 'k:{"name":"main"}'),
            ("f:spec", "f:containers", 'k:{"name":"main"}', "f:image"),
        }
    )
    assert field_sets.encode(members) == {
        "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
        "f:spec": {"f:containers": {'k:{"name":"main"}': {".": {}, "f:image": {}}}},
    }


def test_fields_of_an_applied_object_follow_the_schema():
    applied = {
        "metadata": {"labels": {"app": "x"}, "finalizers": ["f/1"]},
        "spec": {
            "containers": [
                {
                    "name": "main",
                    "args": ["a", "b"],
                    "ports": [{"containerPort": 80}],
                    "resources": {"limits": {"cpu": "1"}},
                }
            ],
            "nodeSelector": {"zone": "1"},
            "volumes": [{"name": "v", "emptyDir": {}}],
        },
    }
    texts = {field_sets.path_text(p) for p in field_sets.fields_of(applied, POD)}
    main = '.spec.containers[name="main"]'
    port = f'{main}.ports[containerPort=80,protocol="TCP"]'
    assert texts == {
        ".metadata.labels.app",
        '.metadata.finalizers[="f/1"]',
        main,
        f"{main}.name",
        f"{main}.args",  # an atomic list is one field
        port,
        f"{port}.containerPort",
        f"{main}.resources.limits.cpu",
        ".spec.nodeSelector",  # an atomic map is one field
        '.spec.volumes[name="v"]',
        '.spec.volumes[name="v"].name',
        '.spec.volumes[name="v"].emptyDir',
    }


def test_an_item_without_its_key_is_refused_with_its_path():
    with pytest.raises(Invalid) as refused:
        field_sets.fields_of({"spec": {"containers": [{"image": "x"}]}}, POD)
    assert refused.value.causes[0].field == "spec.containers"
    assert "name" in refused.value.causes[0].message


def test_an_item_that_appears_twice_is_refused():
    with pytest.raises(Invalid) as refused:
        field_sets.fields_of({"spec": {"containers": [{"name": "a"}, {"name": "a"}]}}, POD)
    assert refused.value.causes[0].reason == "FieldValueDuplicate"


@given(documents)
def test_an_object_does_not_differ_from_itself(document):
    found = field_sets.compare(document, {**document}, OPEN)
    assert not found.changed
    assert not found.removed


@given(pods, pods)
def test_merging_what_is_applied_leaves_no_applied_field_different(live, applied):
    merged = field_sets.merge(live, applied, POD)
    owned = field_sets.fields_of(applied, POD)
    difference = field_sets.compare(merged, field_sets.merge(merged, applied, POD), POD)
    assert not difference.changed & owned
    found = field_sets.with_named_parents(field_sets.fields_of(merged, POD), POD)
    assert found >= owned


@given(pods, pods)
def test_merging_lists_loses_no_item_and_doubles_none(live, applied):
    merged = field_sets.merge(live, applied, POD)["spec"].get("containers", [])
    found = [container["name"] for container in merged]
    wanted = {c["name"] for pod in (live, applied) for c in pod["spec"].get("containers", [])}
    assert sorted(found) == sorted(wanted)
    order = [c["name"] for c in applied["spec"].get("containers", [])]
    assert [name for name in found if name in order] == order


def test_a_change_is_added_modified_or_removed():
    old = {"spec": {"containers": [{"name": "a", "image": "1"}, {"name": "b"}]}}
    new = {"spec": {"containers": [{"name": "a", "image": "2"}, {"name": "c"}]}}
    found = field_sets.compare(old, new, POD)
    text = field_sets.path_text
    assert {text(p) for p in found.modified} == {'.spec.containers[name="a"].image'}
    assert {text(p) for p in found.added} == {
        '.spec.containers[name="c"]',
        '.spec.containers[name="c"].name',
    }
    assert {text(p) for p in found.removed} == {
        '.spec.containers[name="b"]',
        '.spec.containers[name="b"].name',
    }


@given(pods)
def test_removing_everything_that_is_applied_leaves_nothing_of_it(applied):
    owned = field_sets.with_named_parents(field_sets.fields_of(applied, POD), POD)
    left = field_sets.without(applied, POD, owned)
    assert not left.get("spec", {}).get("containers")
