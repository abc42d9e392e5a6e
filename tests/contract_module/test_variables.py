"""User variables (api.md: User variables)."""

import msgspec
import pytest

from captfctl.model.core import ConfigMap, Secret
from captfctl.model.kinds import Role
from captfctl.model.meta import ObjectMeta
from captfctl.model.reasons import DependenciesReady
from captfctl.model.terraform import NameRef, VariableFormat, VariablesSource
from captfctl.terraform.contract.errors import VariablesError, VariablesSourceNotFound
from captfctl.terraform.contract.jsontext import Number
from captfctl.terraform.contract.variables import (
    SourceKind,
    UserVariable,
    merge_variables,
    name_problem,
    parse_inline,
    source_refs,
)
from tests.contract_module.objects import raw

LABELLED = {"captf.io/variables": "true"}
SECRET_TEXT = "hunter2"


def config_map(data, labels=LABELLED, **fields):
    return ConfigMap(metadata=ObjectMeta(name="settings", labels=labels), data=data, **fields)


def secret(data, labels=LABELLED):
    raw_data = {
        key: value if isinstance(value, bytes) else value.encode() for key, value in data.items()
    }
    return Secret(metadata=ObjectMeta(name="passwords", labels=labels), data=raw_data)


def merge(*objects, inline="", form=None, optional=False, role=Role.CLUSTER):
    sources = [
        VariablesSource(secret_ref=NameRef(name="passwords"), format=form, optional=optional)
        if isinstance(obj, Secret)
        else VariablesSource(
            config_map_ref=NameRef(name="settings"), format=form, optional=optional
        )
        for obj in objects
    ]
    pairs = zip(source_refs(sources), objects, strict=True)
    return merge_variables(role, inline.encode(), pairs)


def test_inline_wins_over_every_source_and_is_not_sensitive():
    merged = merge(config_map({"x": "1"}), secret({"x": "2"}), inline='{"x": 3}')
    assert merged == {"x": UserVariable(value=Number("3"))}


def test_a_later_source_wins_and_brings_its_sensitivity():
    merged = merge(config_map({"x": "1", "y": "1"}), secret({"x": "2"}))
    assert merged["x"] == UserVariable(value="2", sensitive=True, text=True)
    assert merged["y"] == UserVariable(value="1", sensitive=False, text=True)
    again = merge(secret({"x": "2"}), config_map({"x": "1"}))
    assert again["x"] == UserVariable(value="1", text=True)


def test_an_inline_null_overwrites_a_source():
    assert merge(config_map({"x": "1"}), inline='{"x": null}') == {"x": UserVariable(value=None)}


def test_binary_data_of_a_config_map_comes_after_its_data():
    source = config_map({"x": "text", "y": "text"}, binary_data={"x": b"binary"})
    merged = merge(source)
    assert (merged["x"].value, merged["y"].value) == ("binary", "text")


@pytest.mark.parametrize(
    ("obj", "words"),
    [
        (None, "ConfigMap settings does not exist"),
        (config_map({}, labels={}), "does not carry the label captf.io/variables=true"),
        (config_map({}, labels={"captf.io/variables": "yes"}), "does not carry the label"),
    ],
)
def test_a_source_must_exist_and_be_labelled(obj, words):
    with pytest.raises(VariablesSourceNotFound, match=words) as caught:
        merge(obj)
    assert caught.value.reason is DependenciesReady.VARIABLES_SOURCE_NOT_FOUND
    assert "spec.variablesFrom[0]" in str(caught.value)
    assert merge(obj, optional=True) == {}


def test_a_source_is_named_by_its_place_in_the_list():
    with pytest.raises(VariablesSourceNotFound, match=r"spec.variablesFrom\[1\]"):
        merge(config_map({"a": "1"}), None)


def test_a_value_that_is_not_utf8_is_refused_without_being_shown():
    with pytest.raises(VariablesError) as caught:
        merge(secret({"password": SECRET_TEXT.encode() + b"\xff"}))
    assert caught.value.reason is DependenciesReady.VARIABLES_INVALID
    assert "password" in str(caught.value)
    assert SECRET_TEXT not in str(caught.value)


def test_format_json_takes_documents():
    merged = merge(secret({"a": '{"k": [1.50]}', "b": "null"}), form=VariableFormat.JSON)
    assert merged["a"] == UserVariable(value={"k": [Number("1.50")]}, sensitive=True)
    assert merged["b"].value is None


@pytest.mark.parametrize("text", ['{"a":', f'"{SECRET_TEXT}" 2', SECRET_TEXT, ""])
def test_format_json_refuses_other_text_without_showing_it(text):
    with pytest.raises(VariablesError, match="JSON") as caught:
        merge(secret({"a": text}), form=VariableFormat.JSON)
    assert SECRET_TEXT not in str(caught.value)
    assert "'a'" in str(caught.value)


def test_the_first_bad_key_in_sorted_order_is_reported():
    with pytest.raises(VariablesError, match=r"variable '1x'"):
        merge(config_map({"zz": "1", "captf_y": "1", "1x": "1"}))


@pytest.mark.parametrize("text", ["null", "[]", '"x"', "3", "{", '{"a": hunter2}'])
def test_inline_variables_must_be_an_object_and_are_never_quoted(text):
    with pytest.raises(VariablesError) as caught:
        parse_inline(text.encode())
    assert "spec.variables" in str(caught.value)
    assert SECRET_TEXT not in str(caught.value)


def test_no_inline_variables_are_no_variables():
    assert parse_inline(msgspec.Raw()) == {}
    assert parse_inline(raw({"v": '{"a": 1.0}'})["v"]) == {"a": Number("1.0")}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("1x", "not an identifier"),
        ("a.b", "not an identifier"),
        ("", "not an identifier"),
        ("a\n", "not an identifier"),
        ("ä", "not an identifier"),
        ("captf_x", "belong to the contract"),
        ("captf_cluster_outputs", "belong to the contract"),
        ("source", "module block"),
        ("locals", "module block"),
        ("for_each", "module block"),
        ("cluster_network", "contract input of the cluster role"),
    ],
)
def test_names_that_a_cluster_may_not_use(name, words):
    assert words in name_problem(name, Role.CLUSTER)
    with pytest.raises(VariablesError, match="variable"):
        merge(inline=msgspec.json.encode({name: 1}).decode())


@pytest.mark.parametrize(
    ("name", "role", "free"),
    [
        ("machine_name", Role.CLUSTER, True),
        ("machine_name", Role.MACHINE, False),
        ("replicas", Role.MACHINE, True),
        ("replicas", Role.MACHINE_POOL, False),
        ("region", Role.MACHINE, True),
        ("_private-name2", Role.CLUSTER, True),
    ],
)
def test_inputs_of_other_roles_are_free_names(name, role, free):
    assert (name_problem(name, role) == "") is free


def test_the_sources_to_read_are_told_in_order():
    refs = source_refs(
        [
            VariablesSource(config_map_ref=NameRef(name="a")),
            VariablesSource(
                secret_ref=NameRef(name="b"), optional=True, format=VariableFormat.JSON
            ),
        ]
    )
    assert [(ref.kind, ref.name, ref.optional, ref.format) for ref in refs] == [
        (SourceKind.CONFIG_MAP, "a", False, VariableFormat.STRING),
        (SourceKind.SECRET, "b", True, VariableFormat.JSON),
    ]
