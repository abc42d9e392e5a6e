"""Label and field selectors."""

import itertools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from captfctl.cluster.errors import BadRequest
from tests.contract.widgets import make, names

LABELS = [
    dict(zip(("tier", "env"), pair, strict=True)) for pair in itertools.product("ab", "xy")
] + [{"tier": "a"}, {"env": "x", "empty": ""}, {"size": "10"}, {}]


@pytest.fixture(scope="module")
def garden(door, widget):
    """A namespace with one object per set of labels: `w0`, `w1`, …"""
    from captfctl.model.core import Namespace
    from captfctl.model.meta import ObjectMeta
    from captfctl.model.resources import NAMESPACES

    meta = ObjectMeta(generate_name="contract-garden-")
    name = door.create(NAMESPACES, Namespace(metadata=meta)).metadata.name
    for index, labels in enumerate(LABELS):
        door.create(widget, make(f"w{index}", labels=labels), name)
    yield name
    door.delete(NAMESPACES, name)


def selected(door, widget, garden, **selectors) -> list[int]:
    return [int(name[1:]) for name in names(door.list(widget, garden, **selectors).items)]


def those(predicate) -> list[int]:
    return [index for index, labels in enumerate(LABELS) if predicate(labels)]


@pytest.mark.parametrize(
    ("text", "predicate"),
    [
        ("", lambda _: True),
        ("tier=a", lambda own: own.get("tier") == "a"),
        ("tier==a", lambda own: own.get("tier") == "a"),
        (" tier = a , env = x ", lambda own: own.get("tier") == "a" and own.get("env") == "x"),
        ("tier!=a", lambda own: own.get("tier") != "a"),
        ("tier in (a,b),env notin (x)", lambda own: "tier" in own and own.get("env") != "x"),
        ("tier notin (a, b)", lambda own: "tier" not in own),
        ("tier", lambda own: "tier" in own),
        ("!tier", lambda own: "tier" not in own),
        ("! tier,env", lambda own: "tier" not in own and "env" in own),
        ("empty=", lambda own: own.get("empty") == ""),
        ("empty in ()", lambda own: own.get("empty") == ""),
        ("size>9", lambda own: "size" in own),
        ("size<9", lambda _: False),
        ("tier>9", lambda _: False),
        ("nobody=z", lambda _: False),
    ],
)
def test_labels_select(door, widget, garden, text, predicate):
    assert selected(door, widget, garden, labels=text) == those(predicate)


@pytest.mark.parametrize(
    "text",
    ["tier=a=b", "tier in a", "tier in (a", "=a", ",", "tier,", "a b", "tier in", "k&=v", "tier>x"],
)
def test_what_is_no_selector_is_refused(door, widget, garden, text):
    with pytest.raises(BadRequest):
        door.list(widget, garden, labels=text)
    with pytest.raises(BadRequest), door.watch(widget, garden, labels=text) as watch:
        next(iter(watch))


def test_names_and_namespaces_select(door, widget, garden):
    def found(fields, namespace=garden):
        return names(door.list(widget, namespace, fields=fields).items)

    assert found("metadata.name=w1") == ["w1"]
    assert found("metadata.name==w1") == ["w1"]
    assert len(found("metadata.name!=w1")) == len(LABELS) - 1
    assert found("metadata.name=w1,metadata.namespace=other") == []
    assert found(f"metadata.namespace={garden},metadata.name=w2", "") == ["w2"]
    assert found("metadata.name=w1,metadata.name=w2") == []


def test_a_field_nobody_declared_does_not_select(door, widget, garden):
    with pytest.raises(BadRequest):
        door.list(widget, garden, fields="spec.color=red")


def test_declared_fields_select(door, namespace, definitions):
    schema = {
        "type": "object",
        "properties": {
            "color": {"type": "string"},
            "count": {"type": "integer"},
            "on": {"type": "boolean"},
        },
    }
    declared = [{"jsonPath": f".spec.{field}"} for field in ("color", "count", "on")]
    resource = definitions.install(schema, selectableFields=declared)
    door.create(resource, make("a", {"color": "red", "count": 2, "on": True}), namespace)
    door.create(resource, make("b", {"color": "blue"}), namespace)

    def found(fields):
        return names(door.list(resource, namespace, fields=fields).items)

    assert found("spec.color=red") == ["a"]
    assert found("spec.color!=red") == ["b"]
    assert found("spec.count=2,spec.on=true") == ["a"]
    assert found("spec.count=") == ["b"]


KEYS = ("tier", "env", "empty", "size", "nobody")
VALUES = ("a", "b", "x", "y", "", "10")


def _in(key, values, negated):
    text = f"{key} {'notin' if negated else 'in'} ({','.join(values)})"

    def holds(labels):
        return (labels.get(key) in values) is not negated

    # An absent label is in no set: `notin` holds for it.
    return text, (lambda own: key not in own or holds(own)) if negated else (
        lambda own: key in own and holds(own)
    )


def _equals(key, value, sign):
    if sign == "!=":
        return f"{key}{sign}{value}", lambda own: own.get(key) != value
    return f"{key}{sign}{value}", lambda own: own.get(key) == value


def _exists(key, negated):
    if negated:
        return f"!{key}", lambda own: key not in own
    return key, lambda own: key in own


TERMS = st.one_of(
    st.builds(_exists, st.sampled_from(KEYS), st.booleans()),
    st.builds(
        _equals, st.sampled_from(KEYS), st.sampled_from(VALUES), st.sampled_from(["=", "==", "!="])
    ),
    st.builds(
        _in,
        st.sampled_from(KEYS),
        st.lists(st.sampled_from(VALUES), min_size=1, max_size=3, unique=True),
        st.booleans(),
    ),
)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(terms=st.lists(TERMS, min_size=1, max_size=3))
def test_requirements_combine_as_and(door, widget, garden, terms):
    text = ",".join(term for term, _ in terms)
    expected = those(lambda labels: all(holds(labels) for _, holds in terms))
    assert selected(door, widget, garden, labels=text) == expected
