"""What a definition's schema does: pruning, defaults, validation, CEL rules."""

import pytest

from captfctl.cluster.errors import Invalid
from tests.contract.widgets import ANYTHING, make

TEXT = {"type": "string"}
NUMBER = {"type": "integer"}


def spec_of(**properties):
    return {"type": "object", "properties": properties}


@pytest.fixture(scope="module")
def checked(definitions):
    """A kind with one field per kind of restriction."""
    return definitions.install(
        spec_of(
            text=TEXT | {"minLength": 2, "maxLength": 5, "pattern": "^[a-zß]+$"},
            line=TEXT | {"pattern": "^a$"},
            number={"type": "integer", "minimum": 1, "maximum": 9},
            open={
                "type": "number",
                "minimum": 0,
                "exclusiveMinimum": True,
                "maximum": 1,
                "exclusiveMaximum": True,
            },
            even={"type": "integer", "multipleOf": 2},
            flag={"type": "boolean"},
            choice=TEXT | {"enum": ["a", "b"]},
            port={"x-kubernetes-int-or-string": True},
            maybe=TEXT | {"nullable": True},
            time=TEXT | {"format": "date-time"},
            address=TEXT | {"format": "ipv4"},
            uri=TEXT | {"format": "uri"},
            blob=TEXT | {"format": "byte"},
            few={"type": "array", "items": TEXT, "minItems": 1, "maxItems": 2},
            unique={"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
            keyed={
                "type": "array",
                "items": spec_of(name=TEXT, value=NUMBER) | {"required": ["name"]},
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
            },
            dictionary={"type": "object", "additionalProperties": NUMBER, "maxProperties": 2},
            needy=spec_of(must=TEXT) | {"required": ["must"]},
            filled=spec_of(a=TEXT) | {"minProperties": 1},
            free={"x-kubernetes-preserve-unknown-fields": True},
            either=spec_of(a=TEXT, b=TEXT) | {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
            some=spec_of(a=TEXT, b=TEXT) | {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
            never=spec_of(a=TEXT, b=TEXT) | {"not": {"required": ["a", "b"]}},
        )
    )


@pytest.mark.parametrize(
    "spec",
    [
        {"text": "abc"},
        {"text": "ß" * 5},
        {"number": 1},
        {"number": 9},
        {"open": 0.5},
        {"even": 4},
        {"flag": False},
        {"choice": "b"},
        {"port": 80},
        {"port": "http"},
        {"maybe": None},
        {"time": "2026-01-02T03:04:05Z"},
        {"time": "2026-01-02T03:04:05.678+02:00"},
        {"address": "10.0.0.1"},
        {"uri": "https://example.test/x"},
        {"blob": "YWJj"},
        {"few": ["a", "b"]},
        {"unique": ["a", "b"]},
        {"keyed": [{"name": "a", "value": 1}, {"name": "b", "value": 1}]},
        {"dictionary": {"a": 1, "b": 2}},
        {"needy": {"must": ""}},
        {"filled": {"a": "x"}},
        {"free": {"deep": [{"er": None}, 1, "x"]}},
        {"free": "anything"},
        {"either": {"a": "1"}},
        {"some": {"a": "1", "b": "2"}},
        {"never": {"a": "1"}},
    ],
    ids=str,
)
def test_what_the_schema_allows_is_kept_as_it_is(door, namespace, checked, spec):
    assert door.create(checked, make("a", spec), namespace)["spec"] == spec


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"text": 7}, "spec.text"),
        ({"text": "a"}, "spec.text"),
        ({"text": "abcdef"}, "spec.text"),
        ({"text": "ABC"}, "spec.text"),
        ({"line": "a\n"}, "spec.line"),
        ({"number": "1"}, "spec.number"),
        ({"number": 1.5}, "spec.number"),
        ({"number": True}, "spec.number"),
        ({"number": 0}, "spec.number"),
        ({"number": 10}, "spec.number"),
        ({"open": 0}, "spec.open"),
        ({"open": 1}, "spec.open"),
        ({"even": 3}, "spec.even"),
        ({"flag": "true"}, "spec.flag"),
        ({"flag": 1}, "spec.flag"),
        ({"choice": "c"}, "spec.choice"),
        ({"port": 1.5}, "spec.port"),
        ({"port": []}, "spec.port"),
        ({"time": "yesterday"}, "spec.time"),
        ({"address": "10.0.0"}, "spec.address"),
        ({"blob": "%"}, "spec.blob"),
        ({"few": []}, "spec.few"),
        ({"few": ["a", "b", "c"]}, "spec.few"),
        ({"few": {"a": 1}}, "spec.few"),
        ({"few": [1]}, "spec.few[0]"),
        ({"unique": ["a", "b", "a"]}, "spec.unique[2]"),
        ({"keyed": [{"name": "a"}, {"name": "a"}]}, "spec.keyed[1]"),
        ({"keyed": [{"value": 1}]}, "spec.keyed[0].name"),
        ({"dictionary": {"a": "1"}}, "spec.dictionary.a"),
        ({"dictionary": {"a": 1, "b": 2, "c": 3}}, "spec.dictionary"),
        ({"needy": {}}, "spec.needy.must"),
        ({"filled": {}}, "spec.filled"),
        ("text", "spec"),
    ],
    ids=str,
)
def test_what_the_schema_forbids_is_refused_with_its_path(door, namespace, checked, spec, field):
    with pytest.raises(Invalid) as caught:
        door.create(checked, make("a", spec), namespace)
    assert field in [cause.field for cause in caught.value.causes]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"either": {}}, "spec.either"),
        ({"either": {"a": "1", "b": "2"}}, "spec.either"),
        ({"some": {}}, "spec.some"),
        ({"never": {"a": "1", "b": "2"}}, "spec.never"),
    ],
    ids=str,
)
def test_alternatives_are_checked(door, namespace, checked, spec, field):
    with pytest.raises(Invalid) as caught:
        door.create(checked, make("a", spec), namespace)
    assert field in str(caught.value)


def test_a_null_that_is_not_allowed_is_as_good_as_absent(door, namespace, checked):
    made = door.create(checked, make("a", {"text": None, "flag": True}), namespace)
    assert made["spec"] == {"flag": True}


def test_every_violation_is_told_at_once(door, namespace, checked):
    with pytest.raises(Invalid) as caught:
        door.create(checked, make("a", {"number": 0, "choice": "c"}), namespace)
    assert {cause.field for cause in caught.value.causes} >= {"spec.number", "spec.choice"}
    assert f'Widget.{checked.group} "a" is invalid' in str(caught.value)


def test_a_status_is_checked_too(door, namespace, definitions):
    properties = {"spec": ANYTHING, "status": spec_of(count=NUMBER)}
    resource = definitions.install(root={"type": "object", "properties": properties})
    door.create(resource, make("a"), namespace)
    with pytest.raises(Invalid) as caught:
        door.patch(resource, "a", namespace, {"status": {"count": "x"}}, subresource="status")
    assert "status.count" in [cause.field for cause in caught.value.causes]


def test_unknown_fields_are_dropped(door, namespace, definitions):
    resource = definitions.install(
        spec_of(
            known=TEXT,
            inner=spec_of(known=TEXT),
            items={"type": "array", "items": spec_of(known=TEXT)},
            free=ANYTHING,
            half=spec_of(known=spec_of(a=TEXT)) | {"x-kubernetes-preserve-unknown-fields": True},
        )
    )
    both = {"known": "k", "unknown": "u"}
    spec = both | {
        "inner": both,
        "items": [both],
        "free": both,
        "half": {"known": {"a": "1", "b": "2"}, "unknown": {"x": 1}},
    }
    made = door.create(resource, make("a", spec) | {"stray": 1}, namespace)
    assert "stray" not in made
    assert made["spec"] == {
        "known": "k",
        "inner": {"known": "k"},
        "items": [{"known": "k"}],
        "free": both,
        "half": {"known": {"a": "1"}, "unknown": {"x": 1}},
    }


def test_defaults_fill_in_what_is_absent(door, namespace, definitions):
    resource = definitions.install(
        spec_of(
            word=TEXT | {"default": "hello"},
            nullable=TEXT | {"default": "hello", "nullable": True},
            inner=spec_of(size=NUMBER | {"default": 3}),
            whole=spec_of(size=NUMBER | {"default": 4}) | {"default": {}},
            items={"type": "array", "items": spec_of(size=NUMBER | {"default": 5})},
            by_key={
                "type": "object",
                "additionalProperties": spec_of(size=NUMBER | {"default": 6}),
            },
        )
    )
    empty = door.create(resource, make("a", {}), namespace)["spec"]
    assert empty == {"word": "hello", "nullable": "hello", "whole": {"size": 4}}
    spec = {"word": "", "nullable": None, "inner": {}, "items": [{}, {"size": 1}]}
    full = door.create(resource, make("b", spec | {"by_key": {"k": {}}}), namespace)["spec"]
    assert full == {
        "word": "",
        "nullable": None,
        "inner": {"size": 3},
        "whole": {"size": 4},
        "items": [{"size": 5}, {"size": 1}],
        "by_key": {"k": {"size": 6}},
    }
    nothing = door.create(resource, make("c"), namespace)
    assert "spec" not in nothing
    nulled = door.create(resource, make("d", {"word": None}), namespace)
    assert nulled["spec"]["word"] == "hello"


def test_a_default_comes_back_when_it_is_removed(door, namespace, definitions):
    resource = definitions.install(spec_of(word=TEXT | {"default": "hello"}))
    door.create(resource, make("a", {"word": "other"}), namespace)
    patched = door.patch(resource, "a", namespace, {"spec": {"word": None}})
    assert patched["spec"] == {"word": "hello"}


def ruled(definitions, schema, *rules):
    entries = [{"rule": rule, "message": message} for rule, message in rules]
    return definitions.install(schema | {"x-kubernetes-validations": entries})


def test_a_rule_that_does_not_hold_refuses(door, namespace, definitions):
    schema = spec_of(low=NUMBER, high=NUMBER)
    message = "low must not be above high"
    resource = ruled(definitions, schema, ("self.low <= self.high", message))
    door.create(resource, make("a", {"low": 1, "high": 1}), namespace)
    with pytest.raises(Invalid) as caught:
        door.create(resource, make("b", {"low": 2, "high": 1}), namespace)
    (cause,) = caught.value.causes
    assert cause.field == "spec"
    assert message in cause.message


@pytest.mark.parametrize(
    ("rule", "good", "bad"),
    [
        ("!has(self.a) || has(self.b)", {"a": "1", "b": "2"}, {"a": "1"}),
        ("!has(self.a) || self.a.startsWith('x')", {"a": "xy"}, {"a": "yx"}),
        ("!has(self.a) || self.a.matches('^[a-z]+$')", {"a": "abc"}, {"a": "ABC"}),
        ("!has(self.a) || size(self.a) == 1", {"a": "ß"}, {"a": "ss"}),
        ("!has(self.a) || self.a.lowerAscii() == 'x'", {"a": "X"}, {"a": "Y"}),
        ("!has(self.a) || self.a in ['p', 'q']", {"a": "p"}, {"a": "r"}),
        ("!has(self.l) || self.l.all(i, i > 0)", {"l": [1, 2]}, {"l": [1, 0]}),
        ("!has(self.l) || self.l.exists(i, i > 2)", {"l": [1, 3]}, {"l": [1, 2]}),
        ("!has(self.l) || self.l.isSorted()", {"l": [1, 2]}, {"l": [2, 1]}),
        ("!has(self.l) || self.l.sum() == 3", {"l": [1, 2]}, {"l": [2, 2]}),
        ("!has(self.m) || self.m.all(k, k.size() == 1)", {"m": {"a": "x"}}, {"m": {"aa": "x"}}),
        ("!has(self.f) || self.f * 2.0 > 1.0", {"f": 1}, {"f": 0}),
        ("!has(self.d) || self.d > duration('1m')", {"d": "90s"}, {"d": "30s"}),
        (
            "!has(self.t) || self.t > timestamp('2026-01-01T00:00:00Z')",
            {"t": "2026-01-02T00:00:00Z"},
            {"t": "2025-01-02T00:00:00Z"},
        ),
        ("!has(self.u) || url(self.u).getHost() == 'h'", {"u": "https://h/x"}, {"u": "https://g"}),
        (
            "!has(self.__namespace__) || self.__namespace__ != 'x'",
            {"namespace": "y"},
            {"namespace": "x"},
        ),
        ("!has(self.a__dash__b) || self.a__dash__b != 'x'", {"a-b": "y"}, {"a-b": "x"}),
    ],
)
def test_rules_speak_cel(door, namespace, definitions, rule, good, bad):
    short = TEXT | {"maxLength": 64}
    schema = spec_of(
        a=short,
        b=short,
        l={"type": "array", "items": NUMBER, "maxItems": 9},
        m={"type": "object", "additionalProperties": short, "maxProperties": 9},
        f={"type": "number"},
        d=short | {"format": "duration"},
        t=short | {"format": "date-time"},
        u=short,
        namespace=short,
        **{"a-b": short},
    )
    resource = ruled(definitions, schema, (rule, "no"))
    door.create(resource, make("good", good), namespace)
    with pytest.raises(Invalid):
        door.create(resource, make("bad", bad), namespace)


def test_a_transition_rule_compares_with_what_was(door, namespace, definitions):
    schema = spec_of(
        fixed=TEXT
        | {"x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "is fixed"}]},
        grows=NUMBER | {"x-kubernetes-validations": [{"rule": "self >= oldSelf"}]},
        other=TEXT,
    )
    resource = definitions.install(schema)
    door.create(resource, make("a", {"fixed": "x", "grows": 2}), namespace)
    with pytest.raises(Invalid) as caught:
        door.patch(resource, "a", namespace, {"spec": {"fixed": "y"}})
    assert [cause.field for cause in caught.value.causes] == ["spec.fixed"]
    with pytest.raises(Invalid) as caught:
        door.patch(resource, "a", namespace, {"spec": {"grows": 1}})
    assert "self >= oldSelf" in caught.value.causes[0].message
    changed = door.patch(resource, "a", namespace, {"spec": {"grows": 3, "other": "z"}})
    assert changed["spec"] == {"fixed": "x", "grows": 3, "other": "z"}
    removed = door.patch(resource, "a", namespace, {"spec": {"fixed": None}})
    assert "fixed" not in removed["spec"]
    again = door.patch(resource, "a", namespace, {"spec": {"fixed": "new"}})
    assert again["spec"]["fixed"] == "new"


def test_a_rule_can_forbid_to_set_or_unset(door, namespace, definitions):
    rule = "has(self.once) == has(oldSelf.once)"
    resource = ruled(definitions, spec_of(once=TEXT, other=TEXT), (rule, "set once"))
    door.create(resource, make("a", {"other": "x"}), namespace)
    with pytest.raises(Invalid):
        door.patch(resource, "a", namespace, {"spec": {"once": "y"}})
    assert door.patch(resource, "a", namespace, {"spec": {"other": "z"}})


def test_items_of_a_keyed_list_are_compared_by_key(door, namespace, definitions):
    item = spec_of(
        name=TEXT | {"maxLength": 9},
        value=NUMBER | {"x-kubernetes-validations": [{"rule": "self == oldSelf"}]},
    ) | {"required": ["name"]}
    schema = spec_of(
        items={
            "type": "array",
            "maxItems": 5,
            "items": item,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        }
    )
    resource = definitions.install(schema)
    first, second = {"name": "a", "value": 1}, {"name": "b", "value": 2}
    door.create(resource, make("w", {"items": [first, second]}), namespace)
    door.patch(resource, "w", namespace, {"spec": {"items": [second, first]}})
    with pytest.raises(Invalid) as caught:
        door.patch(resource, "w", namespace, {"spec": {"items": [second, first | {"value": 9}]}})
    assert [cause.field for cause in caught.value.causes] == ["spec.items[1].value"]


def test_a_message_can_be_computed_and_a_path_given(door, namespace, definitions):
    entry = {
        "rule": "self.low <= self.high",
        "messageExpression": "self.low == 2 ? 'low is ' + 'two' : 'low is more'",
        "fieldPath": ".low",
        "reason": "FieldValueForbidden",
    }
    schema = spec_of(low=NUMBER, high=NUMBER) | {"x-kubernetes-validations": [entry]}
    resource = definitions.install(schema)
    with pytest.raises(Invalid) as caught:
        door.create(resource, make("a", {"low": 2, "high": 1}), namespace)
    (cause,) = caught.value.causes
    assert (cause.field, cause.reason) == ("spec.low", "FieldValueForbidden")
    assert "low is two" in cause.message


def test_a_rule_at_the_root_knows_the_name(door, namespace, definitions):
    root = {
        "type": "object",
        "properties": {"spec": ANYTHING},
        "x-kubernetes-validations": [{"rule": "self.metadata.name.startsWith('ok')"}],
    }
    resource = definitions.install(root=root)
    door.create(resource, make("ok-1"), namespace)
    with pytest.raises(Invalid):
        door.create(resource, make("no-1"), namespace)


def test_what_was_stored_under_looser_rules_can_still_be_changed(
    door, namespace, definitions, eventually
):
    from captfctl.model.resources import CRDS

    resource = definitions.install(spec_of(word=TEXT, other=TEXT))
    door.create(resource, make("a", {"word": "long word", "other": "x"}), namespace)
    name = f"widgets.{resource.group}"
    path = ["schema", "openAPIV3Schema", "properties", "spec", "properties", "word"]
    definition = door.get(CRDS, name)
    node = definition.spec["versions"][0]
    for key in path:
        node = node[key]
    node["maxLength"] = 3
    door.update(CRDS, definition)

    def strict() -> bool:
        try:
            made = door.create(
                resource,
                {"metadata": {"generateName": "probe-"}, "spec": {"word": "too long"}},
                namespace,
            )
        except Invalid:
            return True
        door.delete(resource, made["metadata"]["name"], namespace)
        return False

    eventually(strict)
    changed = door.patch(resource, "a", namespace, {"spec": {"other": "y"}})
    assert changed["spec"] == {"word": "long word", "other": "y"}
    with pytest.raises(Invalid):
        door.patch(resource, "a", namespace, {"spec": {"word": "another"}})
