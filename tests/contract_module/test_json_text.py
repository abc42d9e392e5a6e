"""JSON that keeps its numbers (api.md: JSON with exact numbers)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from captfctl.terraform.contract.jsontext import (
    MAX_DEPTH,
    NotAnInteger,
    NotJson,
    Number,
    canonical_any,
    canonical_int,
    parse,
    pretty,
)

texts = st.text(st.characters(exclude_categories=["Cs"]))
numbers = st.integers().map(str) | st.sampled_from(["1.0", "1e3", "-0.5", "1E-7", "-0"])
values = st.recursive(
    st.none() | st.booleans() | texts | numbers.map(Number),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.parametrize("text", ["1.0", "1e3", "-0", "0.10", "12345678901234567890123", "1E+2"])
def test_a_number_keeps_its_text(text):
    assert canonical_any(parse(text)) == text


@pytest.mark.parametrize("text", ["0", "-1", "12345678901234567890123", "-0"])
def test_integers_of_any_size_are_canonical(text):
    assert canonical_int(parse(text)) == text


@pytest.mark.parametrize("text", ["1.5", "1.0", "1e3", '{"a":[1,2.5]}'])
def test_a_fraction_or_an_exponent_is_no_integer(text):
    with pytest.raises(NotAnInteger):
        canonical_int(parse(text))


def test_keys_are_sorted_by_code_point_and_white_space_is_gone():
    text = ' {"b": 1, "a": {"z": [ ], "é": 2, "B": {}}} '
    assert canonical_any(parse(text)) == '{"a":{"B":{},"z":[],"é":2},"b":1}'


def test_strings_escape_control_characters_and_line_separators_only():
    value = 'a"\\\b\f\n\r\t\x01\u2028\u2029<>&/é\U0001f600\x7f'
    expected = '"a\\"\\\\\\b\\f\\n\\r\\t\\u0001\\u2028\\u2029<>&/é\U0001f600\x7f"'
    assert canonical_any(value) == expected


def test_a_lone_surrogate_becomes_the_replacement_character():
    assert parse('{"\\ud800": ["\\udc00x", "\\ud83d\\ude00"]}') == {
        "\ufffd": ["\ufffdx", "\U0001f600"]
    }


def test_the_last_of_equal_keys_wins():
    assert canonical_any(parse('{"a":1,"a":2}')) == '{"a":2}'


@pytest.mark.parametrize(
    "text", [b"", b"{", b"1 2", b"NaN", b"[Infinity]", b"\xff", b"\xef\xbb\xbf1", b'"\n"', b"01"]
)
def test_what_is_not_json_is_refused_without_being_quoted(text):
    with pytest.raises(NotJson):
        parse(text)


def test_an_error_tells_the_place_and_not_the_content():
    with pytest.raises(NotJson) as caught:
        parse('{"password": hunter2}')
    assert "column 14" in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("depth", [MAX_DEPTH, 5000, 200_000])
def test_deep_nesting_is_refused_instead_of_exhausting_the_stack(depth):
    with pytest.raises(NotJson, match="nested"):
        parse("[" * depth + "1" + "]" * depth)


def test_nesting_below_the_limit_is_fine():
    text = "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1)
    assert canonical_any(parse(text)) == text


@given(values)
def test_both_forms_read_back_as_the_same_value(value):
    assert parse(canonical_any(value)) == value
    assert parse(pretty(value)) == value


@given(values)
def test_both_forms_are_json_to_others_too(value):
    assert json.loads(canonical_any(value)) == json.loads(pretty(value))


def test_the_readable_form_is_indented_by_two():
    assert pretty(parse('{"b":[1,{"c":null}],"a":{},"d":[]}')) == (
        '{\n  "a": {},\n  "b": [\n    1,\n    {\n      "c": null\n    }\n  ],\n  "d": []\n}\n'
    )
