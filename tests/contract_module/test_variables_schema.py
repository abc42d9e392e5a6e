"""Checking user variables against an image's label
(module-contract.md: The schema of variables)."""

import json

import pytest

from captfctl.terraform.contract.jsontext import parse
from captfctl.terraform.contract.variables import UserVariable
from captfctl.terraform.contract.variables_schema import MAX_LABEL, parse_label, variable_problems


def schema_of(properties, required=(), **more):
    label = {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }
    found = parse_label(json.dumps(label | more))
    assert found is not None
    return found


def problems(declared, value, *, text=False):
    variable = UserVariable(value=parse(value), text=text)
    return messages(schema_of({"x": declared}), {"x": variable})


def messages(schema, variables, **more):
    return [problem.message for problem in variable_problems(schema, variables, **more)]


@pytest.mark.parametrize(
    "label",
    [
        "",
        "{",
        "[]",
        '{"type": "array"}',
        "{}",
        '{"type": "object", "title": "x"}',
        '{"type": "object"} trailing',
        '{"type": "object", "properties": {"a": {"type": "list"}}}',
        '{"type": "object", "required": [1]}',
        '{"type": "object", "properties": []}',
        json.dumps({"type": "object", "required": ["x" * MAX_LABEL]}),
    ],
)
def test_a_label_that_is_no_schema_checks_nothing(label):
    assert parse_label(label) is None


def test_a_variable_that_the_image_does_not_declare_is_named():
    found = messages(schema_of({}), {"x": UserVariable(value="hunter2")})
    assert found == ['variable "x" is not declared by the module image']
    assert messages(schema_of({}, additionalProperties=True), {"x": UserVariable(value="1")}) == []


def test_a_misspelled_variable_is_told_with_what_was_meant():
    schema = schema_of({"region": {}, "subnets": {}})
    assert messages(schema, {"Regoin": UserVariable(value="1")}) == [
        'variable "Regoin" is not declared by the module image: did you mean "region"?'
    ]
    assert messages(schema, {"zzz": UserVariable(value="1")}) == [
        'variable "zzz" is not declared by the module image, which declares region, subnets'
    ]


def test_a_required_variable_is_missed_only_when_everything_is_known():
    schema = schema_of({"region": {"type": "string"}}, ["region"])
    assert messages(schema, {}) == [
        'variable "region" is required by the module image and is not set'
    ]
    assert messages(schema, {}, partial=True) == []


@pytest.mark.parametrize(
    ("kind", "value", "fits"),
    [
        ("string", '"a"', True),
        ("string", "5", True),
        ("string", "true", True),
        ("string", "{}", False),
        ("string", "[]", False),
        ("number", "40", True),
        ("number", '"40"', True),
        ("number", '"4.5e-3"', True),
        ("number", '".5"', True),
        ("number", '"0x10"', False),
        ("number", '"40\\n"', False),
        ("number", '"inf"', False),
        ("number", "true", False),
        ("boolean", "false", True),
        ("boolean", '"true"', True),
        ("boolean", '"yes"', False),
        ("boolean", "1", False),
        ("array", "[1]", True),
        ("array", "{}", False),
        ("object", "{}", True),
        ("object", '"{}"', False),
    ],
)
def test_primitive_values_convert_as_terraform_converts_them(kind, value, fits):
    assert (problems({"type": kind}, value) == []) is fits


@pytest.mark.parametrize("kind", ["string", "number", "boolean", "array", "object"])
def test_null_fits_everything(kind):
    assert problems({"type": kind}, "null") == []


def test_anything_fits_a_variable_without_a_type():
    assert problems({}, '{"a": [1]}') == []


def test_a_text_source_for_a_list_is_told_to_use_format_json():
    (found,) = problems({"type": "array", "items": {"type": "string"}}, '"[1]"', text=True)
    assert "format JSON" in found


def test_elements_are_checked_with_their_place():
    (found,) = problems({"type": "array", "items": {"type": "number"}}, '[1, "hunter2", 3]')
    assert found == 'variable "x"[1] must be a number, got a string'


def test_a_tuple_must_have_its_length():
    declared = {"type": "array", "prefixItems": [{"type": "string"}, {"type": "number"}]}
    assert problems(declared, '["a", 1]') == []
    assert problems(declared, '["a", 1, 2]') == ['variable "x" must have 2 elements, got 3']
    assert problems(declared, '["a", []]') == ['variable "x"[1] must be a number, got an array']


def test_extra_attributes_are_dropped_and_missing_ones_are_errors():
    declared = {
        "type": "object",
        "properties": {"a": {"type": "array", "items": {"type": "number"}}, "b": {}},
        "required": ["b"],
    }
    assert problems(declared, '{"b": 1, "extra": "hunter2"}') == []
    assert problems(declared, '{"a": ["y"]}') == [
        'variable "x".b is required and is not set',
        'variable "x".a[0] must be a number, got a string',
    ]


def test_the_values_of_a_map_are_checked():
    declared = {"type": "object", "additionalProperties": {"type": "number"}}
    assert problems(declared, '{"k": 1, "l": []}') == [
        'variable "x".l must be a number, got an array'
    ]


def test_problems_come_sorted_by_variable_and_without_values():
    schema = schema_of({"b": {"type": "number"}, "a": {"type": "boolean"}}, ["c"])
    found = messages(
        schema, {"b": UserVariable(value="hunter2"), "a": UserVariable(value="hunter2")}
    )
    assert [line.split('"')[1] for line in found] == ["a", "b", "c"]
    assert not any("hunter2" in line for line in found)
